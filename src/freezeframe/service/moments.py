"""Moments as the service writes them: RFC 3339 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload


@overload
def rfc3339(milliseconds: int) -> str: ...
@overload
def rfc3339(milliseconds: None) -> None: ...
def rfc3339(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 as text with a ``Z``; None stays None."""
    if milliseconds is None:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
