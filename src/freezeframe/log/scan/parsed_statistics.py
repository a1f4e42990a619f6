"""Statistics in their forms: JSON text and parsed columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as kinds

from freezeframe.errors import CorruptLog
from freezeframe.log.format.conversion import partition_scalar
from freezeframe.log.format.schema import CHANGES_KEY, arrow_type, fields_of, physical_name
from freezeframe.log.primitives import json_fields
from freezeframe.log.primitives.arrow import day, instant, instants
from freezeframe.log.scan.data_skipping import BOUNDED
from freezeframe.nested_types import map_type


def read_texts(texts: pa.StringArray, schema: pa.Schema, **options: Any) -> pa.Table:
    """Return the objects as rows with the columns of ``schema``; a null or empty text is an empty object.

    ``options`` are those of ``pyarrow.json.read_json``.
    """
    if pc.any(pc.match_substring(texts, "\n")).as_py():
        raise pa.ArrowInvalid("a line break")
    lines = pc.if_else(pc.equal(pc.fill_null(pc.binary_length(texts), 0), 0), "{}", texts)
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    table = pj.read_json(
        pa.BufferReader(pc.binary_join(whole, "\n").buffers()[2]),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        **options,
    )
    if table.num_rows != len(texts):
        raise pa.ArrowInvalid("more or fewer values than texts")
    return table


# Statistics and partition values of files as structs of typed values, for checkpoints.
#
# The reverse of ``statistics_json``. Source: the protocol's section "Checkpoint Schema" (``stats_parsed``,
# ``partitionValues_parsed``). A value that is not of its column's type is left out, as a bound may be.

_PIECE_ROWS = 1 << 14


def statistics_type(schema: Mapping[str, Any], partition_columns: Sequence[str]) -> pa.StructType:
    """Return type of ``stats_parsed`` of a table: bounds and null counts of its columns by physical names."""
    stored = [field for field in fields_of(schema) if field["name"] not in partition_columns]
    fields = [pa.field("numRecords", pa.int64())]
    bounds, counts = _members(stored, _bound), _members(stored, lambda _: pa.int64())
    if bounds.num_fields:
        fields += [pa.field("minValues", bounds), pa.field("maxValues", bounds)]
    if counts.num_fields:
        fields.append(pa.field("nullCount", counts))
    return pa.struct([*fields, pa.field("tightBounds", pa.bool_())])


def partition_type(schema: Mapping[str, Any], partition_columns: Sequence[str]) -> pa.StructType:
    """Return the type of ``partitionValues_parsed`` of a table: its partition columns by physical names."""
    fields = {field["name"]: field for field in fields_of(schema)}
    chosen = [fields[name] for name in partition_columns if name in fields]
    return pa.struct([pa.field(physical_name(field), arrow_type(field["type"])) for field in chosen])


def parse_statistics(texts: pa.ChunkedArray, kind: pa.StructType) -> pa.ChunkedArray:
    """Return each JSON text as a struct; null for a null text and for one that is not an object."""
    pieces = [
        _parse(chunk.slice(at, _PIECE_ROWS), kind)
        for chunk in texts.chunks
        for at in range(0, len(chunk), _PIECE_ROWS)
    ]
    return pa.chunked_array(pieces, kind)


def parse_partition_values(
    values: pa.ChunkedArray, kind: pa.StructType, time_zone: tzinfo = UTC
) -> pa.ChunkedArray:
    """Return each map of texts as a struct of typed values; a value of another type is null."""
    pieces = []
    for chunk in values.chunks:
        columns = [_typed(pc.map_lookup(chunk, field.name, "last"), field.type, time_zone) for field in kind]
        pieces.append(pa.StructArray.from_arrays(columns, fields=list(kind)))
    return pa.chunked_array(pieces, kind)


_Leaf = Callable[[Mapping[str, Any]], pa.DataType | None]


def _members(fields: Sequence[Mapping[str, Any]], leaf: _Leaf) -> pa.StructType:
    """Return a struct of what ``leaf`` gives the fields that are no structs, without those it gives None."""
    found = []
    for field in fields:
        kind = field["type"]
        is_struct = isinstance(kind, Mapping) and kind.get("type") == "struct"
        inside = _members(fields_of(kind), leaf) if is_struct else leaf(field)
        if inside is not None and (inside.num_fields or not is_struct):
            found.append(pa.field(physical_name(field), inside))
    return pa.struct(found)


def _bound(field: Mapping[str, Any]) -> pa.DataType | None:
    changes = (field.get("metadata") or {}).get(CHANGES_KEY) or ()
    if field["type"] == "double" and any(change.get("fromType") == "float" for change in changes):
        return None  # a text such as 0.2 may stand for a float, and so for another double
    kind = arrow_type(field["type"])
    return kind if any(is_kind(kind) for is_kind in BOUNDED) else None


def _typed(texts: pa.Array, kind: pa.DataType, time_zone: tzinfo) -> pa.Array:
    """Parse each distinct text once."""
    encoded = texts.dictionary_encode()
    found = []
    for text in encoded.dictionary.to_pylist():
        try:
            found.append(partition_scalar(text, kind, time_zone))
        except CorruptLog:
            found.append(pa.scalar(None, kind))
    return pa.array(found, kind).take(encoded.indices)


def _parse(texts: pa.StringArray, kind: pa.StructType) -> pa.StructArray:
    try:
        table = read_texts(
            texts,
            pa.schema(list(map_type(kind, _json_type))),
            read_options=pj.ReadOptions(use_threads=False, block_size=1 << 30),
        )
        columns = [_cast(table[field.name].combine_chunks(), field.type) for field in kind]
        missing = pc.invert(pc.greater(pc.fill_null(pc.binary_length(texts), 0), 0))
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=missing)
    except pa.ArrowException:
        # A text of another shape than most: quoted NaN, a year of five digits, a line break.
        found = (json_fields.statistics(text) for text in texts.to_pylist())
        return pa.array([_convert(item, kind) if item else None for item in found], kind)


def _json_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in JSON: dates and times are texts there."""
    return pa.string() if kinds.is_date(kind) or kinds.is_timestamp(kind) else kind


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if kinds.is_struct(kind):
        columns = [_cast(part, field.type) for part, field in zip(values.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=pc.is_null(values))
    is_time = kinds.is_timestamp(kind) and values.null_count < len(values)
    return instants(values, kind) if is_time else values.cast(kind)


def _convert(value: Any, kind: pa.DataType) -> Any:
    """Return one value of a text as a Python value or scalar of the type; None where it is not one."""
    if kinds.is_struct(kind):
        if not isinstance(value, Mapping):
            return None
        return {field.name: _convert(value.get(field.name), field.type) for field in kind}
    try:
        if kinds.is_timestamp(kind):
            return instant(value, kind).as_py() if isinstance(value, str) else None
        if kinds.is_date(kind):
            return day(value).as_py() if isinstance(value, str) else None
        if kinds.is_floating(kind):
            return None if value is None or isinstance(value, bool) else float(value)
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None
