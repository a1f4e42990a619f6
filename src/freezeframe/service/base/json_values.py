"""Values and moments as JSON."""

from __future__ import annotations

import base64
import math
from typing import Any, overload

from freezeframe import clock

# JSON representation of a value; values that JSON cannot hold exactly are text (pure).

_SAFE_INTEGER = 2**53


def json_value(value: Any) -> Any:
    """The value for JSON; integers beyond 2^53, timestamps, decimals, NaN and infinities become text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) < _SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(name): json_value(one) for name, one in value.items()}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


# RFC 3339 timestamps in UTC.


@overload
def rfc3339(milliseconds: int) -> str: ...
@overload
def rfc3339(milliseconds: None) -> None: ...
def rfc3339(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 as text with a ``Z``; None stays None."""
    if milliseconds is None:
        return None
    return clock.rfc3339(clock.moment(milliseconds), "milliseconds")
