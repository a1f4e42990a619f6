"""The rows of an update, checked before anything is written."""

import difflib
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe.engine.frames.equality import comparable_key
from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import BadInput, DuplicateKeyError, InvalidOption, MissingColumn, NullKeyError

# Validation is column-wise in Arrow, without Python loops over rows.

NullKeys = Literal["error", "match", "drop"]

KEYS_NAMED_MAX = 10
ROWS_NAMED_MAX = 10
_SIMILAR_ENOUGH = 0.6


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows with unique keys, and the number of rows that were dropped for a null in their key.

    Guarantees:
        1. ``rows`` has every column of ``key``, and no two columns whose names differ in case only.
        2. No two rows share a key; under ``null_keys="match"`` a null equals a null.
        3. ``rows`` are in the order in which they arrived.
    """

    rows: pa.Table
    key: tuple[str, ...]
    null_keys_dropped: int = 0


def check_batch(
    table: pa.Table,
    key: str | Sequence[str],
    drop_duplicates: bool = True,  # noqa: FBT001, FBT002 - the seed's own parameter
    null_keys: str = "error",
    order_by: Sequence[str] = (),
) -> Batch:
    """Return the table as a ``Batch``: of rows that share a key the last to arrive stays.

    With ``order_by`` the last is the one with the largest values there; null is the smallest, and of
    equal ones the last to arrive stays.

    ``key`` is a column or several, in the caller's order. ``null_keys`` says what a row with a
    null in its key means: ``"error"``, ``"match"`` (null equals null), ``"drop"`` (left out and
    counted). With ``drop_duplicates=False`` rows that share a key are an error.
    """
    names = key_columns(key)
    if null_keys not in get_args(NullKeys):
        raise InvalidOption(
            f"null_keys cannot be {null_keys!r}.",
            remedy='Use "error", "match" or "drop".',
            null_keys=null_keys,
        )
    _check_case(table.column_names)
    require_key_columns(table.column_names, names)
    _check_key_types(table, names)
    _check_order(table, order_by)
    kept, null_keys_dropped = _with_null_keys(table, names, null_keys)
    unique = _last_of_each_key(kept, names, order_by, drop_duplicates=drop_duplicates)
    return Batch(unique, names, null_keys_dropped)


def key_columns(key: str | Sequence[str]) -> tuple[str, ...]:
    """Return the key as a tuple of column names, whether one name or several were given."""
    names = (key,) if isinstance(key, str) else tuple(key)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidOption(
            f"{key!r} cannot be a key.",
            cause="A key is one column name, or several that differ.",
            remedy='Pass key="Id" or key=["Id", "Line"], for example.',
            key=repr(key),
        )
    return names


def _check_case(columns: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in columns:
        twin = seen.setdefault(name.casefold(), name)
        if twin is not name:
            raise BadInput(
                f"The columns {twin!r} and {name!r} differ in case only.",
                cause="Delta and Spark take them for the same column.",
                remedy="Rename or drop one of them.",
                columns=[twin, name],
            )


def require_key_columns(columns: Sequence[str], names: Sequence[str]) -> None:
    """Refuse column names that lack a key column."""
    for name in names:
        if name in columns:
            continue
        folded = {column.casefold(): column for column in columns}
        close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=_SIMILAR_ENOUGH)
        raise MissingColumn(
            f"The key column {name!r} is not among the rows' columns.",
            cause=f"They are {', '.join(map(repr, columns)) or 'none at all'}.",
            remedy=f"Did you mean {folded[close[0]]!r}?" if close else "Name one of them as the key.",
            column=name,
            columns=list(columns),
        )


def _check_key_types(table: pa.Table, names: Sequence[str]) -> None:
    for name in names:
        kind = table.schema.field(name).type
        if pa.types.is_nested(kind):
            raise BadInput(
                f"The key column {name!r} holds {kind}, which cannot be compared as a key.",
                remedy="Use a column of text, numbers or dates as the key.",
                column=name,
                type=str(kind),
            )


def require_order_columns(columns: Sequence[str], order_by: Sequence[str]) -> None:
    """Refuse column names that lack an ``order_by`` column."""
    problem = "The rows have no column {} to be ordered by."
    MissingColumn.refuse(order_by, columns, problem, "Name one of them in order_by.")


def _check_order(table: pa.Table, order_by: Sequence[str]) -> None:
    require_order_columns(table.column_names, order_by)
    for name in order_by:
        if pa.types.is_nested(table.schema.field(name).type):
            raise BadInput(
                f"Rows cannot be ordered by the column {name!r}.",
                cause="It contains lists, structs or maps, which have no order.",
                remedy="Order by a column of text, numbers or dates.",
                column=name,
            )


def _with_null_keys(table: pa.Table, names: Sequence[str], null_keys: str) -> tuple[pa.Table, int]:
    if null_keys == "match" or not any(table.column(name).null_count for name in names):
        return table, 0
    if null_keys == "error":
        raise _null_key(table, names)
    filled = pc.is_valid(table.column(names[0]))
    for name in names[1:]:
        filled = pc.and_(filled, pc.is_valid(table.column(name)))
    kept = table.filter(filled)
    return kept, len(table) - len(kept)


def _null_key(table: pa.Table, names: Sequence[str]) -> NullKeyError:
    name = next(name for name in names if table.column(name).null_count)
    column = table.column(name)
    rows = pc.indices_nonzero(pc.is_null(column)).slice(0, ROWS_NAMED_MAX).to_pylist()
    return NullKeyError(
        f"The key column {name!r} is null in {column.null_count} of {len(table)} rows "
        f"(the first are {', '.join(map(str, rows))}).",
        cause="A row without a key cannot be found again, so each sync would insert it again.",
        remedy='Fill the key, or pass null_keys="drop" or null_keys="match".',
        column=name,
        count=column.null_count,
        rows=rows,
    )


def _last_of_each_key(
    table: pa.Table, names: Sequence[str], order_by: Sequence[str], *, drop_duplicates: bool
) -> pa.Table:
    # Generated names for the key columns, because "row" may be one of them.
    positions = [f"k{position}" for position in range(len(names))]
    keys = pa.table([comparable_key(table.column(name)) for name in names], names=positions)
    arrival = _arrival(table, order_by) if order_by else None
    ranks = np.arange(len(table)) if arrival is None else np.argsort(arrival)
    groups = (
        keys.append_column("row", pa.array(ranks))
        .group_by(positions)
        .aggregate([("row", "max"), ("row", "count")])
    )
    if len(groups) == len(table):
        return table
    if not drop_duplicates:
        raise _duplicate_key(groups, positions, names)
    last = groups["row_max"].to_numpy()
    return table.take(np.sort(last if arrival is None else arrival[last]))


def _arrival(table: pa.Table, order_by: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the row numbers sorted by the columns; ties keep their order."""
    columns: dict[str, pa.ChunkedArray] = {}
    for position, name in enumerate(order_by):
        column = table.column(name)
        columns[f"valid{position}"] = pc.is_valid(column).cast(pa.int8())
        if pa.types.is_floating(column.type):
            # NaN is the largest, as in Spark; Arrow would put it beside the nulls.
            columns[f"nan{position}"] = pc.fill_null(pc.is_nan(column).cast(pa.int8()), 0)
            column = pc.if_else(pc.is_nan(column), None, column)
        columns[f"value{position}"] = column
    columns["row"] = pa.chunked_array([pa.array(np.arange(len(table)))])
    order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
    return order.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _duplicate_key(groups: pa.Table, positions: Sequence[str], names: Sequence[str]) -> DuplicateKeyError:
    shared = groups.filter(pc.greater(groups["row_count"], 1)).sort_by("row_max")
    keys: list[Any] = [
        tuple(row[position] for position in positions)
        for row in shown_rows(shared.slice(0, KEYS_NAMED_MAX).select(list(positions)))
    ]
    if len(names) == 1:
        keys = [value for (value,) in keys]
    return DuplicateKeyError(
        f"{len(shared)} keys ({', '.join(names)}) come more than once: {', '.join(map(repr, keys))}"
        + (" and more." if len(shared) > len(keys) else "."),
        cause="drop_duplicates=False forbids it, and a snapshot has one row for each key.",
        remedy="Remove the duplicates, or pass drop_duplicates=True to keep the last of each.",
        key=list(names),
        keys=[repr(value) for value in keys],
        count=len(shared),
    )


