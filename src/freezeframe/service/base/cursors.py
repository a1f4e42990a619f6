"""Opaque cursors: where the next page of a list begins, signed so that nobody makes one up.

A cursor is bound to what was listed; given to another list, or for another tenant, it is refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from freezeframe.errors import InvalidOption

_SIGNATURE_BYTES = 16


class Cursors:
    """Makes and reads the cursors of one service; all its workers have the same secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"freezeframe cursors", "sha256")

    def encode(self, listing: str, place: Any) -> str:
        """The cursor for the position in a list where the next page begins."""
        content = json.dumps(place, ensure_ascii=False, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._signature(listing, content) + content).decode().rstrip("=")

    def read(self, listing: str, cursor: str) -> Any:
        """The position that ``made`` was given.

        Raises:
            InvalidOption: the cursor is not one of ours, or of another list.
        """
        try:
            raw = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
            signature, content = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
            if hmac.compare_digest(signature, self._signature(listing, content)):
                return json.loads(content)
        except (ValueError, UnicodeError):
            pass
        raise InvalidOption(
            "The cursor is none of this list.",
            cause="It is of another list or tenant, of the list with other parameters, or was cut short.",
            remedy="Pass next_cursor as the page before gave it, with the same parameters.",
        )

    def _signature(self, listing: str, content: bytes) -> bytes:
        text = hashlib.sha256(listing.encode()).digest() + content
        return hmac.digest(self._secret, text, "sha256")[:_SIGNATURE_BYTES]
