"""Entries of the tenant log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from freezeframe.errors import CorruptLog
from freezeframe.identifiers import StreamName
from freezeframe.store.model.receipt import Counts

# Protocol: ``docs/reference/tenant-log.md``, "An entry". A stream's change holds the exact bytes of its
# commit, so that any process lands the same commit after a crash; a file's change names a blob that
# already exists.

THIS_VERSION = -1
_DIGEST_LENGTH = 64


@dataclass(frozen=True, slots=True)
class StreamChange:
    """A stream gets ``table_version`` by a single commit of its table.

    1. ``content`` is the text of that commit's N.json; a long text is in a staged file named by ``sha256``.
       With neither, the table has the version already.
    2. ``is_external``: the version need not follow the last known version (adopt, repair).
    """

    stream: StreamName
    table_version: int
    content: str
    counts: Counts
    sha256: str = ""
    is_external: bool = False

    def __post_init__(self) -> None:
        if self.table_version < 0:
            raise ValueError(f"a table version cannot be negative: {self.table_version}")
        if self.content and self.sha256:
            raise ValueError("a commit is held in the entry or in a staged file, not in both")
        if self.sha256:
            _require_digest(self.sha256)

    @property
    def lands(self) -> bool:
        """Whether the entry contains a commit of the table."""
        return bool(self.content or self.sha256)

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        record: dict[str, Any] = {
            "name": str(self.stream),
            "tableVersion": self.table_version,
            "content": self.content,
            "counts": self.counts.to_json(),
        }
        if self.sha256:
            record["sha256"] = self.sha256
        if self.is_external:
            record["external"] = True
        return {"stream": record}


@dataclass(frozen=True, slots=True)
class FileChange:
    """The file ``path`` of the tenant has the content of ``blob``; ``blob`` None: deleted.

    ``blob`` is a name below ``_freezeframe/blobs/``: ``<writeId>/<name>``, written before the entry and
    belonging to that transaction. ``sha256`` and ``size`` (bytes) describe the stored bytes: for a
    ``sealed`` file its ciphertext.
    """

    path: str
    blob: str | None
    sha256: str = ""
    size: int = 0
    sealed: bool = False

    def __post_init__(self) -> None:
        for name in (self.path, self.blob):
            if name is not None:
                parts = name.split("/")
                if "\0" in name or any(part in ("", ".", "..") for part in parts):
                    raise ValueError(f"{name!r} is not a name below the tenant's directory")
        if self.size < 0:
            raise ValueError(f"a size cannot be negative: {self.size}")
        if self.blob is not None:
            _require_digest(self.sha256)

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return {"file": {name: getattr(self, name) for name in self.__dataclass_fields__}}


@dataclass(frozen=True, slots=True)
class TenantChange:
    """Change of the tenant itself; every part is optional.

    ``tags``: name to tenant version, None removes the tag. ``policy``: the whole new retention policy as
    JSON. ``released`` streams leave the log; ``dropped`` streams disappear for readers, and their tables
    stay until no listed version needs them. ``revoked`` transactions, and runs of jobs by their
    ``revoked_tokens``, can no longer commit. ``floor``: versions below it are no longer listed;
    ``THIS_VERSION``: nothing before the entry itself is kept (an erasure).
    """

    tags: Mapping[str, int | None] = field(default_factory=lambda: MappingProxyType({}))
    policy: Mapping[str, Any] | None = None
    released: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    floor: int | None = None
    revoked_tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (*self.released, *self.dropped):
            StreamName(name)

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object, without omitted parts."""
        record = {
            "tags": dict(self.tags),
            "policy": None if self.policy is None else dict(self.policy),
            "released": list(self.released),
            "dropped": list(self.dropped),
            "revoked": list(self.revoked),
            "revokedTokens": list(self.revoked_tokens),
            "floor": self.floor,
        }
        return {"tenant": {name: value for name, value in record.items() if value not in (None, {}, [])}}


Change = StreamChange | FileChange | TenantChange


