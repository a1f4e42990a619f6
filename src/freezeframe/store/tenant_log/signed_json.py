"""A line of JSON with its own SHA-256 (pure).

JSON has no checksum: a flipped bit in a count or a name would silently change the record.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_DIGEST = "sha256"
_TAIL_BEGINS = f',"{_DIGEST}":"'.encode()
_TAIL_BYTES = len(_TAIL_BEGINS) + 64 + len(b'"}\n')


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
    if (sha256 or requires_hash) and not _is_hash(sha256, content, record, is_ascii=is_ascii):
        raise ValueError("its SHA-256 is not the one it was written with")
    return record, sha256


def _is_hash(sha256: str, content: bytes, record: dict[str, Any], *, is_ascii: bool) -> bool:
    # Writing the record anew takes as long as parsing it, so first the bytes are looked at as they are.
    return bool(sha256) and (
        sha256 == _digest_in_place(content) or sha256 == _digest(record, is_ascii=is_ascii)
    )


def _digest_in_place(content: bytes) -> str:
    """The hash of a line as we write it, without its last member; empty for another line."""
    if content[-_TAIL_BYTES:][: len(_TAIL_BEGINS)] != _TAIL_BEGINS:
        return ""
    digest = hashlib.sha256(memoryview(content)[:-_TAIL_BYTES])
    digest.update(b"}")
    return digest.hexdigest()


def _digest(record: dict[str, Any], *, is_ascii: bool) -> str:
    return hashlib.sha256(_text(record, is_ascii=is_ascii)).hexdigest()


def _text(record: dict[str, Any], *, is_ascii: bool) -> bytes:
    return json.dumps(record, ensure_ascii=is_ascii, separators=(",", ":")).encode()
