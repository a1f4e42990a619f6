"""RFC 3339 timestamps in UTC."""

from __future__ import annotations

from typing import overload

from freezeframe import clock


@overload
def rfc3339(milliseconds: int) -> str: ...
@overload
def rfc3339(milliseconds: None) -> None: ...
def rfc3339(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 as text with a ``Z``; None stays None."""
    if milliseconds is None:
        return None
    return clock.rfc3339(clock.moment(milliseconds), "milliseconds")