def parse_change(record: Mapping[str, Any]) -> Change:
    """Return the change in a JSON object of an entry."""
    ((kind, body),) = record.items()
    if kind == "stream":
        return StreamChange(
            stream=StreamName(body["name"]),
            table_version=int(body["tableVersion"]),
            content=body["content"],
            counts=Counts(**body["counts"]),
            sha256=body.get("sha256", ""),
            is_external=bool(body.get("external", False)),
        )
    if kind == "file":
        return FileChange(
            path=body["path"],
            blob=body["blob"],
            sha256=body["sha256"],
            size=int(body["size"]),
            sealed=bool(body["sealed"]),
        )
    if kind == "tenant":
        return TenantChange(
            tags=MappingProxyType(dict(body.get("tags", {}))),
            policy=body.get("policy"),
            released=tuple(body.get("released", ())),
            dropped=tuple(body.get("dropped", ())),
            revoked=tuple(body.get("revoked", ())),
            revoked_tokens=tuple(body.get("revokedTokens", ())),
            floor=body.get("floor"),
        )
    raise ValueError(f"the change {kind!r} is not known")


def _require_digest(text: str) -> None:
    if len(text) != _DIGEST_LENGTH or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"{text!r} is not a SHA-256")


# JSON has no checksum: a flipped bit in a count or a name would change the record unnoticed.

_DIGEST = "sha256"
_TAIL_BEGINS = f',"{_DIGEST}":"'.encode()
_TAIL_BYTES = len(_TAIL_BEGINS) + 64 + len(b'"}\n')


def to_signed_line(record: dict[str, Any], *, is_ascii: bool = False) -> bytes:
    """Return the record with its hash as its last member, and a line feed."""
    signed = {**record, _DIGEST: _digest(record, is_ascii=is_ascii)}
    return _text(signed, is_ascii=is_ascii) + b"\n"


def from_signed_line(
    content: bytes, *, is_ascii: bool = False, requires_hash: bool = True
) -> tuple[dict[str, Any], str]:
    """Return the record, and its hash; empty if there is none and ``requires_hash`` is off."""
    if not content.endswith(b"\n"):
        raise ValueError("its end is missing")
    record: dict[str, Any] = json.loads(content)
    sha256 = record.pop(_DIGEST) if requires_hash else record.pop(_DIGEST, "")
    # Serialising the record takes as long as parsing it, so the bytes are checked first.
    is_right = bool(sha256) and (
        sha256 == _digest_in_place(content) or sha256 == _digest(record, is_ascii=is_ascii)
    )
    if not is_right and (sha256 or requires_hash):
        raise ValueError("its SHA-256 is not the one it was written with")
    return record, sha256


def _digest_in_place(content: bytes) -> str:
    """Return the hash of a line as we write it, without its last member; empty for another line."""
    if content[-_TAIL_BYTES:][: len(_TAIL_BEGINS)] != _TAIL_BEGINS:
        return ""
    digest = hashlib.sha256(memoryview(content)[:-_TAIL_BYTES])
    digest.update(b"}")
    return digest.hexdigest()


def _digest(record: dict[str, Any], *, is_ascii: bool) -> str:
    return hashlib.sha256(_text(record, is_ascii=is_ascii)).hexdigest()


def _text(record: dict[str, Any], *, is_ascii: bool) -> bytes:
    return json.dumps(record, ensure_ascii=is_ascii, separators=(",", ":")).encode()


# Each entry's hash covers its version and the hash of its predecessor, so an entry that was replaced,
# swapped or renumbered does not fit its neighbours. Entries from before chains have neither; they are
# accepted up to the first chained entry. The newest entry has no successor: a replacement is found by its
# version or predecessor.

_VERSION, _PREVIOUS = "version", "previous"


