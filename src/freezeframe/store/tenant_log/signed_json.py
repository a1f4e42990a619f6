"""A line of JSON with its own SHA-256 (pure).

JSON has no checksum: a flipped bit in a count or a name would silently change the record.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_DIGEST = "sha256"


def to_signed_line(record: dict[str, Any], *, is_ascii: bool = False) -> bytes:
    """The record with its hash as its last member, and a line feed."""
    signed = {**record, _DIGEST: _digest(record, is_ascii=is_ascii)}
    return _text(signed, is_ascii=is_ascii) + b"\n"


def from_signed_line(
    content: bytes, *, is_ascii: bool = False, requires_hash: bool = True
) -> tuple[dict[str, Any], str]:
    """The record, and its hash; empty if there is none and ``requires_hash`` is off.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the bytes are not a whole record of that hash.
    """
    if not content.endswith(b"\n"):
        raise ValueError("its end is missing")
    record: dict[str, Any] = json.loads(content)
    sha256 = record.pop(_DIGEST) if requires_hash else record.pop(_DIGEST, "")
    if (sha256 or requires_hash) and sha256 != _digest(record, is_ascii=is_ascii):
        raise ValueError("its SHA-256 is not the one it was written with")
    return record, sha256


def _digest(record: dict[str, Any], *, is_ascii: bool) -> str:
    return hashlib.sha256(_text(record, is_ascii=is_ascii)).hexdigest()


def _text(record: dict[str, Any], *, is_ascii: bool) -> bytes:
    return json.dumps(record, ensure_ascii=is_ascii, separators=(",", ":")).encode()
