"""The machine's clock, as the formats that we write count time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_clock: Callable[[], int] | None = None


def now_ms() -> int:
    """Milliseconds since 1970, in UTC."""
    return time.time_ns() // 1_000_000 if _clock is None else _clock()


@contextmanager
def another_clock(read_ms: Callable[[], int]) -> Iterator[None]:
    """Within the block ``now_ms`` is what ``read_ms`` returns, in this whole process: for simulations."""
    global _clock  # noqa: PLW0603 - a process has one clock
    before, _clock = _clock, read_ms
    try:
        yield
    finally:
        _clock = before


def moment(milliseconds: int) -> datetime:
    """Milliseconds since 1970 as a date and time in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def rfc3339(moment: datetime, timespec: str = "auto") -> str:
    """Return a moment in UTC as text with a ``Z`` (RFC 3339); ``timespec`` as in ``datetime.isoformat``."""
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")
