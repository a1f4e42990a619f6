"""The machine's clock, as the formats that we write count time."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970, in UTC."""
    return time.time_ns() // 1_000_000
