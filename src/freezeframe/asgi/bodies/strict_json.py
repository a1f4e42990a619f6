"""Strict JSON bodies: UTF-8, no member twice, no deep nesting, no NaN (pure).

The work is proportional to the body's length, whatever the body holds.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from freezeframe.errors import UnreadableRequest

DEPTH_MAX = 64


def strict_json(content: bytes) -> Any:
    """The value in a body.

    Raises:
        UnreadableRequest: it is not JSON, is nested too deeply, or says a member twice.
    """
    try:
        value = json.loads(content.decode(), object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise _unreadable("It is not UTF-8.") from None
    except json.JSONDecodeError as error:
        # Only the place, never the content: the body may hold a secret.
        raise _unreadable(f"It cannot be parsed at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise _unreadable(f"{error}.") from None
    _require_shallow_text(value)
    return value


def _require_shallow_text(value: Any) -> None:
    """Refuse deep nesting and lone surrogates; each value is visited once, level by level."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        if any(_is_broken(one) for one in level if isinstance(one, str)):
            raise _unreadable("A text holds half of a character (a lone surrogate).")
        parts = [one for one in level if isinstance(one, list | dict)]
        if not parts:
            return
        level = [inner for part in parts for inner in part]
        level += [inner for part in parts if isinstance(part, dict) for inner in part.values()]
    raise _too_deep()


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("A member is there twice")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _too_deep() -> UnreadableRequest:
    return _unreadable(f"It is nested more than {DEPTH_MAX} deep.")


def _unreadable(cause: str) -> UnreadableRequest:
    return UnreadableRequest(
        "The body cannot be read as JSON.", cause=cause, remedy="Send one JSON value in UTF-8."
    )
