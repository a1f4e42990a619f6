"""What one version of the tenant log says: an entry, and its JSON form.

An entry holds the exact bytes of every ``_delta_log/N.json`` that it makes, so that whoever
comes after a crash lands the very same commit. Protocol: ``docs/reference/tenant-log.md``,
"An entry".
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from freezeframe.errors import CorruptLog
from freezeframe.identifiers import StreamName

_DIGEST = "sha256"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows of a stream met which fate in one change."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __post_init__(self) -> None:
        if min(self.inserted, self.updated, self.unchanged, self.deleted) < 0:
            raise ValueError(f"counts cannot be negative: {self}")

    @property
    def changed(self) -> int:
        """Rows that are not as they were."""
        return self.inserted + self.updated + self.deleted

    def to_json(self) -> dict[str, int]:
        """The counts by name."""
        return {
            "inserted": self.inserted,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "deleted": self.deleted,
        }


@dataclass(frozen=True, slots=True)
class StreamChange:
    """A stream becomes ``table_version`` by exactly the commit ``content`` (text of its N.json)."""

    stream: StreamName
    table_version: int
    content: str
    counts: Counts

    def __post_init__(self) -> None:
        if self.table_version < 0:
            raise ValueError(f"a table version cannot be negative: {self.table_version}")

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return {
            "stream": {
                "name": str(self.stream),
                "tableVersion": self.table_version,
                "content": self.content,
                "counts": self.counts.to_json(),
            }
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit of the tenant log: all of its changes become visible at once."""

    write_id: str
    timestamp_ms: int
    changes: tuple[StreamChange, ...]
    job_id: str | None = None
    payload_hash: str | None = None
    author: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        names = [str(change.stream).casefold() for change in self.changes]
        if len(names) != len(set(names)):
            raise ValueError(f"an entry changes each stream once, not {names}")

    def to_bytes(self) -> bytes:
        """The entry as one line of JSON."""
        record = {
            "kind": "commit",
            "writeId": self.write_id,
            "jobId": self.job_id,
            "payloadHash": self.payload_hash,
            "timestamp": self.timestamp_ms,
            "author": self.author,
            "message": self.message,
            "changes": [change.to_json() for change in self.changes],
        }
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
            changes=tuple(_parse_change(change["stream"]) for change in record["changes"]),
            job_id=record.get("jobId"),
            payload_hash=record.get("payloadHash"),
            author=record.get("author", ""),
            message=record.get("message", ""),
        )
    except (ValueError, KeyError, TypeError) as error:
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
    if record["kind"] != "commit":
        raise ValueError(f"the kind {record['kind']!r} is not known")
    return record


def _text(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _digest(record: dict[str, Any]) -> str:
    # JSON has no checksum of its own: a flipped bit in a count or a name would be another entry.
    return hashlib.sha256(_text(record).encode()).hexdigest()


def _parse_change(record: dict[str, Any]) -> StreamChange:
    return StreamChange(
        stream=StreamName(record["name"]),
        table_version=int(record["tableVersion"]),
        content=record["content"],
        counts=Counts(**record["counts"]),
    )
