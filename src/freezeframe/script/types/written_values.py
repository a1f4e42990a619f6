"""Exact conversion of text columns to typed columns.

A CSV file holds text. A caller who knows what a column means (the stream's stored schema, a catalog) asks for
its values here: each text must be a plain way to write such a value, and no digit may be lost; a text that is
not leaves the whole column as text. So "007" never becomes 7, and a number with twenty digits never becomes a
rounded one.
"""

import base64
import json
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.python_values import far_moments

UTC_TIMESTAMP = pa.timestamp("us", tz="UTC")
NAIVE_TIMESTAMP = pa.timestamp("us")

YEAR = r"(?:000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})"  # Python's dates begin with the year 1
DATE = YEAR + r"-\d\d-\d\d"
INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_INTEGER = r"^(?:0|-?[1-9][0-9]*)(?:\.0+)?$"
_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"  # the JSON grammar
_NAIVE = "^" + DATE + r"[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)$"
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
# Numbers of up to this many digits survive a round trip through the type (C's DBL_DIG, FLT_DIG).
SAFE_DIGITS = {pa.float64(): 15, pa.float32(): 6}


def exact_values(
    text: pa.ChunkedArray, kind: pa.DataType, *, naive_is_utc: bool = False
) -> pa.ChunkedArray | None:
    """Return the text as values of ``kind``, nulls as nulls, or None if a single one is not exact.

    Integers may carry a ".0" (what pandas makes of integers beside missing ones); numbers
    follow JSON's grammar; booleans are true/false, True/False or TRUE/FALSE; dates and timestamps are
    ISO 8601 (times in short forms too: ``20260329T0230Z``), timestamps with a zone for
    ``timestamp[us, UTC]`` and without one for
    ``timestamp[us]``. ``naive_is_utc`` reads timestamps without any zone as UTC.
    """
    if text.null_count == len(text):
        return pa.chunked_array([pa.nulls(len(text), kind)])
    for applies, convert in _CONVERSIONS:
        if applies(kind):
            return convert(text, kind)
    naive = naive_as_utc(text) if kind == UTC_TIMESTAMP and naive_is_utc else None
    if naive is not None:
        return naive
    return _timestamps(text, kind) if pa.types.is_timestamp(kind) else None


