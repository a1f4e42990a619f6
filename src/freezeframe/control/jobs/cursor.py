"""Opaque cursors of paginated lists."""

from __future__ import annotations

import base64
import binascii

from freezeframe.errors import InvalidOption

_PREFIX = "j1:"


def cursor_after(sequence: int) -> str:
    """The cursor of the page that follows the row of that sequence."""
    return base64.urlsafe_b64encode(f"{_PREFIX}{sequence}".encode()).decode().rstrip("=")


def sequence_of(cursor: str) -> int:
    """The sequence after which the page begins.

    Raises:
        InvalidOption: this is not a cursor that a list gave.
    """
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        sequence = int(text.removeprefix(_PREFIX))
        if sequence > 0 and cursor == cursor_after(sequence):
            return sequence
    except (ValueError, binascii.Error):
        pass
    raise InvalidOption(
        f"{cursor!r} is not a cursor.",
        remedy="Pass next_cursor of the page before, or none for the first page.",
    )
