"""Search of keys in stored files by Spark's workers."""

import functools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.plan import LocalRelation
from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.configuration import (
    BROADCAST_KEYS_MAX,
    FILE_BYTES,
    KEYS_PER_TASK,
)
from freezeframe.engine.plans.columns import F, all_of, fit_column, quote, struct_type
from freezeframe.engine.plans.parquet_files import FILE, ROW, read_files
from freezeframe.engine.plans.python_tasks import collect
from freezeframe.engine.protocol import FindTask, NullKeys
from freezeframe.errors import CorruptData, DuplicateKeyError

_KEYS_SHOWN_MAX = 10


def key_column(names: Sequence[str], null_keys: NullKeys) -> Column:
    """Return the key as one value: null if it may not be matched, never null if a null equals a null."""
    if len(names) == 1 and null_keys == "error":
        return F.col(names[0])
    # Structs are equal if their fields are, nulls included.
    whole = F.struct(*(F.col(name).alias(f"k{index}") for index, name in enumerate(names)))
    if null_keys == "match":
        return whole
    return F.when(all_of([F.col(name).isNotNull() for name in names]), whole)


def shown_keys(frame: DataFrame, key: Sequence[str]) -> list[Any]:
    """Return up to ten keys of the frame as Python values, composite ones as tuples."""
    rows = named_keys(frame, key).limit(_KEYS_SHOWN_MAX).collect()
    return [row[0] if len(key) == 1 else tuple(row) for row in rows]


def named_keys(frame: DataFrame, key: Sequence[str], *further: Column) -> DataFrame:
    """Return the key's columns as ``k0 … kn``, and further columns."""
    columns = [F.col(quote(name)).alias(f"k{index}") for index, name in enumerate(key)]
    return frame.select(*columns, *further)


def duplicate_keys(keys: list[Any], key: Sequence[str]) -> DuplicateKeyError:
    """Return the error for rows that share a key, with the keys."""
    return DuplicateKeyError(
        f"Several rows of the batch share a key ({', '.join(key)}): {', '.join(map(repr, keys))}.",
        cause="A snapshot has one row for each key, and rows of a Spark frame have no order.",
        remedy="Leave one row of each, or pass order_by= to say which is the last.",
        keys=[repr(value) for value in keys],
    )


# Only the key's columns are read. The result has a file, a position and a key number for each match.
# The caller filters deleted rows and decides on the others.

_PLACE, _TASK = "place", "task"


def find_all(session: SparkSession, tasks: Sequence[FindTask]) -> tuple[pa.Table, ...]:
    """Run the searches in one query; see `TableEngine.find_all`."""
    parts = [
        _matches(session, task).select(F.lit(number).alias(_TASK), ROW, _PLACE, FILE)
        for number, task in enumerate(tasks)
    ]
    found = collect(functools.reduce(lambda above, part: above.union(part), parts))
    answers = []
    for number, task in enumerate(tasks):
        own = found.filter(pc.equal(found[_TASK], number))
        file = file_indexes(own[FILE], task.stored)
        answers.append(pa.table({"file": file, "row": own[ROW], "place": own[_PLACE]}))
    return tuple(answers)


def _matches(session: SparkSession, task: FindTask) -> DataFrame:
    """Return one row per stored row, deleted or not, with a key of the batch."""
    schema, target = struct_type(task.stored_schema), struct_type(task.target_schema)
    old_names, new_names = ([f"{letter}{i}" for i in range(len(target))] for letter in "on")
    read = read_files(session, task.stored, schema, with_places=True)
    values = [
        fit_column(F.col(quote(ours.name)), ours.dataType, theirs.dataType).alias(name)
        for name, ours, theirs in zip(old_names, schema.fields, target.fields, strict=True)
    ]
    stored = read.select(*values, FILE, ROW)
    batch = _batch(session, task, new_names)
    old_key, new_key = (key_column(names, task.null_keys) for names in (old_names, new_names))
    stored = stored.select(old_key.alias("old_key"), FILE, ROW)
    batch = batch.select(new_key.alias("new_key"), _PLACE)
    is_same = F.col("old_key") == F.col("new_key")
    if task.rows <= BROADCAST_KEYS_MAX:
        return stored.join(F.broadcast(batch), is_same)
    # By the whole key, which is unique, so that tasks have equal sizes even if its parts repeat.
    tasks = max(math.ceil(task.rows / KEYS_PER_TASK), math.ceil(task.size_bytes / FILE_BYTES))
    return stored.repartition(tasks, "old_key").join(batch.repartition(tasks, "new_key"), is_same)


def _batch(session: Any, task: FindTask, names: Sequence[str]) -> DataFrame:
    """Return the keys under these names, and the index of each."""
    if isinstance(task.keys, pa.Table):
        places = pa.array(np.arange(len(task.keys)), pa.int64())
        table = task.keys.rename_columns(list(names)).append_column(_PLACE, places)
        if not isinstance(session, SparkSession):
            return cast("DataFrame", session.createDataFrame(table))  # in classic Spark
        # ``createDataFrame`` first requests nine settings from the server.
        return ConnectFrame(LocalRelation(table), session)
    target = struct_type(task.target_schema)
    keys = read_files(session, task.keys, target, with_places=True)
    columns = [F.col(quote(field.name)).alias(name) for name, field in zip(names, target.fields, strict=True)]
    return keys.select(*columns, F.col(ROW).alias(_PLACE))


def file_indexes(names: pa.ChunkedArray, files: Sequence[str]) -> pa.ChunkedArray:
    """Return the names that Spark tells as indexes into the files that it was asked to read."""
    known = pa.array([path.rpartition("/")[2] for path in files], pa.string())
    numbers = pc.index_in(names, value_set=known)
    if numbers.null_count:
        strange = names.filter(pc.is_null(numbers)).unique().to_pylist()
        raise CorruptData(
            f"Spark read files that it was not asked to read: {', '.join(map(str, strange))}.",
            remedy="Run the call again; nothing of it was written.",
        )
    return numbers
