"""Opaque cursors: where the next page of a list begins, signed so that nobody makes one up.

A cursor is bound to what was listed; given to another list, or for another tenant, it is refused.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from freezeframe.errors import InvalidOption
from freezeframe.service.base.secret import ServiceSecret

_SIGNATURE_BYTES = 16
_LABEL = b"freezeframe cursors"


class Cursors:
    """Makes and reads the cursors of one service; all its workers have the same secret."""

    def __init__(self, secret: ServiceSecret) -> None:
        self._secret = secret

    def encode(self, listing: str, place: Any) -> str:
        """The cursor for the position in a list where the next page begins."""
        content = json.dumps(place, ensure_ascii=False, separators=(",", ":")).encode()
        signature = self._secret.sign(_LABEL, _bound(listing, content))[:_SIGNATURE_BYTES]
        return base64.urlsafe_b64encode(signature + content).decode().rstrip("=")

    def read(self, listing: str, cursor: str) -> Any:
        """The position that ``encode`` was given.

        Raises:
            InvalidOption: the cursor is not one of ours, or of another list.
        """
        try:
            raw = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
            signature, content = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
            is_whole = len(signature) == _SIGNATURE_BYTES
            if is_whole and self._secret.is_signed(_LABEL, _bound(listing, content), signature):
                return json.loads(content)
        except (ValueError, UnicodeError):
            pass
        raise InvalidOption(
            "The cursor is none of this list.",
            cause="It is of another list or tenant, of the list with other parameters, or was cut short.",
            remedy="Pass next_cursor as the page before gave it, with the same parameters.",
        )


def _bound(listing: str, content: bytes) -> bytes:
    return hashlib.sha256(listing.encode()).digest() + content
