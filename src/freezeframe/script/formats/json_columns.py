"""Type inference and exact conversion of JSON values.

A column has one kind of value: booleans, texts, objects, lists or numbers. Numbers are ``int64`` where all
are integers, else ``double``, if it holds every integer of the column exactly.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.script.types.inference import ColumnRule, Left, Reading, both
from freezeframe.script.types.written_values import json_array

Values = Sequence[Any]

# In a finding: integers that a double represents exactly, which ``int64`` does not imply.
_NARROW = pa.int32()
_NARROW_MAX = 2**53
_PLAIN: dict[type, pa.DataType] = {bool: pa.bool_(), float: pa.float64(), str: pa.string()}
# Fractions of up to this many digits survive a round trip through a double.
_SAFE_DIGITS = 15
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class JsonColumn:
    """What the values so far say: their own type, None if they are of several kinds; the known ways left."""

    kind: pa.DataType | None = field(default_factory=pa.null)
    left: Left = None

    def with_values(self, values: Values, rule: ColumnRule) -> JsonColumn:
        """The column after more values; ``rule`` has the ways that are known of it."""
        kind = found_kind(values)
        if kind == pa.null():
            return self
        among = range(len(rule.ways)) if self.left is None else self.left
        left = tuple(place for place in among if _exact(values, kind, rule.ways[place]) is not None)
        return JsonColumn(joined_kinds(self.kind, kind), left)

    def join(self, other: JsonColumn) -> JsonColumn:
        """The finding of both together."""
        return JsonColumn(joined_kinds(self.kind, other.kind), both(self.left, other.left))

    def type(self, rule: ColumnRule) -> pa.DataType | None:
        """The column's type once all values have been seen; None if there is none that holds them."""
        if self.left is None or self.left:
            return rule.kind(self.left)
        return None if self.kind is None else _settle(self.kind)

    def array(self, values: Values, rule: ColumnRule) -> pa.Array | pa.ChunkedArray | None:
        """Some of the values in the column's type; None if they are none of those that were seen."""
        kind = found_kind(values) if self.left else None
        if self.left and kind != pa.null():
            return _exact(values, kind, rule.ways[self.left[0]])
        return _build(values, self.type(rule))


def found_kind(values: Values) -> pa.DataType | None:
    """The type of these values, None if they are of several kinds or integers of more than 64 bits."""
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    if not kinds:
        return pa.null()
    if kinds <= {int, float}:
        return _number_kind(kinds, [value for value in present if type(value) is int])
    if len(kinds) > 1:
        return None
    if kinds == {list}:
        inner = found_kind(list(itertools.chain.from_iterable(present)))
        return None if inner is None else pa.list_(inner)
    if kinds == {dict}:
        return _object_kind(present)
    return _PLAIN[kinds.pop()]


def joined_kinds(one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
    """The type that holds the values of both exactly, None if there is none."""
    if one is None or other is None:
        return None
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_list(one) and pa.types.is_list(other):
        inner = joined_kinds(one.value_type, other.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = joined_kinds(fields.get(field.name, pa.null()), field.type)
        return _struct(fields)
    numbers = {one, other}
    if numbers == {_NARROW, pa.int64()}:
        return pa.int64()
    return pa.float64() if numbers == {_NARROW, pa.float64()} else None


def _number_kind(kinds: set[type], integers: list[int]) -> pa.DataType | None:
    least, most = min(integers, default=0), max(integers, default=0)
    is_narrow = max(-least, most) <= _NARROW_MAX
    if float in kinds:
        return pa.float64() if is_narrow else None
    if is_narrow:
        return _NARROW
    return pa.int64() if max(-least - 1, most) < 2**63 else None


def _object_kind(objects: list[dict[str, Any]]) -> pa.DataType | None:
    fields: dict[str, list[Any]] = {}
    for one in objects:
        for name, value in one.items():
            fields.setdefault(name, []).append(value)
    return _struct({name: found_kind(values) for name, values in fields.items()})


def _struct(fields: Mapping[str, pa.DataType | None]) -> pa.DataType | None:
    return None if any(kind is None for kind in fields.values()) else pa.struct(list(fields.items()))


def _settle(kind: pa.DataType) -> pa.DataType:
    """The type that a column's finding determines."""
    if pa.types.is_list(kind):
        return pa.list_(_settle(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _settle(field.type)) for field in kind])
    return pa.int64() if kind == _NARROW else kind


def _exact(values: Values, kind: pa.DataType | None, way: Reading) -> pa.Array | pa.ChunkedArray | None:
    """The values, of which ``kind`` was found, in the type of ``way``, or None if one is not exact in it.

    Texts are read as those of a CSV file are, so that dates and decimals are what JSON has no value for.
    """
    wanted = way.kind
    if kind is not None and _settle(kind) == wanted:
        return _build(values, wanted)
    if pa.types.is_nested(wanted):
        return json_array(values, wanted)
    if pa.types.is_string(wanted):
        return None
    if pa.types.is_binary(wanted):
        return _bytes(values) if kind == pa.string() else None
    if pa.types.is_floating(wanted):
        numbers = _floats(values, wanted)
        if numbers is not None:
            return numbers
    if kind is not None and pa.types.is_nested(kind):
        return None
    texts = [value if value is None or type(value) is str else _text(value) for value in values]
    return way.read(pa.chunked_array([texts], pa.string()))


def _text(value: Any) -> str:
    """A number or boolean as text, empty where digits may have been lost when it was read."""
    text = str(value)
    digits = text.partition("e")[0].replace(".", "").lstrip("-0")
    return "" if type(value) is float and len(digits) > _SAFE_DIGITS else text


def _floats(values: Values, kind: pa.DataType) -> pa.Array | None:
    numbers = [_NOT_FINITE.get(value, value) if type(value) is str else value for value in values]
    if found_kind(numbers) not in {_NARROW, pa.float64()}:
        return None
    doubles = pa.array(numbers, pa.float64())
    if kind == pa.float64():
        return doubles
    singles = doubles.cast(kind)
    is_written_the_same = pc.equal(singles.cast(pa.string()), doubles.cast(pa.string()))
    is_same = pc.or_(pc.equal(singles.cast(pa.float64()), doubles), is_written_the_same)
    return singles if pc.all(is_same, min_count=0).as_py() else None


def _bytes(values: Values) -> pa.Array | None:
    try:
        decoded = [None if value is None else base64.b64decode(value, validate=True) for value in values]
    except ValueError:
        return None
    return pa.array(decoded, pa.binary())


def _build(values: Values, kind: pa.DataType | None) -> pa.Array | None:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None
