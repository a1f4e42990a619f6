"""Column statistics: nulls, distinct values, minimum, maximum.

Columns are read one by one, so that memory holds one of them. Of a stream of more than ``ROWS_MAX`` rows
the first ``ROWS_MAX`` are read, and each figure says of how many rows it speaks; nulls and ends are then
taken from the log where it knows them of all rows. What is not read in time is left out, and said so.
``logged_statistics`` reads no row at all.
"""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from freezeframe.engine.frames.python_values import moment_text, python_values
from freezeframe.errors import MissingColumn
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_skipping import value_bounds
from freezeframe.service.rows.streams import (
    Moment,
    json_value,
    row_batches,
    shown_columns,
    stream_snapshot,
)
from freezeframe.store import Tenant
from freezeframe.store.schema.columns import delta_columns, physical_names, read_system_columns, type_names

ROWS_MAX = 1_000_000
SECONDS_MAX = 4.0
_KEPT_MAX = 64
_TEXT_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column; its figures are of `rows_read` rows where they are not of all."""

    name: str
    type: str
    rows_read: Annotated[int, Field(description="0: the column was not read in time; ask for it by name.")]
    nulls: int | None
    nulls_of_all: Annotated[bool, Field(description="Whether `nulls` counts all rows.")]
    distinct: Annotated[int | None, Field(description="Different values in the rows that were read.")]
    low: Any
    high: Any
    ends_of_all: Annotated[bool, Field(description="Whether `low` and `high` are those of all rows.")]


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """A stream's columns at one version."""

    version: Annotated[int, Field(description="The version of the tenant that made the stream so.")]
    stream_version: Annotated[int, Field(description="The stream's own version.")]
    rows: int
    columns: tuple[ColumnStatistics, ...]


class StatisticsCache:
    """The columns that were read completely, by table, version and name; the oldest use goes first."""

    def __init__(self, kept_max: int = _KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], dict[str, ColumnStatistics]] = OrderedDict()

    def get(self, snapshot: Snapshot, name: str) -> ColumnStatistics | None:
        """Return the statistics of a column; None if it was not read."""
        with self._lock:
            found = self._kept.get(_table_version(snapshot))
            if found is None:
                return None
            self._kept.move_to_end(_table_version(snapshot))
            return found.get(name)

    def put(self, snapshot: Snapshot, column: ColumnStatistics) -> None:
        """Store the statistics of a column."""
        with self._lock:
            self._kept.setdefault(_table_version(snapshot), {})[column.name] = column
            self._kept.move_to_end(_table_version(snapshot))
            while len(self._kept) > self._kept_max:
                self._kept.popitem(last=False)


def stream_statistics(
    tenant: Tenant,
    stream: str,
    moment: Moment,
    cache: StatisticsCache,
    *,
    columns: Sequence[str] = (),
    rows_max: int = ROWS_MAX,
    seconds_max: float = SECONDS_MAX,
) -> StreamStatistics:
    """Statistics of the named columns (default: all); at least one column is read, however long it takes."""
    snapshot = stream_snapshot(tenant, stream, moment)
    known = shown_columns(snapshot)
    MissingColumn.refuse(columns, known.names)
    types = type_names(delta_columns(known, None))
    total = rows.count(snapshot)
    log_known = _of_log(snapshot, known) if total > rows_max else {}
    ends_at = time.monotonic() + seconds_max
    found: list[ColumnStatistics] = []
    for name in columns or known.names:
        kept = cache.get(snapshot, name)
        if kept is None and (time.monotonic() < ends_at or not any(item.rows_read for item in found)):
            kept = _read(snapshot, known.field(name), types[name], (rows_max, total), log_known.get(name))
            cache.put(snapshot, kept)
        found.append(kept or _unread(name, types[name], None))
    version = tenant.stream(stream).scope.version_that_made(snapshot)
    return StreamStatistics(version, snapshot.version, total, tuple(found))


def logged_statistics(
    tenant: Tenant, stream: str, moment: Moment, columns: Sequence[str] = ()
) -> StreamStatistics:
    """Return nulls and ends of the named columns (default: all) as far as the log has them."""
    snapshot = stream_snapshot(tenant, stream, moment)
    known = shown_columns(snapshot)
    MissingColumn.refuse(columns, known.names)
    types = type_names(delta_columns(known, None))
    logged = _of_log(snapshot, known)
    found = tuple(_unread(name, types[name], logged.get(name)) for name in columns or known.names)
    version = tenant.stream(stream).scope.version_that_made(snapshot)
    return StreamStatistics(version, snapshot.version, rows.count(snapshot), found)


