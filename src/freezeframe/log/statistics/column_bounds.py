"""Minimum and maximum of a column in each file, parsed from the statistics of all files in bulk.

The statistics of a file are a JSON text. Parsing a million of them one by one takes a minute and
some gigabytes; Arrow's JSON reader takes a second. It supports the texts of this package and of
Spark; other texts are parsed one by one, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.log.primitives.arrow_numbers import Bools, to_flags
from freezeframe.log.primitives.far_times import instants
from freezeframe.log.statistics.data_skipping import MILLISECOND_US, is_only_nulls, value_bounds
from freezeframe.log.statistics.statistics_texts import read_texts

_PIECE_ROWS = 1 << 16
_FEW_TEXTS = 8  # the bulk parser costs what some ten texts one by one do
_AS_TEXT: tuple[Callable[[pa.DataType], bool], ...] = (kinds.is_string, kinds.is_date, kinds.is_timestamp)


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Minimum and maximum of a column in each file; null where unknown.

    The bounds exclude nulls and NaN. ``only_nulls`` flags the files that hold only nulls.
    """

    low: pa.ChunkedArray
    high: pa.ChunkedArray
    only_nulls: Bools


def column_bounds(statistics: pa.ChunkedArray, field: pa.Field, key: str) -> ColumnBounds:
    """The bounds of ``field`` per file; ``key`` is its name in the statistics' JSON texts."""
    found = [_piece(texts, field, key) for texts in _pieces(statistics)]
    return ColumnBounds(
        pa.chunked_array([low for low, _, _ in found], field.type),
        pa.chunked_array([high for _, high, _ in found], field.type),
        np.concatenate([flags for _, _, flags in found]) if found else np.zeros(0, np.bool_),
    )


def _pieces(statistics: pa.ChunkedArray) -> Iterator[pa.StringArray]:
    for chunk in statistics.chunks:
        for at in range(0, len(chunk), _PIECE_ROWS):
            yield chunk.slice(at, _PIECE_ROWS)


def _piece(texts: pa.StringArray, field: pa.Field, key: str) -> tuple[pa.Array, pa.Array, Bools]:
    if len(texts) <= _FEW_TEXTS:
        return _read_each(texts, field, key)
    try:
        return _read_at_once(texts, field, key)
    except (pa.ArrowException, _OddType):
        return _read_each(texts, field, key)


class _OddType(Exception):
    """A column type that bulk parsing does not support."""


def _read_at_once(texts: pa.StringArray, field: pa.Field, key: str) -> tuple[pa.Array, pa.Array, Bools]:
    told = _json_type(field.type)
    if told is None:
        raise _OddType
    values = pa.struct([(key, told)])
    schema = pa.schema(
        [
            ("numRecords", pa.int64()),
            ("minValues", values),
            ("maxValues", values),
            ("nullCount", pa.struct([(key, pa.int64())])),
        ]
    )
    table = read_texts(texts, schema, memory_pool=pa.system_memory_pool())
    found = {
        name: pc.struct_field(table[name].combine_chunks(), [key])
        for name in ("minValues", "maxValues", "nullCount")
    }
    nulls = pc.equal(found["nullCount"], table["numRecords"].combine_chunks())
    high = _convert(found["maxValues"], field.type)
    if kinds.is_timestamp(field.type):
        # Delta truncates times to milliseconds, so the true maximum may be up to one later.
        high = pc.add(high.cast(pa.int64()), MILLISECOND_US).cast(field.type)
    return _convert(found["minValues"], field.type), high, to_flags(nulls)


def _json_type(kind: pa.DataType) -> pa.DataType | None:
    """The type for Arrow's JSON reader; None for types that it parses differently from this package."""
    if any(is_kind(kind) for is_kind in _AS_TEXT):
        return pa.string()
    if kinds.is_signed_integer(kind):
        return pa.int64()
    return pa.float64() if kinds.is_float64(kind) else None


def _convert(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if kinds.is_float64(kind):
        return pc.if_else(pc.is_nan(values), None, values)  # NaN is not a bound
    if not kinds.is_timestamp(kind):
        return values if values.type == kind else values.cast(kind)
    return instants(values, kind)


def _read_each(texts: pa.StringArray, field: pa.Field, key: str) -> tuple[pa.Array, pa.Array, Bools]:
    each = texts.to_pylist()
    bounds = [value_bounds(field, key, text) for text in each]
    sides = [_array([pair[side] for pair in bounds], field.type) for side in (0, 1)]
    return sides[0], sides[1], np.array([is_only_nulls(key, text) for text in each], np.bool_)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    nothing = pa.scalar(None, kind)
    return pa.array([nothing if value is None else value for value in values], kind)
