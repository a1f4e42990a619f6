"""Dates and timestamps as Delta's text, beyond the years that ``datetime`` supports.

Arrow parses years of four digits only. The Gregorian calendar repeats every 400 years, so a later
year is shifted by whole cycles into this range, and the parsed value is shifted back by as many days.
Spark writes a year of more than four digits with its sign: ``+10000-01-01``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

_CYCLE_YEARS, _CYCLE_DAYS, _FIRST_YEAR = 400, 146_097, 2000
_DAY_US = 86_400_000_000
_FAR = re.compile(r"([+-]\d{4,7}|\d{5,7})(-\d{1,2}-\d{1,2}\D?.*)", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)

_ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2})$")


def day(text: str) -> pa.Scalar:
    """Parse a date as ``date32``.

    Raises:
        pyarrow.ArrowInvalid: the text is not a date.
    """
    near, cycles = _near(text)
    days = pa.scalar(near).cast(pa.date32()).value + cycles * _CYCLE_DAYS
    return pa.scalar(days, pa.int64()).cast(pa.int32()).cast(pa.date32())


def instant(text: str, kind: pa.DataType, time_zone: tzinfo = UTC) -> pa.Scalar:
    """Parse a timestamp with or without a zone as ``kind`` (microseconds).

    Where ``kind`` has a zone and the text has none, it is a time of ``time_zone``; one that its clocks
    show twice is the earlier, one that they skip is as much later as they skip (as Java's and Spark's).

    Raises:
        pyarrow.ArrowInvalid, OverflowError: the text is not a timestamp of this range.
    """
    near, cycles = _near(text)
    is_zoned = _ZONE.search(near) is not None
    stored = pa.timestamp("us", "UTC") if is_zoned else pa.timestamp("us")
    microseconds = pa.scalar(near).cast(stored).value
    if kind.tz is not None and not is_zoned and time_zone is not UTC:
        shown = _EPOCH + timedelta(microseconds=microseconds)
        microseconds -= (time_zone.utcoffset(shown) or timedelta()) // timedelta(microseconds=1)
    microseconds += cycles * _CYCLE_DAYS * _DAY_US
    return pa.scalar(microseconds, pa.int64()).cast(kind)


def instants(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse timestamps of years of four digits, all with a zone or all without one, as ``kind``.

    Raises:
        pyarrow.ArrowInvalid: other texts.
    """
    with_zone = pc.match_substring_regex(values, _ZONE.pattern)
    is_zoned = pc.any(with_zone).as_py()
    if is_zoned and not pc.all(with_zone).as_py():
        raise pa.ArrowInvalid("times with a zone and without")
    stored = pa.timestamp("us", "UTC") if is_zoned else pa.timestamp("us")
    return values.cast(stored).cast(pa.int64()).cast(kind)


def texts(values: pa.Array) -> pa.Array:
    """Format dates, or times truncated to milliseconds, as in Delta's statistics."""
    if kinds.is_timestamp(values.type):
        if values.type.tz is not None:
            values = values.cast(pa.timestamp(values.type.unit, "UTC"))
        values = pc.floor_temporal(values, unit="millisecond")
        values = values.cast(pa.timestamp("ms", values.type.tz))
    found = pc.replace_substring(values.cast(pa.string()), " ", "T")
    return pc.replace_substring_regex(found, r"^(\d{5,}-)", r"+\1")


def _near(text: str) -> tuple[str, int]:
    """The text with a year of four digits, and the number of 400-year cycles of the shift."""
    match = _FAR.fullmatch(text)
    if match is None:
        return text, 0
    cycles, year = divmod(int(match[1]) - _FIRST_YEAR, _CYCLE_YEARS)
    return f"{_FIRST_YEAR + year}{match[2]}", cycles
