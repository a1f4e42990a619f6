"""How Arrow's nested types and arrays are walked: the one place that knows what is inside of what.

A struct has its members inside, a list of any layout its element, a map its key and its value; every other
type is a leaf, dictionaries and runs too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

_Result = TypeVar("_Result")


def is_list(kind: pa.DataType) -> bool:
    """Return whether the type is a list of any layout."""
    return bool(
        kinds.is_list(kind)
        or kinds.is_large_list(kind)
        or kinds.is_fixed_size_list(kind)
        or kinds.is_list_view(kind)
        or kinds.is_large_list_view(kind)
    )


def parts(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields inside of a type; none of a leaf, and of a struct without members."""
    if kinds.is_struct(kind):
        return list(kind)
    if kinds.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.value_field] if is_list(kind) else []


def with_parts(kind: pa.DataType, types: Sequence[pa.DataType]) -> pa.DataType:
    """Return a type with these types inside, each nullable; a list of any layout becomes a plain one."""
    if kinds.is_struct(kind):
        return pa.struct([(part.name, inside) for part, inside in zip(kind, types, strict=True)])
    if kinds.is_map(kind):
        return pa.map_(*types)
    return pa.list_(*types) if is_list(kind) else kind


def every_type(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield a type and all types inside of it, at any depth, the outer ones first."""
    yield kind
    for part in parts(kind):
        yield from every_type(part.type)


def fold_type(kind: pa.DataType, join: Callable[[pa.DataType, list[_Result]], _Result]) -> _Result:
    """Return what ``join`` makes of a type and of its results for the types inside, the innermost first."""
    return join(kind, [fold_type(part.type, join) for part in parts(kind)])


def map_type(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return the type with ``change`` applied to each type inside, and then to itself; see ``with_parts``."""
    return fold_type(kind, lambda outer, types: change(with_parts(outer, types)))


def inner(array: pa.Array) -> list[pa.Array]:
    """Return the arrays inside of an array, in the order of ``parts``; nothing that lies under a null.

    Members of a struct are as long as it is; the entries of lists and maps follow one another.
    """
    if kinds.is_map(array.type):
        array = pairs(array).flatten()
    elif is_list(array.type):
        return [array.flatten()]
    return array.flatten() if kinds.is_struct(array.type) else []


def pairs(maps: pa.Array) -> pa.Array:
    """Return maps as lists of structs with ``key`` and ``value``."""
    kind = maps.type
    return maps.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))


def with_inner(array: pa.Array, arrays: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """Return an array of ``kind`` with the nulls and lengths of ``array``, and these arrays inside."""
    if kinds.is_struct(kind):
        if not arrays:
            return array.cast(kind)  # a null stays distinct from a struct without members
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=array.is_null())
    lists = pairs(array) if kinds.is_map(array.type) else array
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0)).cast(pa.int32())
    offsets = pa.concat_arrays([pc.fill_null(pa.nulls(1, pa.int32()), 0), ends])
    build = pa.MapArray if kinds.is_map(kind) else pa.ListArray
    return build.from_arrays(offsets, *arrays, type=kind, mask=array.is_null())


def fold_array(array: pa.Array, join: Callable[[pa.Array, list[_Result]], _Result]) -> _Result:
    """Return what ``join`` makes of an array and of its own results for the arrays inside."""
    return join(array, [fold_array(part, join) for part in inner(array)])
