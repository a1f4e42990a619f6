"""Text from data, escaped for a terminal: no control characters, no reordering."""

from __future__ import annotations

import re

# All control characters, line ends that only Unicode knows, what changes the direction of writing, and
# halves of letters (names of files that are not UTF-8).
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_UNSAFE_IN_LINES = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def visible(text: str) -> str:
    """One line: line ends as ``⏎``, all else that is unsafe as its escape, such as backslash, x, 1b."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n").replace("\n", "⏎"))


def visible_lines(text: str) -> str:
    """As ``visible`` for text of several lines; line ends and tabs stay."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def visible_json(text: str) -> str:
    """JSON with the same meaning and all unsafe characters escaped; JSON itself escapes only some."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    return (
        found[0].encode("ascii", "backslashreplace").decode() if found[0] > "\x7f" else repr(found[0])[1:-1]
    )
