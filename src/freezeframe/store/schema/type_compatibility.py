"""Type compatibility: the type that holds the values of two types unchanged (pure).

Leaves widen as numbers do (whole to wider whole, to decimal, to double where exact; float to double;
date to a timestamp without zone); structs take the fields of both; lists and maps go by their
elements. Nothing is ever turned into text, and a text never into something else.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.python_values import date_texts, far_moments, moment_texts
from freezeframe.engine.frames.untyped import fit

_EXACT_IN_DOUBLE = 2**53
_WIDEST = 64
_DECIMAL_DIGITS_MAX = 38
_DIGITS_OF = {8: 3, 16: 5, 32: 10, _WIDEST: 19}

Range = tuple[Any, Any]


def widens(stored: pa.DataType, incoming: pa.DataType, stored_range: Range | None = None) -> bool:
    """Whether every stored value converts exactly to the incoming type, by type or known range."""
    if pa.types.is_integer(stored) and pa.types.is_integer(incoming):
        return bool(incoming.bit_width > stored.bit_width)
    if pa.types.is_integer(stored) and pa.types.is_decimal(incoming):
        return bool(incoming.precision - incoming.scale >= _digits(stored))
    if pa.types.is_integer(stored) and pa.types.is_float64(incoming):
        return bool(stored.bit_width < _WIDEST or _within(stored_range, _EXACT_IN_DOUBLE))
    if pa.types.is_decimal(stored) and pa.types.is_decimal(incoming):
        wholes = incoming.precision - incoming.scale, stored.precision - stored.scale
        return bool(incoming.scale >= stored.scale and wholes[0] >= wholes[1])
    if pa.types.is_float32(stored) and pa.types.is_float64(incoming):
        return True
    return bool(pa.types.is_date(stored) and is_local_time(incoming))


def may_take(stored: pa.DataType, incoming: pa.DataType) -> bool:
    """Whether a conversion between the types is allowed in principle; the values decide the rest."""
    if pa.types.is_integer(stored) and pa.types.is_integer(incoming):
        return True
    if is_number(stored) and is_number(incoming):
        # The double 0.1 differs from the decimal 0.1; the intended value is unknown.
        return not (pa.types.is_decimal(stored) and pa.types.is_floating(incoming))
    # A frame's dates are text where a file's were; text that is a date in ISO 8601 has one meaning.
    return bool(
        (is_local_time(stored) and pa.types.is_date(incoming))
        or (pa.types.is_date(stored) and pa.types.is_string(incoming))
    )


def shared_decimal(stored: pa.DataType, incoming: pa.DataType) -> pa.DataType | None:
    """The common decimal type of an integer or decimal column and a decimal, within 38 digits."""
    scales, wholes = [], []
    for kind in (stored, incoming):
        if pa.types.is_decimal(kind):
            scales.append(kind.scale)
            wholes.append(kind.precision - kind.scale)
        elif pa.types.is_integer(kind):
            scales.append(0)
            wholes.append(_digits(kind))
        else:
            return None
    precision = max(wholes) + max(scales)
    return pa.decimal128(precision, max(scales)) if precision <= _DECIMAL_DIGITS_MAX else None


def common_nested(stored: pa.DataType, incoming: pa.DataType) -> pa.DataType | None:
    """One type for two nested ones, or None: fields of both sides, leaves by their types alone."""
    if stored == incoming or pa.types.is_null(incoming):
        return stored
    if pa.types.is_null(stored):
        return incoming
    if pa.types.is_struct(stored) and pa.types.is_struct(incoming):
        return _common_struct(stored, incoming)
    if pa.types.is_list(stored) and pa.types.is_list(incoming):
        element = common_nested(stored.value_type, incoming.value_type)
        return None if element is None else pa.list_(element)
    if pa.types.is_map(stored) and pa.types.is_map(incoming):
        key = common_nested(stored.key_type, incoming.key_type)
        item = common_nested(stored.item_type, incoming.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if widens(stored, incoming):
        return incoming
    return stored if widens(incoming, stored) else shared_decimal(stored, incoming)


def has_exact_text(kind: pa.DataType) -> bool:
    """Whether each value has one exact text, the same in Arrow and in Spark."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_string(kind)
    )


def meet_as_text(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether one is text, and the other one says its values as text exactly: a column that became text."""
    is_text = bool(pa.types.is_string(one) or pa.types.is_string(other))
    return one != other and is_text and has_exact_text(one) and has_exact_text(other)


def cast_to(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast the values; to text in Spark's format.

    Raises:
        pa.ArrowException: a value cannot be cast.
    """
    if pa.types.is_string(kind) and pa.types.is_date(column.type):
        return date_texts(column)
    if pa.types.is_string(kind) and pa.types.is_timestamp(column.type):
        return moment_texts(column)
    if pa.types.is_string(column.type) and (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        far = far_moments(column, kind)
        if far is not None:
            return far
    if pa.types.is_string(kind) and pa.types.is_decimal(column.type):
        # Arrow would write a small decimal with an exponent, where Spark, which casts stored ones, does not.
        texts = [None if value is None else format(value, "f") for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, kind)])
    return fit(column, kind)


def is_number(kind: pa.DataType) -> bool:
    """Whether its values are numbers: whole ones, floats or decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_local_time(kind: pa.DataType) -> bool:
    """Whether it is a timestamp without a zone."""
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _common_struct(stored: pa.DataType, incoming: pa.DataType) -> pa.DataType | None:
    fields = {part.name: part.type for part in _parts(stored)}
    folded = {name.casefold(): name for name in fields}
    for part in _parts(incoming):
        if folded.get(part.name.casefold(), part.name) != part.name:
            return None  # names that differ by case only are one name to many readers
        kind = common_nested(fields[part.name], part.type) if part.name in fields else part.type
        if kind is None:
            return None
        fields[part.name] = kind
    return pa.struct([pa.field(name, kind) for name, kind in fields.items()])


def _parts(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(index) for index in range(kind.num_fields)]


def _digits(kind: pa.DataType) -> int:
    return _DIGITS_OF[kind.bit_width]


def _within(stored_range: Range | None, limit: int) -> bool:
    return stored_range is not None and -limit <= stored_range[0] and stored_range[1] <= limit
