"""What one version of the tenant log says: an entry, and its JSON form.

All changes of an entry become visible at once. Kinds: ``commit`` (a job's changes), ``revoke``
(transactions that may not commit any more), ``external`` (what happened to a table outside of the
log is taken over, or a stream is let go), ``policy`` (retention and tags) and ``erase``. Protocol:
``docs/reference/tenant-log.md``, "An entry".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from freezeframe.errors import CorruptLog
from freezeframe.store.entry_changes import (
    THIS_VERSION,
    Change,
    Counts,
    FileChange,
    StreamChange,
    TenantChange,
    parse_change,
)

__all__ = [
    "THIS_VERSION",
    "Counts",
    "Entry",
    "FileChange",
    "Kind",
    "StreamChange",
    "TenantChange",
    "parse_entry",
]

Kind = Literal["commit", "revoke", "external", "policy", "erase"]
_KINDS = get_args(Kind)
_DIGEST = "sha256"


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit of the tenant log: all of its changes become visible at once.

    1. An entry changes each stream and each file at most once; names of streams that differ only by
       case count as the same.
    2. ``receipt`` is what the job was answered, so that running it again can be answered the same.
    3. ``request_id`` is the service's request that it was made for, empty where it was none.
    """

    write_id: str
    timestamp_ms: int
    changes: tuple[Change, ...]
    job_id: str | None = None
    payload_hash: str | None = None
    author: str = ""
    message: str = ""
    kind: Kind = "commit"
    receipt: Mapping[str, Any] | None = None
    request_id: str = ""

    def __post_init__(self) -> None:
        for names in ([str(one.stream).casefold() for one in self.streams], [one.path for one in self.files]):
            if len(names) != len(set(names)):
                raise ValueError(f"an entry changes each stream and each file once, not {names}")
        if self.kind not in _KINDS:
            raise ValueError(f"the kind {self.kind!r} is not known")

    @property
    def streams(self) -> tuple[StreamChange, ...]:
        """The changes of streams."""
        return tuple(change for change in self.changes if isinstance(change, StreamChange))

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The changes of files."""
        return tuple(change for change in self.changes if isinstance(change, FileChange))

    @property
    def tenant(self) -> TenantChange:
        """What changes about the tenant itself; an empty change where nothing does."""
        found = [change for change in self.changes if isinstance(change, TenantChange)]
        return found[0] if found else TenantChange()

    def to_bytes(self) -> bytes:
        """The entry as one line of JSON."""
        record: dict[str, Any] = {
            "kind": self.kind,
            "writeId": self.write_id,
            "jobId": self.job_id,
            "payloadHash": self.payload_hash,
            "timestamp": self.timestamp_ms,
            "author": self.author,
            "message": self.message,
            "changes": [change.to_json() for change in self.changes],
        }
        if self.receipt is not None:
            record["receipt"] = dict(self.receipt)
        if self.request_id:
            record["requestId"] = self.request_id
        signed = {**record, _DIGEST: _digest(record)}
        return _text(signed).encode() + b"\n"


def parse_entry(content: bytes, name: str) -> Entry:
    """The entry in a file's bytes; ``name`` is for messages.

    Raises:
        CorruptLog: the bytes are not a whole entry of a kind that this version knows.
    """
    try:
        record = _whole_record(content)
        return Entry(
            write_id=record["writeId"],
            timestamp_ms=int(record["timestamp"]),
            changes=tuple(parse_change(change) for change in record["changes"]),
            job_id=record.get("jobId"),
            payload_hash=record.get("payloadHash"),
            author=record.get("author", ""),
            message=record.get("message", ""),
            kind=record["kind"],
            receipt=record.get("receipt"),
            request_id=record.get("requestId", ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptLog(
            f"The tenant log's entry {name!r} cannot be read.",
            cause=f"It is damaged, cut off, or of a newer format ({error}).",
            remedy="Restore the file from a backup or read it with the freezeframe that wrote it.",
            file=name,
        ) from error


def _whole_record(content: bytes) -> dict[str, Any]:
    if not content.endswith(b"\n"):
        raise ValueError("its end is missing")
    record: dict[str, Any] = json.loads(content)
    if record.pop(_DIGEST) != _digest(record):
        raise ValueError("its SHA-256 is not the one it was written with")
    return record


def _text(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _digest(record: dict[str, Any]) -> str:
    # JSON has no checksum of its own: a flipped bit in a count or a name would be another entry.
    return hashlib.sha256(_text(record).encode()).hexdigest()