def bounded_rows(files: Iterable[AbstractContextManager[pq.ParquetFile]], bytes_max: int) -> pa.Table | None:
    """Return all rows of the files, opened one after the other; None if they take more than ``bytes_max``.

    A column that only some of the files have is null in the rows of the others.
    """
    parts, left = [], bytes_max
    for opening in files:
        with opening as file:
            batches = []
            for batch in file.iter_batches():
                left -= batch.nbytes
                if left < 0:
                    return None
                batches.append(batch)
            parts.append(pa.Table.from_batches(batches, file.schema_arrow))
    return pa.concat_tables(parts, promote_options="default")


_SAMPLED_SHARE = 16
_SAMPLE_ROWS_MIN, _SAMPLE_ROWS_MAX = 256, 4_096
_REPEATED_TIMES = 5


def repeats(column: pa.ChunkedArray, within: int = sys.maxsize) -> bool:
    """Return whether a value comes about five times in the column or in ``within`` rows of it, by a sample.

    True for few rows.
    """
    rows = len(column)
    wanted = min(rows // _SAMPLED_SHARE, _SAMPLE_ROWS_MAX)
    if wanted < _SAMPLE_ROWS_MIN:
        return True
    sample = column.slice(rows // 2, wanted).drop_null()
    # Of n sampled values n * n / 2d are repeated, if there are d of them.
    repeated = len(sample) - pc.count_distinct(sample).as_py()
    return bool(repeated >= _REPEATED_TIMES * len(sample) ** 2 / (2 * min(rows, within)))


def distinct_values(column: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the distinct values, and each row's index into them; for a null the number of values."""
    chunks = column.dictionary_encode().unify_dictionaries().chunks
    values = chunks[0].dictionary
    return values, np.concatenate([chunk.indices.fill_null(len(values)).to_numpy() for chunk in chunks])
