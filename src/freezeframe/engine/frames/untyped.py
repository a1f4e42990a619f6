"""Data without a type: columns of nulls, lists of nothing, objects without members, at any depth (pure).

A type of such data says so: Arrow's ``null`` where no value has come yet, a struct without members for
``{}``. Neither Delta's schema nor Parquet has both, so files hold the type that ``settled_type`` gives, and
the first value decides (``docs/decisions/0041``).
"""

from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.python_values import exact_texts
from freezeframe.nested_types import every_type, fold_array, inner, map_type, parts, with_inner, with_parts

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

    def settled(part: pa.DataType) -> pa.DataType:
        if pa.types.is_null(part):
            return nothing
        return empty if pa.types.is_struct(part) and not part.num_fields else part

    return map_type(kind, settled)


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as Spark frames show them: text where nothing has a type; structs may be empty."""
    return pa.schema([(item.name, settled_type(item.type, empty=pa.struct([]))) for item in schema])


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as exported Parquet has them, which has no structs without members."""
    fields = [item.with_type(settled_type(item.type, nothing=pa.null())) for item in schema]
    return pa.schema(fields, metadata=schema.metadata)


def has_untyped(kind: pa.DataType) -> bool:
    """Return whether the type, or a part of it, is one that the first value will decide."""
    return any(
        pa.types.is_null(part) or (pa.types.is_struct(part) and not part.num_fields)
        for part in every_type(kind)
    )


def filled_type(column: Any) -> pa.DataType:
    """Return the type of a column or array, open where it has no value."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return fold_array(whole, _filled_type)


def _filled_type(array: pa.Array, inside: list[pa.DataType]) -> pa.DataType:
    if array.null_count == len(array):
        return pa.null()
    if pa.types.is_map(array.type):
        return pa.map_(array.type.key_type, inside[1])
    return with_parts(array.type, inside)


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
        held = dict(zip((part.name for part in array.type), inner(array), strict=True))
        wanted = {part.name for part in kind}
        if any(part.null_count < len(part) for name, part in held.items() if name not in wanted):
            raise pa.ArrowInvalid(f"{array.type} has values for which {kind} has no member")
        arrays = [
            _fit(held[part.name], part.type) if part.name in held else pa.nulls(len(array), part.type)
            for part in kind
        ]
        return with_inner(array, arrays, kind)
    if any(is_kind(array.type) and is_kind(kind) for is_kind in (pa.types.is_list, pa.types.is_map)):
        arrays = [_fit(part, wanted.type) for part, wanted in zip(inner(array), parts(kind), strict=True)]
        return with_inner(array, arrays, kind)
    if pa.types.is_decimal(array.type) and pa.types.is_decimal(kind):
        # By more than 32 bits Arrow divides wrongly: 2^64 - 1 with fourteen zeros after the point has a rest.
        for scale in range(array.type.scale - 9, kind.scale - 1, -9):
            array = array.cast(pa.decimal128(38, scale))
    if pa.types.is_integer(array.type) and pa.types.is_decimal(kind):
        array = array.cast(pa.decimal128(19, 0))  # else Arrow goes by the types alone, not by the values
    return exact_texts(array) if pa.types.is_string(kind) else array.cast(kind)
