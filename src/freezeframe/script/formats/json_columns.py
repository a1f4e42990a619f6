"""Columns and values of JSON as Arrow."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.nested_types import every_type
from freezeframe.script.types.typed_columns import ColumnRule, Left, Reading, both
from freezeframe.script.types.written_values import from_base64, json_array

DIGITS_MAX = 38
"""What a decimal holds."""
# Of decimals of several scales most are of this type, so that a later sync does not need another one.
_USUAL = pa.decimal128(DIGITS_MAX, 18)
# A number of up to 15 digits and a point is that of its double.
_SHORT_MAX = 16


class UnkeptValue(ValueError):
    """A JSON text is well formed, and a value of it cannot be kept as it is."""


def read_number(text: str) -> int | float | Decimal:
    """Return the value of a JSON number with a point or an exponent, for ``parse_float``.

    Without a point a whole number of up to 64 bits is an integer (``1e3``). Any other is a double if that
    is written as the same number, else a decimal.
    """
    has_exponent = "e" in text or "E" in text
    if not has_exponent and len(text) <= _SHORT_MAX:
        return float(text)
    value = float(text)
    if repr(value) == text:
        return value
    try:
        exact = Decimal(text)
        if has_exponent and "." not in text and -(2**63) <= exact < 2**63 and exact == int(exact):
            return int(exact)
        if Decimal(repr(value)) == exact:
            return value
        before, after = decimal_places(exact)
    except ArithmeticError:  # an exponent beyond those of decimals
        before, after = DIGITS_MAX, 1
    if before + after > DIGITS_MAX:
        raise UnkeptValue(f"no double and no decimal of {DIGITS_MAX} digits is the number {text:.80}")
    # Zeros at the end would count as digits of the column.
    return exact.scaleb(after).to_integral_value().scaleb(-after) if after else Decimal(int(exact))


def decimal_places(value: Decimal) -> tuple[int, int]:
    """Return how many digits a number has before the point, and behind it without zeros at the end."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - a JSON number is finite
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return max(0, value.adjusted() + 1), max(0, -exponent - zeros)


def decimal_type(before: int, after: int) -> pa.DataType | None:
    """Return the type of numbers with so many digits before and behind the point; None if there is none."""
    if before + after > DIGITS_MAX:
        return None
    is_usual = after and before <= DIGITS_MAX - _USUAL.scale and after <= _USUAL.scale
    return _USUAL if is_usual else pa.decimal128(DIGITS_MAX, after)


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of which each member is given once, for ``object_pairs_hook``."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UnkeptValue(f"the member {twice!r:.80} is given twice in an object")
    return found


def refuse_constant(text: str) -> NoReturn:
    """Refuse ``NaN`` and infinities, for ``parse_constant``."""
    raise ValueError(f"{text} is not JSON")


def require_text(text: str, value: Any) -> None:
    """Refuse half of a surrogate pair in the value of a JSON text, which UTF-8 cannot hold."""
    if "\\ud" in text or "\\uD" in text:
        json.dumps(value, ensure_ascii=False, default=str).encode()


class JsonNumber(str):
    """A number of a JSON text, by the letters that it was written with."""

    __slots__ = ()

    @property
    def is_integer(self) -> bool:
        """Whether it is written without a point and an exponent."""
        return self.isdigit() or self[1:].isdigit()

    @property
    def cell(self) -> JsonNumber:
        """The same number, an integer of up to 64 bits without an exponent, and zero without a sign."""
        if self == "-0":
            return JsonNumber("0")
        value = read_number(self) if "e" in self or "E" in self else None
        return JsonNumber(value) if isinstance(value, int) else self


def parse_letters(line: bytes) -> Any:
    """Return the value of a JSON text in UTF-8, its numbers as ``JsonNumber``."""
    text = line.decode()
    value = _LETTERS.decode(text)
    require_text(text, value)
    return value


