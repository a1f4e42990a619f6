"""The machine's clock, as the formats that we write count time."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Milliseconds since 1970, in UTC."""
    return time.time_ns() // 1_000_000


def moment(milliseconds: int) -> datetime:
    """Milliseconds since 1970 as a date and time in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def rfc3339(moment: datetime, timespec: str = "auto") -> str:
    """A moment in UTC as text with a ``Z`` (RFC 3339); ``timespec`` is as of ``datetime.isoformat``."""
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")
