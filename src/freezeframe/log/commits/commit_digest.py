"""The SHA-256 of a commit's actions, stored in its commitInfo to detect damage.

JSON has no checksum: a flipped bit in a partition value or a column's name would change the table
without an error. A commit of this package begins with its ``commitInfo``, and its field
``contentSha256`` is the digest of every byte after that line. Other readers ignore the field;
commits of other writers have no digest and are not checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from freezeframe.errors import CorruptLog
from freezeframe.log.actions.actions import Action, CommitInfo, to_json_line
from freezeframe.log.primitives.json_fields import parse_json

DIGEST_KEY = "contentSha256"
_HEAD = b'{"commitInfo":'


def sign_content(info: CommitInfo, actions: Sequence[Action]) -> bytes:
    """The bytes of a commit: ``info`` with the digest first, then ``actions``, a line each."""
    rest = "".join(f"{to_json_line(action)}\n" for action in actions).encode()
    signed = replace(info, fields={**info.fields, DIGEST_KEY: hashlib.sha256(rest).hexdigest()})
    return f"{to_json_line(signed)}\n".encode() + rest


def require_digest(name: str, content: bytes) -> None:
    """Refuse a commit whose actions do not match its digest; one without a digest passes."""
    if not content.startswith(_HEAD):
        return
    head, _, rest = content.partition(b"\n")
    if DIGEST_KEY.encode() not in head:
        return
    try:
        expected = parse_json(head)["commitInfo"].get(DIGEST_KEY)
    except (ValueError, TypeError, KeyError, AttributeError):
        return  # the parser of the line reports its damage
    if expected is not None and hashlib.sha256(rest).hexdigest() != expected:
        raise CorruptLog(
            f"The commit {name} is damaged.",
            cause="Its actions are not those it was written with: their SHA-256 differs.",
            remedy="Restore the file from a copy; until then read a version before it.",
            code="DELTA_TXN_LOG_FAILED_INTEGRITY",
            file=name,
        )