def naive_as_utc(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Parse timestamps without a zone as UTC; nulls stay nulls. None if a single one is not exact."""
    naive = cast_or_none(text, NAIVE_TIMESTAMP) if all_match(text, _NAIVE + "$") else None
    return None if naive is None else pc.assume_timezone(naive, "UTC")


def all_match(text: pa.ChunkedArray, pattern: str) -> bool:
    """Return whether every text that is not null matches the RE2 pattern."""
    return bool(pc.all(pc.match_substring_regex(text, pattern), min_count=0).as_py())


def cast_or_none(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return the text parsed by Arrow, or None where Arrow refuses one of them."""
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        return None


def _integers(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    if not all_match(text, _INTEGER):
        return None
    return cast_or_none(pc.replace_substring_regex(text, r"\.0+$", ""), kind)


def _decimals(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    return cast_or_none(text, kind) if all_match(text, _NUMBER) else None


def _floats(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    if not all_match(text, _NUMBER):
        return None
    values = cast_or_none(text, kind)
    if values is None or not pc.all(pc.is_finite(values), min_count=0).as_py():
        return None
    written = digits(text)
    vanished = pc.and_(pc.equal(values, pa.scalar(0, kind)), pc.not_equal(written, ""))
    is_short = pc.less_equal(pc.utf8_length(written), SAFE_DIGITS[kind])
    # A longer one is exact only if the parsed value is written with the same digits.
    is_same = pc.equal(pc.utf8_rtrim(written, "0"), pc.utf8_rtrim(digits(values.cast(pa.string())), "0"))
    is_exact = pc.and_(pc.or_(is_short, is_same), pc.invert(vanished))
    return values if pc.all(is_exact, min_count=0).as_py() else None


def digits(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each number's digits from the first non-zero one, without sign, point and exponent."""
    return pc.utf8_ltrim(pc.replace_substring_regex(text, r"[eE].*$|[-.]", ""), "0")


def _booleans(text: pa.ChunkedArray, _: pa.DataType) -> pa.ChunkedArray | None:
    known = pc.is_in(text, pa.array([*_TRUE, *_FALSE, None], pa.string()))
    if not pc.all(known, min_count=0).as_py():
        return None
    truth = pc.is_in(text, pa.array(_TRUE))
    return pc.if_else(pc.is_valid(text), truth, pa.scalar(None, pa.bool_()))


def _dates(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    return cast_or_none(text, kind) if all_match(text, f"^{DATE}$") else None


def _timestamps(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    pattern = _NAIVE + (_ZONE if kind.tz else "$")
    if not all_match(text, pattern):
        for part, long in _LONG_FORMS:  # 2026-03-29T02:30:00+02:00
            text = pc.replace_substring_regex(text, part, long)
        if not all_match(text, pattern):
            return None
    values = cast_or_none(text, kind)
    if values is None:
        return None
    # An offset can move a time at either end of the calendar outside the years 1 to 9999.
    ends = pc.min_max(values.cast(pa.int64())).as_py()
    return values if ends["min"] >= _MICROSECONDS_MIN and ends["max"] <= _MICROSECONDS_MAX else None


_LONG_FORMS = (
    (r"^(\d{4})(\d\d)(\d\d)[T ]", r"\1-\2-\3T"),
    (r"^(\d{4}-\d\d-\d\d)[T ](\d\d)(\d\d)(\d\d)", r"\1T\2:\3:\4"),
    (r"^(\d{4}-\d\d-\d\d)[T ](\d\d):?(\d\d)([^:\d]|$)", r"\1T\2:\3:00\4"),
    (r"^(\d{4}-\d\d-\d\d)[T ](\d\d)([^:\d]|$)", r"\1T\2:00:00\3"),
    (r"^(.{19}),", r"\1."),
    (r"^(.{19}\.\d{6})0+", r"\1"),
    (r"^(.{19}[.\d]*) ([Z+-])", r"\1\2"),
    (r"^(.{19}[.\d]*[+-]\d\d)$", r"\1:00"),
)

_MICROSECONDS_MIN = -62_135_596_800_000_000  # 0001-01-01T00:00:00Z
_MICROSECONDS_MAX = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z

_Conversion = Callable[[pa.ChunkedArray, pa.DataType], pa.ChunkedArray | None]
_CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], _Conversion], ...] = (
    (pa.types.is_string, lambda text, _: text),
    (pa.types.is_signed_integer, _integers),
    (pa.types.is_decimal, _decimals),
    (SAFE_DIGITS.__contains__, _floats),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_date32, _dates),
)


# Lists, structs and maps are JSON, binary is base64, and floats may be ``NaN`` or infinite; dates and times
# go beyond the years of ``datetime``. All else is as in any file (``text_values``).

_NOT_FINITE = ("NaN", "nan", "inf", "-inf", "Infinity", "-Infinity")
_SAFE_DIGITS = 15


def written_values(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return the text as values of ``kind``, nulls as nulls, or None if a single one is not exact."""
    if pa.types.is_nested(kind):
        try:
            decoded = [None if item is None else _DECODER.decode(item) for item in text.to_pylist()]
        except (ValueError, RecursionError):
            return None
        if sum(item is None for item in decoded) > text.null_count:
            return None  # the text null is no missing value
        return _chunked(json_array(decoded, kind))
    if pa.types.is_binary(kind):
        return _chunked(from_base64(text.to_pylist()))
    if pa.types.is_floating(kind):
        named = pc.is_in(text, pa.array(_NOT_FINITE))
        if not pc.any(named, min_count=0).as_py():
            return exact_values(text, kind)
        numbers = exact_values(pc.if_else(named, None, text), kind)
        if numbers is None:
            return None
        return pc.if_else(named, pc.if_else(named, text, None).cast(kind), numbers)
    values = exact_values(text, kind)
    return far_moments(text, kind) if values is None else values


def json_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Convert values of JSON to a type; None if a single one is not exact. Absent members are null.

    What JSON has no value for is text: dates and decimals, for example. A map is an object, or a list of
    pairs.
    """
    if all(value is None for value in values):
        return pa.nulls(len(values), kind)
    if pa.types.is_struct(kind):
        return _structs(values, kind)
    if pa.types.is_map(kind):
        return _maps(values, kind)
    if pa.types.is_nested(kind):
        return _lists(values, kind)
    if pa.types.is_string(kind) or pa.types.is_boolean(kind):
        wanted = str if pa.types.is_string(kind) else bool
        is_exact = all(value is None or type(value) is wanted for value in values)
        return pa.array(values, kind) if is_exact else None
    if any(isinstance(value, bool | list | dict) for value in values):
        return None
    texts = [None if value is None else _text(value, kind) for value in values]
    column = written_values(pa.chunked_array([texts], pa.string()), kind)
    if column is None and pa.types.is_float32(kind):
        return _singles(texts)
    return None if column is None else column.combine_chunks()


def _structs(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    names = {field.name for field in kind}
    if not all(value is None or (isinstance(value, dict) and value.keys() <= names) for value in values):
        return None
    parts = [
        json_array([None if value is None else value.get(field.name) for value in values], field.type)
        for field in kind
    ]
    if any(part is None for part in parts):
        return None
    missing = pa.array([value is None for value in values])
    if not parts:
        return pa.array([None if value is None else {} for value in values], kind)
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=missing)


def _maps(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    entries = [list(value.items()) if isinstance(value, dict) else value for value in values]
    if not _are_lists(entries) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2  # noqa: PLR2004 - a key and its value
        for entry in entries
        for pair in entry or ()
    ):
        return None
    pairs = [pair for entry in entries for pair in entry or ()]
    keys = json_array([key for key, _ in pairs], kind.key_type)
    items = json_array([item for _, item in pairs], kind.item_type)
    if keys is None or items is None or keys.null_count:
        return None
    return pa.MapArray.from_arrays(_offsets(entries), keys, items, type=kind)


def _lists(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    if not pa.types.is_list(kind) or not _are_lists(values):
        return None
    items = json_array([item for value in values for item in value or ()], kind.value_type)
    return None if items is None else pa.ListArray.from_arrays(_offsets(values), items, type=kind)


def _are_lists(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, list) for value in values)


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Return where each list begins, null for none, and the end."""
    begins = [*accumulate((len(value or ()) for value in values), initial=0)]
    held = [None if value is None else begin for value, begin in zip(values, begins, strict=False)]
    return pa.array([*held, begins[-1]], pa.int32())


def _singles(texts: Sequence[str | None]) -> pa.Array | None:
    """Convert doubles that are written in full and that a float32 holds."""
    doubles = written_values(pa.chunked_array([texts], pa.string()), pa.float64())
    if doubles is None:
        return None
    singles = doubles.cast(pa.float32(), safe=False)
    is_same = pc.or_(pc.equal(singles.cast(pa.float64()), doubles), pc.is_nan(doubles))
    return singles.combine_chunks() if pc.all(is_same, min_count=0).as_py() else None


def from_base64(values: Sequence[str | None]) -> pa.Array | None:
    """Return texts in base64 as binary values; None if one is none."""
    try:
        decoded = [None if value is None else base64.b64decode(value, validate=True) for value in values]
    except ValueError:
        return None
    return pa.array(decoded, pa.binary())


def _chunked(array: pa.Array | None) -> pa.ChunkedArray | None:
    return None if array is None else pa.chunked_array([array])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member is there twice")
    return found


class _Fraction(str):
    """A fraction as it is written, so that no digit is lost before its type is known."""

    __slots__ = ()


def _text(value: Any, kind: pa.DataType) -> str:
    """Return a number as text, empty where a fraction may have lost digits when it was read."""
    text = str(value)
    digits = text.partition("e")[0].replace(".", "").lstrip("-0")
    is_lossy = type(value) is float and len(digits) > _SAFE_DIGITS and not pa.types.is_floating(kind)
    return "" if is_lossy else text


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_Fraction, parse_constant=_refuse)
