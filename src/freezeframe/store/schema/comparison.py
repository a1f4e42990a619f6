"""Comparison of cells and schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.engine.frames.python_values import python_values
from freezeframe.engine.frames.untyped import settled_type
from freezeframe.log.schema.column_mapping import PHYSICAL_NAME_KEY
from freezeframe.log.schema.schema import arrow_to_delta
from freezeframe.store.schema.type_compatibility import cast_to, common_nested, meet_as_text, stored_field

# Cell-by-cell comparison of two columns, used by every comparison of rows (pure).
#
# A null equals a null, NaN equals NaN, -0.0 is not 0.0, and the entries of a map have no order
# (``docs/reference/semantics.md``). Values of two types are never the same.

# Types whose Python values compare exactly as they are.
_PLAIN = (kinds.is_string, kinds.is_large_string, kinds.is_integer, kinds.is_boolean, kinds.is_decimal)


def cells_differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """Mask of the differing cells of two columns of the same length."""
    if old.type != new.type or kinds.is_nested(old.type) or kinds.is_null(old.type):
        return _values_differ(old, new)
    same = pc.equal(old, new)
    if kinds.is_floating(old.type):
        same = pc.and_(same, pc.equal(_signs(old), _signs(new)))
        same = pc.or_kleene(same, pc.and_(pc.is_nan(old), pc.is_nan(new)))
    same = pc.fill_null(same, fill_value=False)
    if old.null_count and new.null_count:
        same = pc.or_(same, pc.and_(pc.is_null(old), pc.is_null(new)))
    return _to_chunked(pc.invert(same))


def _signs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Mask of the negative numbers, -0.0 included; the sign of NaN is ignored."""
    bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[column.type.bit_width]
    return pc.less(pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits), 0)


def _values_differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    # Values of two different types are never equal.
    pairs = zip(plain_values(old), plain_values(new), strict=True)
    has_one_type = old.type == new.type
    differ = [(before != after) if has_one_type else not (before is after is None) for before, after in pairs]
    return pa.chunked_array([pa.array(differ, pa.bool_())])


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """The values in a form with exact equality; all have one type."""
    values = python_values(column)
    if any(is_plain(column.type) for is_plain in _PLAIN):
        return values
    return [_plain(value, column.type) for value in values]


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kinds.is_temporal(kind):
        # The form must not depend on other values of the column beyond the range of ``datetime``.
        held = value.item() if isinstance(value, np.datetime64) else value
        return held.replace(tzinfo=None) if isinstance(held, datetime) else held
    if kinds.is_map(kind):
        entries = [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value]
        return sorted(entries, key=repr)
    if kinds.is_struct(kind) and isinstance(value, Mapping):
        return [(field.name, _plain(value.get(field.name), field.type)) for field in kind]
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    # The text distinguishes -0.0 from 0.0 and is unique to the number.
    return repr(value) if isinstance(value, float) else value


def _to_chunked(column: Any) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


# The common type in which values of two types are compared without rounding (pure).
#
# Where one type holds the values of both exactly, that is the type. Text and a type whose values have one
# exact text are compared as text, so that a column that became text says the same. Else, as for a time and
# a
# number, values of the two types are never the same.

Schema = Mapping[str, Any]

_DAY_US = 86_400_000_000
_DAYS_OF_TIMESTAMPS = (2**63 - 1) // _DAY_US
_LEAST = -(2**63)


@dataclass(frozen=True, slots=True)
class ComparedColumns:
    """The columns of two schemas for an engine to read and compare.

    ``stored`` are the old columns; one that has no type in common with the new column of its name has
    another name here, so that the two are never the same. ``target`` has the names and types to compare in.
    """

    stored: dict[str, Any]
    target: dict[str, Any]


def comparison_type(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """The type that holds values of both types exactly; None where there is none."""
    if meet_as_text(old, new):
        return pa.string()
    kind = common_nested(old, new)
    return None if kind is None else settled_type(kind)


def in_common(column: Any, kind: pa.DataType) -> pa.ChunkedArray:
    """The column in the type of ``comparison_type``; a day that no timestamp reaches is the least one."""
    if not (pa.types.is_date(column.type) and pa.types.is_timestamp(kind)):
        return cast_to(column, kind)
    days = column.cast(pa.int32()).cast(pa.int64())
    reached = pc.less_equal(pc.abs(days), _DAYS_OF_TIMESTAMPS)
    moments = pc.multiply(pc.if_else(reached, days, 0), _DAY_US)
    return pc.if_else(reached, moments, pa.scalar(_LEAST)).cast(kind)


def exact_cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Cast the column if every value stays the same, else None."""
    try:
        cast = cast_to(column, kind)
        back = cast_to(cast, column.type)
    except (pa.ArrowException, ValueError):
        return None
    if not pa.types.is_floating(column.type) and back.equals(column):
        return cast
    return None if pc.any(cells_differ(column, back)).as_py() else cast


def compare_columns(stored: Schema, new: Schema) -> ComparedColumns:
    """Plan the comparison of rows with the columns ``stored`` and rows with ``new``.

    What only the stored rows have is not compared.
    """
    held = {field["name"]: field for field in stored["fields"]}
    taken = {field["name"].casefold() for field in (*stored["fields"], *new["fields"])}
    target: list[dict[str, Any]] = []
    for field in new["fields"]:
        old = held.get(field["name"])
        kind = comparison_type(stored_field(old).type, stored_field(field).type) if old else None
        if old is not None and kind is None:
            name = _free(field["name"], taken)
            held[field["name"]] = _rename(old, name)
            target.append({**old, "name": name})
        target.append(field if kind is None else _retype(field, kind))
    return ComparedColumns({**stored, "fields": list(held.values())}, {**new, "fields": target})


def _free(name: str, taken: set[str]) -> str:
    """An unused column name."""
    while name.casefold() in taken:
        name = f"{name}_before"
    taken.add(name.casefold())
    return name


def _rename(field: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The field under another logical name, with its physical name unchanged."""
    metadata = field.get("metadata") or {}
    physical = metadata.get(PHYSICAL_NAME_KEY, field["name"])
    return {**field, "name": name, "metadata": {**metadata, PHYSICAL_NAME_KEY: physical}}


def _retype(field: Mapping[str, Any], kind: pa.DataType) -> dict[str, Any]:
    (retyped,) = arrow_to_delta(pa.schema([pa.field(field["name"], kind)]))["fields"]
    return {**field, "type": retyped["type"]}
