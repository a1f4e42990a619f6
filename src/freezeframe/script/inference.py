"""What a text column is, when nobody says: the most that can be told without losing a letter.

A column is typed only if its texts can be written again, letter by letter, from the typed
values and one convention that holds for the whole column (whole floats as ``2.0`` or as
``2``, say; ``True`` or ``true``; ``T`` or a blank before the time). "007", "1.50" beside
"1.5", "1e5", "+33", "-0", " 1", numbers with twenty digits, "NA" and "null" therefore leave
the column as text.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.script.text_values import (
    DATE,
    INTEGER,
    NAIVE_TIMESTAMP,
    UTC_TIMESTAMP,
    all_match,
    cast_or_none,
    exact_values,
)

_BOOLEANS = (r"^(?:True|False)$", r"^(?:true|false)$")
_DECIMAL_POINT = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$"
_CLOCK = r"\d\d:\d\d:\d\d"
_ISOFORMAT = r"(?:\.\d{6})?"  # Python's isoformat leaves the fraction out when it is zero
_FRACTIONS = ("", *(rf"\.\d{{{digits}}}" for digits in range(1, 7)), _ISOFORMAT)
_ZONES = ("", "Z", r"\+00:00", r"\+0000")


Read = Callable[[pa.ChunkedArray], pa.ChunkedArray | None]
"""A way to read text: the values, or None if a single one is not exact."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a column of text, with the convention that all of its values follow."""

    kind: pa.DataType
    read: Read


def inferred(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as ``int64``, ``double``, ``bool``, ``date32`` or timestamps, else as it is.

    Timestamps with a zone must be in UTC (``Z``, ``+00:00``): with another offset they stay
    text, for the offset would be lost. A column of nulls has the type ``null``.
    """
    present = pc.drop_null(text)
    if not len(present):
        return pa.chunked_array([pa.nulls(len(text))])
    # The first value rules most readings out, so that text columns cost next to nothing.
    for reading in readings(present[0].as_py()):
        column = reading.read(text)
        if column is not None:
            return column
    return text


def readings(first: str) -> tuple[Reading, ...]:
    """The ways in which a column with this value may be read, the best first."""
    ways = _PLAIN if not _is_moment(first) else (*_PLAIN, *_MOMENTS)
    one = pa.chunked_array([[first]], pa.string())
    return tuple(reading for reading in ways if reading.read(one) is not None)


class InferenceByPieces:
    """What ``inferred`` says of a column that comes piece by piece, in memory for one piece."""

    def __init__(self) -> None:
        self._readings: tuple[Reading, ...] | None = None

    def see(self, text: pa.ChunkedArray) -> None:
        """Take a piece into account."""
        present = pc.drop_null(text)
        if not len(present):
            return
        left = readings(present[0].as_py()) if self._readings is None else self._readings
        self._readings = tuple(reading for reading in left if reading.read(present) is not None)

    @property
    def kind(self) -> pa.DataType:
        """The type of the whole column: ``null`` if no piece had a value."""
        if self._readings is None:
            return pa.null()
        return self._readings[0].kind if self._readings else pa.string()

    def read(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """A piece in the type of the whole column, once all have been seen."""
        if self._readings is None:
            return pa.chunked_array([pa.nulls(len(text))])
        values = self._readings[0].read(text) if self._readings else text
        return text.cast(self.kind) if values is None else values


def _boolean(text: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray | None:
    return exact_values(text, pa.bool_()) if all_match(text, pattern) else None


def _integer(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return cast_or_none(text, pa.int64()) if all_match(text, INTEGER) else None


def _number(text: pa.ChunkedArray, *, with_point: bool) -> pa.ChunkedArray | None:
    if not all_match(text, _DECIMAL_POINT):
        return None
    values = cast_or_none(text, pa.float64())
    if values is None or pc.any(pc.match_substring_regex(text, r"^-0(?:\.0*)?$")).as_py():
        return None
    written = values.cast(pa.string())  # whole numbers as "2"
    if with_point:
        whole = pc.match_substring_regex(written, INTEGER)
        written = pc.if_else(whole, pc.binary_join_element_wise(written, ".0", ""), written)
    return values if _same(text, written) else None


def _same(text: pa.ChunkedArray, written: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.equal(text, written), min_count=0).as_py())


def _date(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return exact_values(text, pa.date32())


def _is_moment(first: str) -> bool:
    return bool(re.match(f"{DATE}[T ]", first))


def _timestamp(
    text: pa.ChunkedArray, pattern: str, kind: pa.DataType, *, may_lack_fraction: bool
) -> pa.ChunkedArray | None:
    if not all_match(text, pattern):
        return None
    if may_lack_fraction and pc.any(pc.match_substring(text, ".000000")).as_py():
        return None
    return exact_values(text, kind)


def _moments() -> Iterator[Reading]:
    for separator, fraction, zone in itertools.product("T ", _FRACTIONS, _ZONES):
        kind = UTC_TIMESTAMP if zone else NAIVE_TIMESTAMP
        pattern = f"^{DATE}{separator}{_CLOCK}{fraction}{zone}$"
        lacks = fraction == _ISOFORMAT
        yield Reading(
            kind, functools.partial(_timestamp, pattern=pattern, kind=kind, may_lack_fraction=lacks)
        )


_PLAIN = (
    *(Reading(pa.bool_(), functools.partial(_boolean, pattern=pattern)) for pattern in _BOOLEANS),
    Reading(pa.int64(), _integer),
    Reading(pa.float64(), functools.partial(_number, with_point=False)),
    Reading(pa.float64(), functools.partial(_number, with_point=True)),
    Reading(pa.date32(), _date),
)
_MOMENTS = tuple(_moments())
