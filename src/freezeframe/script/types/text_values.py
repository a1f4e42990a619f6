"""Exact conversion of text columns to typed columns.

A CSV file holds text. Whoever knows what a column means (the stream's stored schema, a
catalog) may ask for its values here: each text must be a plain way to write such a value, and
no digit may be lost; one that is not leaves the whole column as text. So "007" never becomes
7, and a number with twenty digits never becomes a rounded one.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

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
    """The text as values of ``kind``, nulls as nulls, or None if a single one is not exact.

    Integers may carry a ".0" (what pandas makes of integers beside missing ones); numbers
    follow JSON's grammar; booleans are true/false, True/False or TRUE/FALSE; dates and timestamps are
    ISO 8601, timestamps with a zone for ``timestamp[us, UTC]`` and without one for
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
    """Timestamps without a zone as those of UTC, nulls as nulls, or None if a single one is not exact."""
    naive = cast_or_none(text, NAIVE_TIMESTAMP) if all_match(text, _NAIVE + "$") else None
    return None if naive is None else pc.assume_timezone(naive, "UTC")


def all_match(text: pa.ChunkedArray, pattern: str) -> bool:
    """Whether every text that is not null matches the RE2 pattern."""
    return bool(pc.all(pc.match_substring_regex(text, pattern), min_count=0).as_py())


def cast_or_none(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """The text parsed by Arrow, or None where Arrow refuses one of them."""
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
    """Of each number its digits from the first on that is not zero, without sign, point and exponent."""
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
    if not all_match(text, _NAIVE + (_ZONE if kind.tz else "$")):
        return None
    values = cast_or_none(text, kind)
    if values is None:
        return None
    # An offset can move a time at either end of the calendar outside the years 1 to 9999.
    ends = pc.min_max(values.cast(pa.int64())).as_py()
    return values if ends["min"] >= _MICROSECONDS_MIN and ends["max"] <= _MICROSECONDS_MAX else None


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
