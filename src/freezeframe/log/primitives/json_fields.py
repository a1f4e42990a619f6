"""Typed access to JSON fields: a value of another type is an error where it is read.

Each function raises ``TypeError``, ``ValueError`` or ``KeyError``; who parses an action makes damage of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_WHOLE_MAX = 2**63


def parse_json(text: str | bytes, **options: Any) -> Any:
    """The JSON value of a text.

    Raises:
        ValueError: it is none, or nested too deeply to be one of a log.
    """
    try:
        return json.loads(text, **options)
    except RecursionError as error:
        raise ValueError("It is nested too deeply.") from error


def statistics(content: str | None) -> dict[str, Any]:
    """The statistics of a file (``add.stats``), decimals exact; none where the text is none."""
    try:
        found = parse_json(content, parse_float=Decimal) if content else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def text(value: Any) -> str | None:
    """A text that can be written as UTF-8, or null."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    value.encode()  # a lone surrogate is no character
    return value


def require_text(value: Mapping[str, Any], name: str) -> str:
    """The text of a field that must be there."""
    found = text(value[name])
    if found is None:
        raise KeyError(name)
    return found


def as_text(value: Any) -> str | None:
    """A text; what is another value as its JSON text, as Spark reads it where a text must be."""
    return text(value) if value is None or isinstance(value, str) else json.dumps(value)


def texts(value: Any) -> dict[str, Any] | None:
    """An object whose values are texts or null; an empty map of Parquet comes as an empty list."""
    if value is None:
        return None
    if value == []:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.80} is no object")
    return {str(text(key)): as_text(one) for key, one in value.items()}


def whole(value: Any) -> int | None:
    """A whole number of 64 bits, or null."""
    if value is None:
        return None
    if isinstance(value, bool) or not (
        isinstance(value, int | str) or (isinstance(value, float) and value.is_integer())
    ):
        raise TypeError(f"{value!r:.80} is no whole number")
    number = int(value)
    if not -_WHOLE_MAX <= number < _WHOLE_MAX:
        raise ValueError(f"{value!r:.80} has more than 64 bits")
    return number


def flag(value: Any) -> bool | None:
    """True, false or null."""
    if value is None or isinstance(value, bool):
        return value
    raise TypeError(f"{value!r:.80} is neither true nor false")


def names(value: Any) -> tuple[str, ...] | None:
    """A list of texts, or null."""
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.80} is no list")
    if None in value:
        raise TypeError("a name is null")
    return tuple(str(text(one)) for one in value)
