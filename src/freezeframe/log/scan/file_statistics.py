"""Statistics of a data file, computed from its columns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from freezeframe.errors import CorruptData
from freezeframe.log.format.schema import fields_of, physical_name
from freezeframe.log.primitives.foreign_parquet import Calendar, parquet_leaves
from freezeframe.nested_types import fold_array, parts
from freezeframe.storage.read_ahead import passing_failure

# Statistics of a new data file from its Parquet footer, as ``add.stats``.
#
# Only the footer is read, and floating columns of which it says nothing. A bound is included only where
# it is valid for every reader of Delta: a missing bound costs a reader speed, a wrong one would cost it
# rows. Source: the protocol's section "Per-file Statistics".

INDEXED_COLUMNS_MAX = 32  # delta.dataSkippingNumIndexedCols
TEXT_LENGTH_MAX = 32

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_MILLISECOND = {"milliseconds": 1, "microseconds": 1_000, "nanoseconds": 1_000_000}
_ORDERED = frozenset(
    {"string", "long", "integer", "short", "byte", "float", "double", "date", "timestamp", "timestamp_ntz"}
)
_FLOATING = frozenset({"float", "double"})
_DATED = frozenset({"date", "timestamp"})
_LAST_ASCII = "\x7f"
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class _Column:
    """One leaf column over the selected row groups; ``bounds`` are raw footer values or None."""

    null_count: int | None
    bounds: tuple[Any, Any] | None
    unit: str


def file_statistics(
    source: bytes | str | Path | BinaryIO,
    delta_schema: Mapping[str, Any],
    indexed_columns_max: int = INDEXED_COLUMNS_MAX,
) -> dict[str, Any]:
    """``numRecords``, ``minValues``, ``maxValues``, ``nullCount`` and ``tightBounds`` of a Parquet file.

    Keys are physical names; the first ``indexed_columns_max`` leaf columns of ``delta_schema`` are
    covered (-1: all). Text is truncated to 32 characters (a maximum then ends in a greater character),
    times are whole milliseconds (a maximum rounded up). A floating maximum is left out, because a footer
    does not record NaN, which Spark sorts above all numbers. Decimals are ``Decimal``; serialise the result
    with ``statistics_text``.
    """
    try:
        file = pq.ParquetFile(BytesIO(source) if isinstance(source, bytes) else source)
        groups = range(file.metadata.num_row_groups)
        return footer_statistics(file, delta_schema, groups, indexed_columns_max, reads_values=True)
    except (pa.ArrowException, OSError) as error:
        passing = passing_failure("a data file", error)
        if passing is not None:
            raise passing from error
        raise CorruptData(
            "The statistics of a data file cannot be read.",
            cause=f"Its Parquet footer is missing, or it is damaged: {error}",
            remedy="Write the file again.",
        ) from error


def footer_statistics(
    file: pq.ParquetFile,
    delta_schema: Mapping[str, Any],
    groups: Sequence[int],
    indexed_columns_max: int,
    *,
    reads_values: bool = False,
) -> dict[str, Any]:
    """``file_statistics`` of some row groups of an open file.

    With ``reads_values`` floating columns of which the footer says nothing are read.
    """
    # The footer lists leaf columns in the schema's depth-first order; their dotted paths would be
    # ambiguous, because a name may contain a dot.
    paths = [path for field in file.schema_arrow for path in leaf_paths(field)]
    leaves = {
        path: _column(file.metadata, index, groups)
        for index, path in enumerate(paths)
        if path is not None and len(paths) == file.metadata.num_columns
    }
    is_old = Calendar.of(file.metadata.metadata).is_old
    answer: dict[str, Any] = {
        "numRecords": sum(file.metadata.row_group(group).num_rows for group in groups),
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
        "tightBounds": True,
    }
    indexed = islice(
        _delta_leaves(delta_schema, ()), None if indexed_columns_max < 0 else indexed_columns_max
    )
    for path, kind in indexed:
        column = leaves.get(path)
        if column is not None and isinstance(kind, str):  # arrays and maps have none
            if reads_values and kind in _FLOATING and column.null_count is None:
                found = file.read_row_groups(list(groups), columns=[".".join(path)])
                if found.num_columns != 1:  # a dotted name may name two columns
                    column = _Column(None, None, "")
                else:
                    (values,) = found.columns
                    while kinds.is_struct(values.type):
                        (values,) = values.flatten()
                    low = pc.min(values).as_py()
                    column = _Column(values.null_count, None if low is None else (low, low), "")
            if is_old and kind in _DATED:  # the footer's bounds count in the old calendar
                column = replace(column, bounds=None)
            _enter(answer, path, kind, column)
    return answer


def bounded_columns(schema: pa.Schema) -> bool | list[str]:
    """Return the columns of a new Parquet file that get bounds in its footer: PyArrow's ``write_statistics``.

    Floating ones get none, at any depth. PyArrow's bounds pass over NaN, which Spark sorts above all
    numbers: by a greatest value of 0.1 Spark would leave out the rows that are NaN in ``f > 1``.
    """
    leaves = [(".".join(path), kind) for field in schema for path, kind in parquet_leaves(field)]
    floating = {path for path, kind in leaves if kinds.is_floating(kind)}
    return [path for path, _ in leaves if path not in floating] if floating else True


def columns_beyond_bounds(file: pq.ParquetFile) -> list[str]:
    """Return the floating columns (dotted paths) with NaN in a row group whose footer bounds them.

    Spark's own writer gives such a row group no bounds, so its files are skipped.
    """
    found: dict[str, None] = {}
    if str(file.metadata.created_by).startswith("parquet-mr"):
        return []
    leaves = range(file.metadata.num_columns)
    floating = [at for at in leaves if file.metadata.schema.column(at).physical_type in {"FLOAT", "DOUBLE"}]
    for group in range(file.metadata.num_row_groups):
        chunks = [file.metadata.row_group(group).column(at) for at in floating]
        for path in (
            item.path_in_schema for item in chunks if item.statistics and item.statistics.has_min_max
        ):
            # Arrow's threads may not be waited for where Arrow has called this.
            rows = file.read_row_group(group, columns=[path], use_threads=False)
            if any(fold_array(chunk, _has_nan) for column in rows.columns for chunk in column.chunks):
                found[path] = None
    return list(found)


def _has_nan(values: pa.Array, inside: list[bool]) -> bool:
    return any(inside) or (kinds.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py()))


def statistics_text(statistics: Mapping[str, Any]) -> str:
    """Return the statistics as the JSON text of ``add.stats``; decimals keep all their digits."""
    return _json(statistics)


def _json(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value)


def _enter(answer: dict[str, Any], path: tuple[str, ...], kind: str, column: _Column) -> None:
    if column.null_count is not None:
        _set(answer["nullCount"], path, column.null_count)
    if column.bounds is None or not (kind in _ORDERED or kind.startswith("decimal")):
        return
    low, high = column.bounds
    for key, value in (
        ("minValues", _low(kind, low, column.unit)),
        ("maxValues", _high(kind, high, column.unit)),
    ):
        if value is not None:
            _set(answer[key], path, value)


def _set(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def _delta_leaves(
    struct: Mapping[str, Any], inside: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in fields_of(struct):
        path = (*inside, physical_name(field))
        kind = field["type"]
        if isinstance(kind, Mapping) and kind.get("type") == "struct":
            yield from _delta_leaves(kind, path)
        else:
            yield path, kind


def leaf_paths(
    field: pa.Field, inside: tuple[str, ...] = (), *, repeated: bool = False
) -> Iterator[tuple[str, ...] | None]:
    """Yield the path of each leaf of ``field``; None inside a list or map, where nulls are not rows."""
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    path = (*inside, field.name)
    inside_of_it = parts(kind)
    for part in inside_of_it:
        yield from leaf_paths(part, path, repeated=repeated or not kinds.is_struct(kind))
    if not inside_of_it and not kinds.is_struct(kind):
        yield None if repeated else path


def _column(metadata: Any, index: int, groups: Sequence[int]) -> _Column:
    null_count, low, high, bounded, unit = 0, None, None, True, ""
    counted = True
    for group in groups:
        chunk = metadata.row_group(group).column(index)
        found = chunk.statistics
        if chunk.num_values == 0:
            continue  # an empty file may have a row group without rows and statistics
        counted = counted and found is not None and found.has_null_count
        null_count += found.null_count if counted and found is not None else 0
        if found is not None and counted and found.null_count == chunk.num_values:
            continue  # only nulls: the group has no bounds
        if found is None or not found.has_min_max:
            bounded = False
            continue
        if found.logical_type.type == "DATE":
            unit = "days"
        elif found.logical_type.type == "TIMESTAMP":
            unit = str(json.loads(found.logical_type.to_json())["timeUnit"])
        else:
            unit = ""
        # Arrow's conversion to Python dates raises beyond the year 9999; raw counts do not.
        least, most = (found.min_raw, found.max_raw) if unit else (found.min, found.max)
        if least != least:  # noqa: PLR0124 - only NaN differs from itself; it has no order
            bounded = False
            continue
        low = least if low is None else min(low, least)
        high = most if high is None else max(high, most)
    known = bounded and low is not None
    return _Column(null_count if counted else None, (low, high) if known else None, unit)


def _low(kind: str, value: Any, unit: str) -> Any:
    match kind:
        case "string":
            return value[:TEXT_LENGTH_MAX] if isinstance(value, str) else None
        case "date":
            return _date(value, unit)
        case "timestamp" | "timestamp_ntz":
            per = _PER_MILLISECOND.get(unit)
            return None if per is None else _moment(value // per, kind)
        case "float" | "double":
            finite = isinstance(value, float) and math.isfinite(value)
            return (value or 0.0) if finite else None  # never "-0.0", which some readers sort below 0.0
        case _:
            return _number(kind, value)


def _high(kind: str, value: Any, unit: str) -> Any:
    match kind:
        case "string":
            return _text_above(value) if isinstance(value, str) else None
        case "date":
            return _date(value, unit)
        case "timestamp" | "timestamp_ntz":
            per = _PER_MILLISECOND.get(unit)
            return None if per is None else _moment(-(-value // per), kind)
        case "float" | "double":
            return None
        case _:
            return _number(kind, value)


def _number(kind: str, value: Any) -> Any:
    if kind.startswith("decimal"):
        return value if isinstance(value, Decimal) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text_above(text: str) -> str | None:
    """Return a truncated upper bound of ``text`` by UTF-8 bytes, or None if there is none."""
    if len(text) <= TEXT_LENGTH_MAX:
        return text
    for length in range(TEXT_LENGTH_MAX, min(len(text), 2 * TEXT_LENGTH_MAX)):
        if text[length] < _LAST_ASCII:
            return text[:length] + _LAST_ASCII
        if text[length] < _LAST_CHARACTER:
            return text[:length] + _LAST_CHARACTER
    return None


def _date(days: Any, unit: str) -> str | None:
    if unit != "days":
        return None
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _moment(milliseconds: int, kind: str) -> str | None:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if kind == "timestamp" else text
