"""Row keys in Spark: as one column to join by, and as values for error messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it

from freezeframe.engine.plans.columns import all_of, quote
from freezeframe.engine.protocol.table_engine import NullKeys
from freezeframe.errors import DuplicateKeyError

_KEYS_SHOWN_MAX = 10


def key_column(names: Sequence[str], null_keys: NullKeys) -> Column:
    """The key as one value: null if it may not be matched, never null if a null equals a null."""
    if len(names) == 1 and null_keys == "error":
        return F.col(names[0])
    # Structs are equal if their fields are, nulls included.
    whole = F.struct(*(F.col(name).alias(f"k{index}") for index, name in enumerate(names)))
    if null_keys == "match":
        return whole
    return F.when(all_of([F.col(name).isNotNull() for name in names]), whole)


def shown_keys(frame: DataFrame, key: Sequence[str]) -> list[Any]:
    """Up to ten keys of the frame as Python values, composite ones as tuples."""
    rows = named_keys(frame, key).limit(_KEYS_SHOWN_MAX).collect()
    return [row[0] if len(key) == 1 else tuple(row) for row in rows]


def named_keys(frame: DataFrame, key: Sequence[str], *further: Column) -> DataFrame:
    """The key's columns as ``k0 … kn``, and further columns."""
    columns = [F.col(quote(name)).alias(f"k{index}") for index, name in enumerate(key)]
    return frame.select(*columns, *further)


def repeated_keys(batch: DataFrame, key: Sequence[str]) -> DuplicateKeyError:
    """The error for a batch that holds keys more than once, naming up to ten of them."""
    generated = [f"k{index}" for index in range(len(key))]
    groups = named_keys(batch, key).groupBy(*generated).agg(F.count(F.lit(1)).alias("times"))
    return duplicate_keys(shown_keys(groups.where(F.col("times") > 1), generated), key)


def duplicate_keys(keys: list[Any], key: Sequence[str]) -> DuplicateKeyError:
    """The error for rows that share a key, with the keys."""
    return DuplicateKeyError(
        f"Several rows of the batch share a key ({', '.join(key)}): {', '.join(map(repr, keys))}.",
        remedy="Leave one row of each, or pass order_by= to say which is the last.",
        keys=[repr(value) for value in keys],
    )
