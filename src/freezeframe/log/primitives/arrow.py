"""Arrow's memory, numbers, times and intervals, as a log needs them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.errors import InvalidOption

_lock = threading.Lock()
_replaced: list[pa.MemoryPool] = []
"""Arrow's default allocator as each block found it; the first one is the process's."""


@contextmanager
def system_memory() -> Iterator[None]:
    """Let Arrow allocate from the system within the block, in all threads, and return unused memory.

    Its default allocator retains most of what a reader's growing buffers release: for a checkpoint of a
    million files some hundred megabytes. A buffer knows its allocator, so both may be in use.
    """
    with _lock:
        _replaced.append(pa.default_memory_pool())
        pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        release_memory()
        with _lock:
            first = _replaced[0]
            _replaced.pop()
            if not _replaced:
                pa.set_memory_pool(first)


def release_memory() -> None:
    """Give back to the system what Arrow allocated from it and released."""
    pa.system_memory_pool().release_unused()


# Conversion of numbers and booleans between Arrow and NumPy by their buffers.
#
# The first call of ``pa.array`` or ``Array.to_numpy`` imports pandas, which costs most of a second
# and tens of megabytes: more than reading a whole log. These functions convert the primitive types
# that replay needs without pandas.

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
RUNS_MAX = 256
"""So many runs of selected rows become slices; of more the rows are copied."""


def to_arrow_ints(values: npt.NDArray[Any]) -> pa.Array:
    """Return an int64 array of the values."""
    exact = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(exact), [None, pa.py_buffer(exact)])


def to_arrow_offsets(values: npt.NDArray[Any]) -> pa.Array:
    """Return an int32 array of the values: offsets of lists and maps."""
    exact = np.ascontiguousarray(values, dtype=np.int32)
    return pa.Array.from_buffers(pa.int32(), len(exact), [None, pa.py_buffer(exact)])


def to_arrow_flags(values: Bools) -> pa.Array:
    """Return a boolean array of the values."""
    packed = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(packed)])


def to_ints(values: pa.Array | pa.ChunkedArray) -> Ints:
    """Return the values of an integer array as int64; values under nulls are undefined."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_chunk_ints(chunk) for chunk in chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def to_flags(values: pa.Array | pa.ChunkedArray) -> Bools:
    """Return the values of a boolean array; nulls are False."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_chunk_flags(chunk) for chunk in chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)


def is_valid(values: pa.Array | pa.ChunkedArray) -> Bools:
    """Return the mask of the values that are not null."""
    if values.null_count == 0:
        return np.ones(len(values), dtype=np.bool_)
    return to_flags(pc.is_valid(values))


def select_rows(table: pa.Table, wanted: Bools) -> pa.Table:
    """Return the flagged rows; a few long runs become slices without a copy."""
    if wanted.all():
        return table
    edges = np.flatnonzero(np.diff(np.concatenate([[0], wanted.astype(np.int8), [0]])))
    starts, ends = edges[0::2], edges[1::2]
    if len(starts) <= RUNS_MAX:
        parts = [table.slice(int(at), int(end - at)) for at, end in zip(starts, ends, strict=True)]
        return pa.concat_tables(parts) if parts else table.slice(0, 0)
    return table.filter(to_arrow_flags(wanted))


def _chunk_ints(chunk: pa.Array) -> Ints:
    if chunk.type != pa.int64():
        chunk = chunk.cast(pa.int64())
    buffer = chunk.buffers()[1]
    if len(chunk) == 0 or buffer is None:
        return np.zeros(len(chunk), dtype=np.int64)
    return np.frombuffer(buffer, dtype=np.int64, count=len(chunk), offset=8 * chunk.offset)


def _chunk_flags(chunk: pa.Array) -> Bools:
    found = _bits(chunk.buffers()[1], chunk)
    validity = chunk.buffers()[0]
    if validity is not None and chunk.null_count:
        found = found & _bits(validity, chunk)
    return found


def _bits(buffer: Any, chunk: pa.Array) -> Bools:
    if len(chunk) == 0 or buffer is None:
        return np.zeros(len(chunk), dtype=np.bool_)
    end = chunk.offset + len(chunk)
    raw = np.frombuffer(buffer, dtype=np.uint8, count=(end + 7) // 8)
    return np.unpackbits(raw, count=end, bitorder="little")[chunk.offset :].astype(np.bool_)


# Dates and timestamps as Delta's text, beyond the years that ``datetime`` supports.
#
# Arrow parses years of four digits only. The Gregorian calendar repeats every 400 years, so a later
# year is shifted by whole cycles into this range, and the parsed value is shifted back by as many days.
# Spark writes a year of more than four digits with its sign: ``+10000-01-01``.

_CYCLE_YEARS, _CYCLE_DAYS, _FIRST_YEAR = 400, 146_097, 2000
_DAY_US = 86_400_000_000
_FAR = re.compile(r"([+-]\d{4,7}|\d{5,7})(-\d{1,2}-\d{1,2}\D?.*)", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)

_ZONE = re.compile(r"(Z|[+-]\d{2}:?\d{2})$")


def day(text: str) -> pa.Scalar:
    """Parse a date as ``date32``."""
    near, cycles = _near(text)
    days = pa.scalar(near).cast(pa.date32()).value + cycles * _CYCLE_DAYS
    return pa.scalar(days, pa.int64()).cast(pa.int32()).cast(pa.date32())


def instant(text: str, kind: pa.DataType, time_zone: tzinfo = UTC) -> pa.Scalar:
    """Parse a timestamp with or without a zone as ``kind`` (microseconds).

    Where ``kind`` has a zone and the text has none, it is a time of ``time_zone``; one that its clocks
    show twice is the earlier, one that they skip is as much later as they skip (as Java's and Spark's).
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
    """Parse timestamps of years of four digits, all with a zone or all without one, as ``kind``."""
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
    """Return the text with a year of four digits, and the number of 400-year cycles of the shift."""
    match = _FAR.fullmatch(text)
    if match is None:
        return text, 0
    cycles, year = divmod(int(match[1]) - _FIRST_YEAR, _CYCLE_YEARS)
    return f"{_FIRST_YEAR + year}{match[2]}", cycles


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
    """Parse an interval in ms; a month counts 31 days and a year 366, so that nothing is deleted early."""
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
