"""Converts a checkpoint's ``stats_parsed`` columns to the JSON of ``add.stats``.

Conversion is by column, never value by value through Python: decimals keep their digits, and dates
beyond Python's range keep their years.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.log.primitives import arrow

_PIECE_ROWS = 1 << 16
_ESCAPED = r'[\x00-\x1f"\\]'


def statistics_texts(structs: pa.ChunkedArray) -> pa.ChunkedArray:
    """One JSON text per struct, null for a null struct, without null fields."""
    pieces = [
        chunk.slice(at, _PIECE_ROWS) for chunk in structs.chunks for at in range(0, len(chunk), _PIECE_ROWS)
    ]
    return pa.chunked_array([_texts(piece) for piece in pieces], pa.string())


def _texts(values: pa.Array) -> pa.Array:
    kind = values.type
    if kinds.is_struct(kind):
        return _object(values)
    if kinds.is_timestamp(kind) or kinds.is_date(kind):
        return _quote_json(arrow.texts(values))
    if kinds.is_floating(kind):
        return _numbers(values)
    if kinds.is_integer(kind) or kinds.is_decimal(kind) or kinds.is_boolean(kind):
        return values.cast(pa.string())
    if kinds.is_string(kind) or kinds.is_binary(kind) or kinds.is_large_string(kind):
        return _escape(values.cast(pa.string()))
    return pa.nulls(len(values), pa.string())  # lists and maps have no statistics


def _object(values: pa.StructArray) -> pa.Array:
    entries = [
        pc.binary_join_element_wise(f"{json.dumps(field.name)}:", _texts(one), ",", "")
        for field, one in zip(values.type, values.flatten(), strict=True)
    ]
    # Arrow's null_handling="skip" would lose the rows that are all null.
    body = pc.binary_join_element_wise(*(pc.fill_null(entry, "") for entry in entries), "")
    whole = pc.binary_join_element_wise("{", pc.ascii_rtrim(body, ","), "}", "")
    return pc.if_else(values.is_valid(), whole, None)


def _numbers(values: pa.Array) -> pa.Array:
    """Numbers as JSON; NaN and infinities quoted, as Spark does."""
    plain = values.cast(pa.string())
    infinite = pc.if_else(pc.greater(values, 0), '"Infinity"', '"-Infinity"')
    return pc.if_else(pc.is_nan(values), '"NaN"', pc.if_else(pc.is_inf(values), infinite, plain))


def _escape(values: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(values, _ESCAPED)).as_py():
        return _quote_json(values)
    builder = pa.lib.StringBuilder()
    builder.append_values([item if item is None else json.dumps(item) for item in values.to_pylist()])
    return builder.finish()


def _quote_json(values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', values, '"', "")