def json_text(value: Any) -> str:
    """Return a value as JSON, a ``JsonNumber`` by its own letters."""
    if isinstance(value, JsonNumber | Decimal):
        return str(value)
    if isinstance(value, dict):
        members = (f"{json.dumps(name, ensure_ascii=False)}: {json_text(one)}" for name, one in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def value_text(value: Any) -> str:
    """Return a value that is not null as the text of its cell: texts as they are, all else as JSON."""
    return str(value) if isinstance(value, str) else json_text(value)


STRICT = json.JSONDecoder(parse_constant=refuse_constant, parse_float=read_number, object_pairs_hook=distinct)
QUICK = json.JSONDecoder(parse_constant=refuse_constant, parse_float=read_number)
"""For text that ``STRICT`` has read before."""
_LETTERS = json.JSONDecoder(
    parse_constant=refuse_constant, parse_float=JsonNumber, parse_int=JsonNumber, object_pairs_hook=distinct
)


# A column has one kind of value: booleans, texts, objects, lists or numbers. Numbers are ``int64`` where
# all are integers, ``double`` where that is written as the same number for each of them, else decimals with
# enough digits. What has no value yet (null, the elements of ``[]``) has Arrow's type ``null``, at any depth.

Values = Sequence[Any]

ANY_TEXT = Reading(pa.string(), lambda text: text)
"""The way of a column that is said to be text: its values of any kind are texts, as JSON writes them."""

_PLAIN: dict[type, pa.DataType] = {bool: pa.bool_(), str: pa.string()}
_NUMBERS = {int, float, Decimal}
# Integers up to this are exact as doubles.
_DOUBLE_MAX = 2**53
# The last power of ten that is exact as a double.
_TENS_MAX = 22
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class Numbers:
    """What numbers need: which types hold all of them, and the digits before and behind the point."""

    is_whole: bool
    is_long: bool
    is_double: bool
    before: int
    after: int

    def join(self, other: Numbers) -> Numbers:
        """Return what both need."""
        return Numbers(
            self.is_whole and other.is_whole,
            self.is_long and other.is_long,
            self.is_double and other.is_double,
            max(self.before, other.before),
            max(self.after, other.after),
        )

    @property
    def type(self) -> pa.DataType | None:
        """The type that holds them, None if there is none."""
        if self.is_long:
            return pa.int64()
        return pa.float64() if self.is_double and not self.is_whole else decimal_type(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists, and what kind of elements they have."""

    elements: Kind


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects, and what kind of values their members have."""

    members: Mapping[str, Kind]


Kind: TypeAlias = pa.DataType | Numbers | Lists | Objects
"""What values are: the type of nulls, booleans and texts; of others what decides their type."""


@dataclass(frozen=True, slots=True)
class JsonColumn:
    """What the values so far say: their own kind, None if they are of several; the known ways left."""

    kind: Kind | None = field(default_factory=pa.null)
    left: Left = None

    def with_values(self, values: Values, rule: ColumnRule) -> JsonColumn:
        """Return the column after more values; ``rule`` has the ways that are known of it."""
        kind = found_kind(values)
        if kind == pa.null():
            return self
        among = range(len(rule.ways)) if self.left is None else self.left
        left = tuple(index for index in among if _exact(values, kind, rule.ways[index], kind) is not None)
        return JsonColumn(joined_kinds(self.kind, kind), left)

    def join(self, other: JsonColumn) -> JsonColumn:
        """Return the finding of both together."""
        return JsonColumn(joined_kinds(self.kind, other.kind), both(self.left, other.left))

    def type(self, rule: ColumnRule) -> pa.DataType | None:
        """Return the column's type once all values have been seen; None if there is none that holds them."""
        found = type_of(self.kind)
        return _decided(rule.kind(self.left), found) if self.left is None or self.left else found

    def array(self, values: Values, rule: ColumnRule) -> pa.Array | pa.ChunkedArray | None:
        """Return some of the values in the column's type; None if they are none of those that were seen."""
        kind = found_kind(values) if self.left else None
        if self.left and kind != pa.null():
            return _exact(values, kind, rule.ways[self.left[0]], self.kind)
        return _build(values, self.type(rule))


def found_kind(values: Values) -> Kind | None:
    """Return the kind of these values, None if they are of several."""
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    if not kinds:
        return pa.null()
    if kinds <= _NUMBERS:
        described = (
            _DESCRIPTIONS[kind](
                [number for number in present if type(number) is kind] if len(kinds) > 1 else present
            )
            for kind in kinds
        )
        return functools.reduce(Numbers.join, described)
    if len(kinds) > 1:
        return None
    if kinds == {list}:
        elements = found_kind(list(itertools.chain.from_iterable(present)))
        return None if elements is None else Lists(elements)
    return _object_kind(present) if kinds == {dict} else _PLAIN[kinds.pop()]


def joined_kinds(one: Kind | None, other: Kind | None) -> Kind | None:
    """Return the kind of both, None if they do not go together; members of the first come first."""
    if one is None or other is None:
        return None
    if one == pa.null():
        return other
    if other == pa.null() or one == other:  # equal mappings may differ in their order
        return one
    if isinstance(one, Numbers) and isinstance(other, Numbers):
        return one.join(other)
    if isinstance(one, Lists) and isinstance(other, Lists):
        elements = joined_kinds(one.elements, other.elements)
        return None if elements is None else Lists(elements)
    if isinstance(one, Objects) and isinstance(other, Objects):
        members = {
            name: joined_kinds(one.members.get(name, pa.null()), other.members.get(name, pa.null()))
            for name in {**one.members, **other.members}
        }
        return _objects(members)
    return None


def type_of(kind: Kind | None) -> pa.DataType | None:
    """Return the type that holds all values of which this was found, None if there is none."""
    if isinstance(kind, Numbers):
        return kind.type
    if isinstance(kind, Lists):
        elements = type_of(kind.elements)
        return None if elements is None else pa.list_(elements)
    if isinstance(kind, Objects):
        types = {name: type_of(member) for name, member in kind.members.items()}
        return None if None in types.values() else pa.struct(list(types.items()))
    return kind


def _integers(numbers: list[int]) -> Numbers:
    least, most = min(numbers), max(numbers)
    size = max(-least, most)
    return Numbers(
        is_whole=True,
        is_long=max(-least - 1, most) < 2**63,
        is_double=size <= _DOUBLE_MAX,
        before=len(str(size)),
        after=0,
    )


def _doubles(numbers: list[float]) -> Numbers:
    left = np.abs(np.array(numbers))
    before, after = len(str(int(left.max()))), 0
    for digits_behind in range(_TENS_MAX + 1):
        is_all = np.round(left, digits_behind) == left
        if is_all.any():
            # Beyond 2**53 rounding changes nothing, and one of the 17 digits may be behind these places.
            has_more = digits_behind > 0 and left[is_all].max() * 10.0**digits_behind > _DOUBLE_MAX
            after, left = digits_behind + has_more, left[~is_all]
        if not len(left):
            break
    after = max([after, *(decimal_places(Decimal(repr(item)))[1] for item in left.tolist())])
    return Numbers(is_whole=False, is_long=False, is_double=True, before=before, after=after)


def _decimals(numbers: list[Decimal]) -> Numbers:
    digits_behind = list(map(decimal_places, numbers))
    before, after = (max(sizes) for sizes in zip(*digits_behind, strict=True))
    return Numbers(is_whole=False, is_long=False, is_double=False, before=before, after=after)


_DESCRIPTIONS: dict[type, Callable[[list[Any]], Numbers]] = {
    int: _integers,
    float: _doubles,
    Decimal: _decimals,
}


def _object_kind(objects: list[dict[str, Any]]) -> Objects | None:
    members: dict[str, list[Any]] = {}
    for item in objects:
        for name, value in item.items():
            members.setdefault(name, []).append(value)
    return _objects({name: found_kind(values) for name, values in members.items()})


def _objects(members: Mapping[str, Kind | None]) -> Objects | None:
    known = {name: kind for name, kind in members.items() if kind is not None}
    return Objects(known) if len(known) == len(members) else None


def _decided(known: pa.DataType, found: pa.DataType | None) -> pa.DataType:
    """Return the known type; what is open in it has the type that was found there."""
    if found is None or pa.types.is_null(known):
        return known if found is None else found
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(_decided(known.value_type, found.value_type))
    if not (pa.types.is_struct(known) and pa.types.is_struct(found)):
        return known
    if not known.num_fields:
        return found
    types = {part.name: part.type for part in found}
    return pa.struct([(part.name, _decided(part.type, types.get(part.name))) for part in known])


def _exact(
    values: Values, kind: Kind | None, way: Reading, whole: Kind | None
) -> pa.Array | pa.ChunkedArray | None:
    """Return values of the found ``kind`` in the type of ``way``, or None if one is not exact in it.

    What is open in that type has the type of ``whole``, which was found of these and other values.
    Texts are read as those of a CSV file are, so that dates and decimals are what JSON has no value for.
    """
    wanted = _decided(way.kind, type_of(whole)) if pa.types.is_nested(way.kind) else way.kind
    if kind == pa.null():
        return pa.nulls(len(values), wanted)
    if way is ANY_TEXT:
        return pa.array([value if value is None else value_text(value) for value in values], pa.string())
    if type_of(kind) == wanted:
        return _build(values, wanted)
    if pa.types.is_nested(wanted):
        return json_array(values, wanted)
    if isinstance(kind, Lists | Objects) or pa.types.is_string(wanted):
        return None
    if pa.types.is_binary(wanted):
        return from_base64(values) if kind == pa.string() else None
    if pa.types.is_floating(wanted):
        numbers = _floats(values, wanted)
        if numbers is not None:
            return numbers
    texts = [value if value is None or type(value) is str else str(value) for value in values]
    return way.read(pa.chunked_array([texts], pa.string()))


def _floats(values: Values, wanted: pa.DataType) -> pa.Array | None:
    numbers = [_NOT_FINITE.get(value, value) if type(value) is str else value for value in values]
    finite = [number for number in numbers if type(number) is not float or math.isfinite(number)]
    kind = found_kind(finite)
    if kind != pa.null() and not (isinstance(kind, Numbers) and kind.is_double):
        return None
    doubles = pa.array(numbers, pa.float64())
    if wanted == pa.float64():
        return doubles
    singles = doubles.cast(wanted)
    is_written_the_same = pc.equal(singles.cast(pa.string()), doubles.cast(pa.string()))
    is_same = pc.or_(pc.equal(singles.cast(pa.float64()), doubles), is_written_the_same)
    return singles if pc.all(is_same, min_count=0).as_py() else None


def _build(values: Values, wanted: pa.DataType | None) -> pa.Array | None:
    if wanted is not None and any(
        map(pa.types.is_decimal, every_type(wanted))
    ):  # Arrow makes none of a double
        if pa.types.is_nested(wanted):
            return json_array(values, wanted)
        values = [Decimal(repr(value)) if type(value) is float else value for value in values]
    try:
        return pa.array(values, wanted)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None
