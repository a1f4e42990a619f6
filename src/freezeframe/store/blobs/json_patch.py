"""JSON files: serialisation, parsing and merge patches (pure).

A patch is a JSON merge patch (RFC 7396): objects are merged member by member, null removes a member,
anything else takes the place of what was there.
"""

from __future__ import annotations

import json
from typing import Any

from freezeframe.errors import InvalidOption, UnreadableInput


def to_json_bytes(value: Any) -> bytes:
    """The value as indented UTF-8 JSON with a line feed at the end."""
    _require_text_keys(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidOption(
            "The value cannot be written as JSON.",
            cause=f"{error}.",
            remedy="Pass objects, lists, text, finite numbers, true, false and null only.",
        ) from error


def from_json_bytes(content: bytes, path: str) -> Any:
    """The value in a file's bytes."""
    try:
        return json.loads(content, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # The message has the position of a JSON error but no content: the file may be a secret.
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnreadableInput(
            f"The file {path!r} is not JSON.",
            cause=f"It cannot be parsed{where}.",
            remedy="Read it as bytes and write it again as JSON.",
            path=path,
        ) from None


def merge_patch(target: Any, patch: Any) -> Any:
    """``target`` after the merge patch ``patch``; neither is changed (RFC 7396, section 2)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def _require_text_keys(value: Any) -> None:
    # Python would silently turn 1 and "1" into the same key.
    if isinstance(value, dict):
        odd = [name for name in value if not isinstance(name, str)]
        if odd:
            raise InvalidOption(
                f"The value cannot be written as JSON: the key {odd[0]!r} is not text.",
                remedy="Use texts as keys.",
            )
        for item in value.values():
            _require_text_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _require_text_keys(item)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is there twice")
    return found


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
