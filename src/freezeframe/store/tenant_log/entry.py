"""Entries of the tenant log and their JSON form.

All changes of an entry become visible at once. Kinds: ``commit`` (a job's changes), ``revoke``
(transactions that may no longer commit), ``external`` (what happened to a table outside of the
log is taken over, or a stream is let go), ``policy`` (retention and tags) and ``erase``. Protocol:
``docs/reference/tenant-log.md``, "An entry".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from freezeframe.errors import CorruptLog
from freezeframe.identifiers import StreamName
from freezeframe.store.tenant_log.entry_actions import (
    THIS_VERSION,
    Change,
    FileChange,
    StreamChange,
    TenantChange,
    parse_change,
)
from freezeframe.store.tenant_log.entry_chain import Link
from freezeframe.store.tenant_log.signed_json import from_signed_line, to_signed_line

__all__ = [
    "THIS_VERSION",
    "Entry",
    "FileChange",
    "Kind",
    "StreamChange",
    "TenantChange",
    "parse_entry",
]

Kind = Literal["commit", "revoke", "external", "policy", "erase"]
_KINDS = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit of the tenant log: all of its changes become visible at once.

    1. An entry changes each stream and each file at most once; names of streams that differ only by
       case count as the same.
    2. ``receipt`` is what the job was answered, so that running it again can be answered the same.
    3. ``request_id`` is the service's request that it was made for, empty where it was none.
    4. ``link`` binds it to its version and its predecessor; the log gives it. None: from before chains.
       ``sha256`` is the hash of an entry that was read.
    5. ``restored`` is the version that a restoration brought back, None for all else. Restorations from
       before it was noted say it in their message alone.
    """

    write_id: str
    timestamp_ms: int
    changes: tuple[Change, ...]
    job_id: str | None = None
    author: str = ""
    message: str = ""
    kind: Kind = "commit"
    receipt: Mapping[str, Any] | None = None
    request_id: str = ""
    restored: int | None = None
    link: Link | None = None
    sha256: str = field(default="", compare=False)
    _streams: Mapping[str, StreamChange] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        streams = [change for change in self.changes if isinstance(change, StreamChange)]
        for names in ([str(one.stream).casefold() for one in streams], [one.path for one in self.files]):
            if len(names) != len(set(names)):
                raise ValueError(f"an entry changes each stream and each file once, not {names}")
        # A job of hundreds of streams asks for each of them.
        object.__setattr__(self, "_streams", {str(one.stream): one for one in streams})
        if self.kind not in _KINDS:
            raise ValueError(f"the kind {self.kind!r} is not known")

    @property
    def streams(self) -> tuple[StreamChange, ...]:
        """The changes of streams."""
        return tuple(self._streams.values())

    def stream_change(self, stream: StreamName) -> StreamChange | None:
        """The change of one stream."""
        return self._streams.get(str(stream))

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The changes of files."""
        return tuple(change for change in self.changes if isinstance(change, FileChange))

    @property
    def tenant(self) -> TenantChange:
        """The change of the tenant itself; an empty one where nothing changes."""
        found = [change for change in self.changes if isinstance(change, TenantChange)]
        return found[0] if found else TenantChange()

    def to_bytes(self) -> bytes:
        """The entry as one line of JSON."""
        record: dict[str, Any] = {
            "kind": self.kind,
            "writeId": self.write_id,
            "jobId": self.job_id,
            "timestamp": self.timestamp_ms,
            "author": self.author,
            "message": self.message,
            "changes": [change.to_json() for change in self.changes],
        }
        if self.receipt is not None:
            record["receipt"] = dict(self.receipt)
        if self.request_id:
            record["requestId"] = self.request_id
        if self.restored is not None:
            record["restored"] = self.restored
        if self.link is not None:
            record.update(self.link.to_json())
        return to_signed_line(record)


def parse_entry(content: bytes, name: str) -> Entry:
    """The entry in a file's bytes; ``name`` is for messages.

    Raises:
        CorruptLog: the bytes are not a whole entry of a kind that this version knows.
    """
    try:
        record, sha256 = from_signed_line(content)
        return Entry(
            write_id=record["writeId"],
            timestamp_ms=int(record["timestamp"]),
            changes=tuple(parse_change(change) for change in record["changes"]),
            job_id=record.get("jobId"),
            author=record.get("author", ""),
            message=record.get("message", ""),
            kind=record["kind"],
            receipt=record.get("receipt"),
            request_id=record.get("requestId", ""),
            restored=record.get("restored"),
            link=Link.of_record(record),
            sha256=sha256,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptLog(
            f"The tenant log's entry {name!r} cannot be read.",
            cause=f"It is damaged, cut off, or of a newer format ({error}).",
            remedy="Restore the file from a backup or read it with the freezeframe that wrote it.",
            file=name,
        ) from error
