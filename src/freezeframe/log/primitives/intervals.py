"""Durations of table properties: ``interval 7 days``, ``interval 1 week 2 hours``."""

from __future__ import annotations

import re

from freezeframe.errors import InvalidOption

_UNITS_MS = {
    "microsecond": 0.001,
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
    "month": 31 * 86_400_000,
    "year": 366 * 86_400_000,
}
_PART = re.compile(r"\s*([+-]?\d+)\s+([a-z]+?)s?(?=\s|$)")


def milliseconds(text: str) -> int:
    """Parse an interval in ms; a month counts 31 days and a year 366, so that nothing is deleted early.

    Raises:
        InvalidOption: the text is not an interval.
    """
    body = text.strip().lower().removeprefix("interval")
    total, at = 0.0, 0
    while body[at:].strip():
        match = _PART.match(body, at)
        if match is None or match[2] not in _UNITS_MS:
            break
        total += int(match[1]) * _UNITS_MS[match[2]]
        at = match.end()
    if at == 0 or body[at:].strip():
        raise InvalidOption(
            f"{text!r} is not a duration.",
            cause="A duration is a number and a unit from microseconds to years, as in 'interval 7 days'.",
            remedy="Set the table property to such a text.",
        )
    return int(total)
