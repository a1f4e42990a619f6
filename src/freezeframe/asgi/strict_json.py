"""JSON bodies as the service takes them: no member twice, no deep nesting, no NaN, all of it UTF-8 (pure)."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from freezeframe.errors import UnreadableRequest

DEPTH_MAX = 64
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


def strict_json(content: bytes) -> Any:
    """The value in a body.

    Raises:
        UnreadableRequest: it is no JSON, is nested too deeply, or says a member twice.
    """
    _require_shallow(content)
    try:
        return json.loads(content.decode(), object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise _unreadable("It is no UTF-8.") from None
    except json.JSONDecodeError as error:
        # Where, never what: the body may hold a secret.
        raise _unreadable(f"It cannot be parsed at line {error.lineno}, column {error.colno}.") from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"{error}.") from None


def _require_shallow(content: bytes) -> None:
    # Before it is parsed: the parser itself fails on what is nested a hundred thousand deep.
    depth = 0
    for bracket in _BRACKETS.finditer(_STRINGS.sub(b"", content)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > DEPTH_MAX:
            raise _unreadable(f"It is nested more than {DEPTH_MAX} deep.")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("A member is there twice")
    for name, value in pairs:
        _require_text(name)
        _require_text(value)
    return found


def _require_text(value: object) -> None:
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("A text holds half of a character (a lone surrogate)")


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _unreadable(cause: str) -> UnreadableRequest:
    return UnreadableRequest(
        "The body cannot be read as JSON.", cause=cause, remedy="Send one JSON value in UTF-8."
    )
