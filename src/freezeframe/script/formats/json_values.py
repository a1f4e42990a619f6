"""JSON values as Python's ``json`` gives them, but without loss: numbers of any length, no member twice."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa

DIGITS_MAX = 38
"""What a decimal holds."""
# Of decimals of several scales most are of this type, so that a later sync does not need another one.
_USUAL = pa.decimal128(DIGITS_MAX, 18)
# A number of up to 15 digits and a point is that of its double.
_SHORT_MAX = 16


class UnkeptValue(ValueError):
    """A JSON text is well formed, and a value of it cannot be kept as it is."""


def read_number(text: str) -> int | float | Decimal:
    """The value of a JSON number with a point or an exponent, for ``parse_float``.

    Without a point a whole number of up to 64 bits is an integer (``1e3``). Any other is a double if that
    is written as the same number, else a decimal.

    Raises:
        UnkeptValue: neither a double nor a decimal of 38 digits is this number.
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
    """How many digits a number has before the point, and behind it without zeros at the end."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - a JSON number is finite
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return max(0, value.adjusted() + 1), max(0, -exponent - zeros)


def decimal_type(before: int, after: int) -> pa.DataType | None:
    """The type of numbers with at most so many digits before and behind the point; None if there is none."""
    if before + after > DIGITS_MAX:
        return None
    is_usual = after and before <= DIGITS_MAX - _USUAL.scale and after <= _USUAL.scale
    return _USUAL if is_usual else pa.decimal128(DIGITS_MAX, after)


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of which each member is given once, for ``object_pairs_hook``.

    Raises:
        UnkeptValue: a member is given twice.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UnkeptValue(f"the member {twice!r:.80} is given twice in an object")
    return found


def refuse_constant(text: str) -> NoReturn:
    """Refuse ``NaN`` and infinities, for ``parse_constant``.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{text} is not JSON")


def require_text(text: str, value: Any) -> None:
    """Refuse half of a surrogate pair in the value of a JSON text, which UTF-8 cannot hold.

    Raises:
        ValueError: there is one.
    """
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
        """The same number, an integer of up to 64 bits without an exponent, and zero without a sign.

        Raises:
            UnkeptValue: neither a double nor a decimal of 38 digits is this number.
        """
        if self == "-0":
            return JsonNumber("0")
        value = read_number(self) if "e" in self or "E" in self else None
        return JsonNumber(value) if isinstance(value, int) else self


def parse_letters(line: bytes) -> Any:
    """The value of a JSON text in UTF-8, its numbers as ``JsonNumber``.

    Raises:
        ValueError, RecursionError: it is not JSON, is nested too deeply, gives a member twice, or holds half
            of a surrogate pair.
    """
    text = line.decode()
    value = _LETTERS.decode(text)
    require_text(text, value)
    return value


def json_text(value: Any) -> str:
    """A value as JSON, a ``JsonNumber`` by its own letters."""
    if isinstance(value, JsonNumber | Decimal):
        return str(value)
    if isinstance(value, dict):
        members = (f"{json.dumps(name, ensure_ascii=False)}: {json_text(one)}" for name, one in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def value_text(value: Any) -> str:
    """A value that is not null as the text of its cell: texts as they are, all else as JSON."""
    return str(value) if isinstance(value, str) else json_text(value)


STRICT = json.JSONDecoder(parse_constant=refuse_constant, parse_float=read_number, object_pairs_hook=distinct)
QUICK = json.JSONDecoder(parse_constant=refuse_constant, parse_float=read_number)
"""For text that ``STRICT`` has read before."""
_LETTERS = json.JSONDecoder(
    parse_constant=refuse_constant, parse_float=JsonNumber, parse_int=JsonNumber, object_pairs_hook=distinct
)