@dataclass(frozen=True, slots=True)
class _Logged:
    """What the log knows of a column in all rows; None where it does not."""

    nulls: int | None
    low: pa.Scalar | None
    high: pa.Scalar | None


def _unread(name: str, type_name: str, logged: _Logged | None) -> ColumnStatistics:
    logged = logged or _Logged(None, None, None)
    low, high = _short_json(logged.low), _short_json(logged.high)
    return ColumnStatistics(
        name,
        type_name,
        0,
        logged.nulls,
        nulls_of_all=logged.nulls is not None,
        distinct=None,
        low=low,
        high=high,
        ends_of_all=low is not None,
    )


def _read(
    snapshot: Snapshot, field: pa.Field, type_name: str, span: tuple[int, int], logged: _Logged | None
) -> ColumnStatistics:
    rows_max, total = span
    column = _first_rows(snapshot, field, rows_max)
    nulls, ends = column.null_count, _ends(column)
    nulls_of_all = ends_of_all = len(column) == total
    if logged is not None and logged.nulls is not None:
        nulls, nulls_of_all = logged.nulls, True
    if logged is not None and logged.low is not None and logged.high is not None:
        ends, ends_of_all = (logged.low, logged.high), True
    return ColumnStatistics(
        field.name,
        type_name,
        len(column),
        nulls,
        nulls_of_all,
        _distinct(column),
        _short_json(ends[0]),
        _short_json(ends[1]),
        ends_of_all,
    )


def _first_rows(snapshot: Snapshot, field: pa.Field, rows_max: int) -> pa.ChunkedArray:
    if pa.types.is_null(field.type):  # no file has it
        return pa.chunked_array([pa.nulls(min(rows_max, rows.count(snapshot)))])
    chunks: list[pa.Array] = []
    left = rows_max
    for batch in row_batches(snapshot, [field.name]):
        chunks.append(batch.column(0).slice(0, left))
        left -= len(chunks[-1])
        if not left:
            break
    return pa.chunked_array(chunks, field.type)


def _distinct(column: pa.ChunkedArray) -> int | None:
    if pa.types.is_nested(column.type):
        return None
    return int(pc.count_distinct(column, mode="only_valid").as_py())


def _ends(column: pa.ChunkedArray) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type) or pa.types.is_binary(column.type):
        return None, None
    if pa.types.is_floating(column.type):
        column = column.filter(pc.is_finite(column))
    found = pc.min_max(column)
    return found["min"], found["max"]


def _short_json(value: pa.Scalar | None) -> Any:
    plain = None if value is None or not value.is_valid else json_value(_python_value(value))
    if isinstance(plain, str) and len(plain) > _TEXT_LENGTH_MAX:
        return plain[:_TEXT_LENGTH_MAX] + "…"
    return plain


def _python_value(value: pa.Scalar) -> Any:
    (found,) = python_values(pa.array([value], value.type), moment_text)
    return found


def _of_log(snapshot: Snapshot, columns: pa.Schema) -> dict[str, _Logged]:
    """Return statistics of all rows from those of the files; none if files have deleted or closed rows."""
    vectors = snapshot.file_list["deletion_vector"]
    if vectors.null_count < len(vectors) or read_system_columns(snapshot.metadata).names:
        return {}
    names = physical_names(snapshot.delta_schema)
    texts = snapshot.files["stats"].to_pylist()
    counts = [json.loads(text).get("nullCount", {}) if text else {} for text in texts]
    found = {}
    for field in columns:
        name = names.get(field.name, field.name)
        nulls = [count.get(name) for count in counts]
        known = all(isinstance(null, int) for null in nulls)
        # The log truncates bounds of texts and rounds those of times, so these are read from the files.
        is_exact = pa.types.is_integer(field.type) or pa.types.is_date(field.type)
        bounds = [value_bounds(field, name, text) for text in texts] if is_exact else []
        lows = [low for low, _ in bounds if low is not None]
        highs = [high for _, high in bounds if high is not None]
        whole = is_exact and len(lows) == len(highs) == len(texts)
        found[field.name] = _Logged(
            sum(nulls) if known else None,
            pc.min(pa.array(lows, field.type)) if whole else None,
            pc.max(pa.array(highs, field.type)) if whole else None,
        )
    return found


def _table_version(snapshot: Snapshot) -> tuple[str, str]:
    return f"{snapshot.storage.root}/{snapshot.table}", snapshot.identity
