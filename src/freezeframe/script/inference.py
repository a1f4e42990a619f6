"""What a text column is, when nobody says: the most that can be told without losing a letter.

A column is typed only if its texts can be written again, letter by letter, from the typed
values and one convention that holds for the whole column (whole floats as ``2.0`` or as
``2``, say; ``True`` or ``true``; ``T`` or a blank before the time). "007", "1.50" beside
"1.5", "1e5", "+33", "-0", " 1", numbers with twenty digits, "NA" and "null" therefore leave
the column as text.
"""

from __future__ import annotations

import itertools

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


def inferred(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as ``int64``, ``double``, ``bool``, ``date32`` or timestamps, else as it is.

    Timestamps with a zone must be in UTC (``Z``, ``+00:00``): with another offset they stay
    text, for the offset would be lost. A column of nulls has the type ``null``.
    """
    present = pc.drop_null(text)
    if not len(present):
        return pa.chunked_array([pa.nulls(len(text))])
    first = present[0].as_py()
    for infer in (_boolean, _integer, _number, _date, _timestamp):
        # The first value rules most kinds out, so that text columns cost next to nothing.
        if infer(pa.chunked_array([[first]], pa.string())) is not None:
            column = infer(text)
            if column is not None:
                return column
    return text


def _boolean(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if any(all_match(text, pattern) for pattern in _BOOLEANS):
        return exact_values(text, pa.bool_())
    return None


def _integer(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return cast_or_none(text, pa.int64()) if all_match(text, INTEGER) else None


def _number(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if not all_match(text, _DECIMAL_POINT):
        return None
    values = cast_or_none(text, pa.float64())
    if values is None or pc.any(pc.match_substring_regex(text, r"^-0(?:\.0*)?$")).as_py():
        return None
    written = values.cast(pa.string())  # whole numbers as "2"
    with_point = pc.if_else(
        pc.match_substring_regex(written, INTEGER), pc.binary_join_element_wise(written, ".0", ""), written
    )
    return values if _same(text, written) or _same(text, with_point) else None


def _same(text: pa.ChunkedArray, written: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.equal(text, written), min_count=0).as_py())


def _date(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return exact_values(text, pa.date32())


def _timestamp(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    first = pc.drop_null(text).slice(0, 1)
    if not all_match(first, f"^{DATE}[T ]"):
        return None
    for separator, fraction, zone in itertools.product("T ", _FRACTIONS, _ZONES):
        pattern = f"^{DATE}{separator}{_CLOCK}{fraction}{zone}$"
        if not (all_match(first, pattern) and all_match(text, pattern)):
            continue
        if fraction == _ISOFORMAT and pc.any(pc.match_substring(text, ".000000")).as_py():
            return None
        return exact_values(text, UTC_TIMESTAMP if zone else NAIVE_TIMESTAMP)
    return None