@dataclass(frozen=True, slots=True)
class Link:
    """Link of an entry: its version and the SHA-256 of its predecessor (empty for version 0)."""

    version: int
    previous: str

    def __post_init__(self) -> None:
        if self.version < 0 or bool(self.version) != bool(self.previous):
            raise ValueError(f"{self!r} is not a link: every version but 0 has a predecessor")

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Link | None:
        """Return the link in an entry's JSON; None in an entry from before chains."""
        if _PREVIOUS not in record:
            return None
        return cls(int(record[_VERSION]), str(record[_PREVIOUS]))

    def to_json(self) -> dict[str, Any]:
        """Return the two members of an entry's JSON."""
        return {_VERSION: self.version, _PREVIOUS: self.previous}


@dataclass(frozen=True, slots=True)
class Chain:
    """Head of a log as read: the newest entry's SHA-256, and whether that entry is chained.

    ``head`` is empty for a log without entries, and None if unknown: in an old checkpoint.
    """

    head: str | None = ""
    is_begun: bool = False

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Chain:
        """Return the chain in a checkpoint's JSON."""
        return cls(record.get("head"), bool(record.get("chained", False)))

    def to_json(self) -> dict[str, Any]:
        """Return the two members of a checkpoint's JSON; none where the head is not known."""
        return {"head": self.head, "chained": self.is_begun} if self.head else {}

    def after(self, version: int, link: Link | None, sha256: str, log: str) -> Chain:
        """Return the chain after an entry with this link and hash; ``log`` is for messages."""
        if link is None and self.is_begun:
            raise broken_chain_error(
                log, version, "It does not name its predecessor, as the entry before it does."
            )
        if link is not None:
            require_version(link.version, version, log)
            if self.head is not None and link.previous != self.head:
                cause = f"It was written after another entry {version - 1} than the one that is there."
                raise broken_chain_error(log, version, cause)
        return Chain(sha256, link is not None)


def require_version(found: int, version: int, log: str) -> None:
    """Refuse an entry or checkpoint that is stored under another version."""
    if found != version:
        raise broken_chain_error(log, version, f"The file under that number is of version {found}.")


def broken_chain_error(log: str, version: int, cause: str) -> CorruptLog:
    """Return the error for an entry that does not fit its neighbours."""
    return CorruptLog(
        f"Entry {version} of {log} does not continue the one before it.",
        cause=f"{cause} A process changed the log's files, or the storage let two writers create one name.",
        remedy="Test the storage by freezeframe doctor, and restore the log from a backup.",
        version=version,
    )


# Kinds: ``commit`` (a job's changes), ``revoke`` (transactions that may no longer commit), ``external`` (a
# table changed outside of the log, or a released stream), ``policy`` (retention and tags) and ``erase``.

__all__ = ["THIS_VERSION", "Entry", "FileChange", "Kind", "StreamChange", "TenantChange", "parse_entry"]

Kind = Literal["commit", "revoke", "external", "policy", "erase"]
_KINDS = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit of the tenant log: all of its changes become visible at once.

    1. An entry changes each stream and each file at most once; names of streams that differ only by
       case are equal.
    2. ``receipt`` is the job's receipt, which a repeated run gets as well.
    3. ``request_id`` is the service's request, if there was any.
    4. ``link`` binds it to its version and its predecessor; the log sets it. None: from before chains.
       ``sha256`` is the hash of an entry that was read.
    5. ``restored`` is the restored version of a restoration; old restorations have it in the message only.
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
        for names in (
            [str(stream.stream).casefold() for stream in streams],
            [file.path for file in self.files],
        ):
            if len(names) != len(set(names)):
                raise ValueError(f"an entry changes each stream and each file once, not {names}")
        # A job of hundreds of streams looks up each of them.
        object.__setattr__(self, "_streams", {str(stream.stream): stream for stream in streams})
        if self.kind not in _KINDS:
            raise ValueError(f"the kind {self.kind!r} is not known")

    @property
    def streams(self) -> tuple[StreamChange, ...]:
        """The changes of streams."""
        return tuple(self._streams.values())

    def stream_change(self, stream: StreamName) -> StreamChange | None:
        """Return the change of one stream."""
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
        """Return the entry as one line of JSON."""
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
    """Return the entry in a file's bytes; ``name`` is for messages."""
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
