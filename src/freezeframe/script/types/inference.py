"""Type inference of text columns: the narrowest type that loses nothing.

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

from freezeframe.script.types.text_values import (
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

Left = tuple[int, ...] | None
"""Which ways of a rule read all values so far, by their places in it; None before the first value."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a column of text, with the convention that all of its values follow."""

    kind: pa.DataType
    read: Read
    is_moment: bool = False


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """What a column of text becomes: the first of ``ways`` that reads every value, else text.

    Whether a way reads a column is decided value by value, so a column may be looked at in pieces, in any
    order and by several processes, whose findings ``both`` joins.
    """

    ways: tuple[Reading, ...]
    kind_without_values: pa.DataType

    def whole(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """All values of the column."""
        present = pc.drop_null(text)
        if not len(present):
            return pa.chunked_array([pa.nulls(len(text), self.kind_without_values)])
        # The first value rules out most types, so text columns cost almost nothing.
        for place in self._possible(present[0].as_py()):
            column = self.ways[place].read(text)
            if column is not None:
                return column
        return text

    def narrow(self, text: pa.ChunkedArray, before: Left = None) -> Left:
        """The possible types after one more piece of the column."""
        present = pc.drop_null(text)
        if not len(present):
            return before
        among = self._possible(present[0].as_py()) if before is None else before
        return tuple(place for place in among if self.ways[place].read(present) is not None)

    def kind(self, left: Left) -> pa.DataType:
        """The type of the column, once all of its pieces have been seen."""
        if left is None:
            return self.kind_without_values
        return self.ways[left[0]].kind if left else pa.string()

    def read(self, text: pa.ChunkedArray, left: Left) -> pa.ChunkedArray | None:
        """A piece in the type of the whole column; None if the piece was not among those seen."""
        if text.null_count == len(text):
            return pa.chunked_array([pa.nulls(len(text), self.kind(left))])
        return None if left is None else self.ways[left[0]].read(text) if left else text

    def _possible(self, first: str) -> tuple[int, ...]:
        one, is_moment = pa.chunked_array([[first]], pa.string()), _is_moment(first)
        return tuple(
            place
            for place, way in enumerate(self.ways)
            if (is_moment or not way.is_moment) and way.read(one) is not None
        )


def both(one: Left, other: Left) -> Left:
    """The possible types after the pieces that either has seen."""
    if one is None or other is None:
        return one if other is None else other
    return tuple(place for place in one if place in other)


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
        read = functools.partial(_timestamp, pattern=pattern, kind=kind, may_lack_fraction=lacks)
        yield Reading(kind, read, is_moment=True)


_PLAIN = (
    *(Reading(pa.bool_(), functools.partial(_boolean, pattern=pattern)) for pattern in _BOOLEANS),
    Reading(pa.int64(), _integer),
    Reading(pa.float64(), functools.partial(_number, with_point=False)),
    Reading(pa.float64(), functools.partial(_number, with_point=True)),
    Reading(pa.date32(), _date),
)
INFERENCE = ColumnRule((*_PLAIN, *_moments()), pa.null())
"""Of a column of which nothing is known: ``int64``, ``double``, ``bool``, ``date32``, timestamps, text.

Timestamps with a zone must be in UTC (``Z``, ``+00:00``): with another offset they stay text, for the
offset would be lost. A column of nulls has the type ``null``."""
