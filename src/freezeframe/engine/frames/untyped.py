"""Data without a type: columns of nulls, lists of nothing, objects without members, at any depth (pure).

A type of such data says so: Arrow's ``null`` where no value has come yet, a struct without members for
``{}``. Neither Delta's schema nor Parquet has both, so files hold the type that ``settled_type`` gives, and
the first value decides (``docs/decisions/0041``).
"""

from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.python_values import exact_texts

NO_MEMBER = "_freezeframe_no_member"
"""The only member, always null, of a stored struct that has none."""

_TEXT = pa.string()
_NO_MEMBERS = pa.struct([(NO_MEMBER, _TEXT)])


def settled_type(
    kind: pa.DataType, *, nothing: pa.DataType = _TEXT, empty: pa.DataType = _NO_MEMBERS
) -> pa.DataType:
    """Return the type in which files hold the values: text where nothing has decided a type yet.

    ``nothing`` is the type in the place of ``null``, ``empty`` that of structs without members.
    """
    if pa.types.is_null(kind):
        return nothing
    if pa.types.is_struct(kind):
        parts = [(part.name, settled_type(part.type, nothing=nothing, empty=empty)) for part in kind]
        return pa.struct(parts) if parts else empty
    if pa.types.is_list(kind):
        return pa.list_(settled_type(kind.value_type, nothing=nothing, empty=empty))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, settled_type(kind.item_type, nothing=nothing, empty=empty))
    return kind


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as Spark frames show them: text where nothing has a type; structs may be empty."""
    return pa.schema([(item.name, settled_type(item.type, empty=pa.struct([]))) for item in schema])


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as exported Parquet has them, which has no structs without members."""
    fields = [item.with_type(settled_type(item.type, nothing=pa.null())) for item in schema]
    return pa.schema(fields, metadata=schema.metadata)


def has_untyped(kind: pa.DataType) -> bool:
    """Return whether the type, or a part of it, is one that the first value will decide."""
    if pa.types.is_null(kind):
        return True
    if pa.types.is_struct(kind):
        return not kind.num_fields or any(has_untyped(part.type) for part in kind)
    if pa.types.is_map(kind):
        return has_untyped(kind.item_type)
    return pa.types.is_list(kind) and has_untyped(kind.value_type)


def filled_type(array: Any) -> pa.DataType:
    """Return the type of a column or array, open where it has no value."""
    if array.null_count == len(array):
        return pa.null()
    kind, whole = array.type, array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_struct(kind):
        parts = zip(kind, whole.flatten(), strict=True)
        return pa.struct([(part.name, filled_type(held)) for part, held in parts])
    if pa.types.is_list(kind):
        return pa.list_(filled_type(whole.flatten()))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, filled_type(from_zero(whole).items))
    return kind


def fit(column: Any, kind: pa.DataType) -> Any:
    """Convert to a type: members match by name, absent ones are null; parts without a value take any type.

    Text is that of ``exact_texts``, at any depth.
    """
    if column.type == kind:
        return column
    if isinstance(column, pa.Array):
        return _fit(column, kind)
    return pa.chunked_array([_fit(chunk, kind) for chunk in column.chunks], kind)


def _fit(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    if pa.types.is_struct(array.type) and pa.types.is_struct(kind):
        held = dict(zip((part.name for part in array.type), array.flatten(), strict=True))
        wanted = {part.name for part in kind}
        if any(part.null_count < len(part) for name, part in held.items() if name not in wanted):
            raise pa.ArrowInvalid(f"{array.type} has values for which {kind} has no member")
        if not wanted:
            return array.cast(kind)
        parts = [
            _fit(held[part.name], part.type) if part.name in held else pa.nulls(len(array), part.type)
            for part in kind
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(array.type) and pa.types.is_list(kind):
        plain = from_zero(array)
        values = _fit(plain.values, kind.value_type)
        return pa.ListArray.from_arrays(plain.offsets, values, type=kind, mask=plain.is_null())
    if pa.types.is_map(array.type) and pa.types.is_map(kind):
        plain = from_zero(array)
        keys, items = _fit(plain.keys, kind.key_type), _fit(plain.items, kind.item_type)
        return pa.MapArray.from_arrays(plain.offsets, keys, items, type=kind, mask=plain.is_null())
    if pa.types.is_integer(array.type) and pa.types.is_decimal(kind):
        array = array.cast(pa.decimal128(19, 0))  # else Arrow goes by the types alone, not by the values
    return exact_texts(array) if pa.types.is_string(kind) else array.cast(kind)


def from_zero(array: pa.Array) -> pa.Array:
    """Return a list or map whose offsets start at zero: from others Arrow cannot rebuild it."""
    return array if array.offset == 0 else array.take(pa.array(range(len(array)), pa.int64()))
