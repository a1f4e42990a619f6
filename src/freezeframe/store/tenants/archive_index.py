"""Index of an archive (its first member): streams, files, and SHA-256 of each.

Members are numbered; their real names are only here, where they are checked before anything is
written. So no member can lead out of the tenant, and a stream's commit can name no file but its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from freezeframe.errors import FormatTooNew, FreezeframeError, UnreadableInput
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log.actions.actions import CommitInfo, DomainMetadata, Metadata, Protocol, parse_line
from freezeframe.log.actions.file_actions import Add
from freezeframe.storage import MemoryStorage
from freezeframe.store.schema.table_properties import TENANT_LOG_FEATURE
from freezeframe.store.table.export import table_files

ARCHIVE_FORMAT = 1
MemberKind = Literal["commit", "table", "file"]
_DIGEST = "sha256"


@dataclass(frozen=True, slots=True)
class Member:
    """One member: a stream's commit, a file of its table, or a file of the tenant, with these guarantees.

    1. its names are valid, and a table's file lies in the table's folder;
    2. ``size`` and ``sha256`` are of the bytes in the archive, for a sealed file of its sealed form.
    """

    kind: MemberKind
    size: int
    sha256: str
    stream: str = ""
    path: str = ""
    sealed: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("commit", "table", "file") or self.size < 0:
            raise ValueError(f"{self.kind!r} of {self.size} bytes is not a member")
        if self.kind == "file":
            FilePath(self.path)
        else:
            StreamName(self.stream)
        parts = self.path.split("/")
        if self.kind == "table" and (
            any(part in ("", ".", "..", "_delta_log") or part.startswith(".") for part in parts)
            or "\0" in self.path
        ):
            raise ValueError(f"{self.path!r} is not a data file of a table")

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class ArchiveIndex:
    """The members in order, and the wrapped key of the sealed ones."""

    archive_id: str
    source_version: int
    wrapped_key: str
    members: tuple[Member, ...]

    def to_bytes(self) -> bytes:
        """The serialised index."""
        record = {
            "archiveFormat": ARCHIVE_FORMAT,
            "archiveId": self.archive_id,
            "sourceVersion": self.source_version,
            "wrappedKey": self.wrapped_key,
            "members": [member.to_json() for member in self.members],
        }
        return json.dumps({**record, _DIGEST: _digest(record)}).encode() + b"\n"


def parse_index(content: bytes) -> ArchiveIndex:
    """The index in the bytes of an archive's first member.

    Raises:
        FormatTooNew: a newer freezeframe wrote it.
        UnreadableInput: it is none, was changed, or has a name that cannot be.
    """
    try:
        record = json.loads(content)
        _require_known(record)
        return ArchiveIndex(
            str(record["archiveId"]),
            int(record["sourceVersion"]),
            str(record["wrappedKey"]),
            tuple(Member(**member) for member in record["members"]),
        )
    except FormatTooNew:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, FreezeframeError) as error:
        raise refused_archive_error(f"Its index cannot be used: {error}") from error


def _require_known(record: dict[str, Any]) -> None:
    if record.pop(_DIGEST) != _digest(record):
        raise ValueError("its SHA-256 is not the one it was written with")
    if record["archiveFormat"] > ARCHIVE_FORMAT:
        raise FormatTooNew(
            "The archive was written by a newer freezeframe.",
            cause=f"Its format is {record['archiveFormat']}; this version knows {ARCHIVE_FORMAT}.",
            remedy="Install the version that wrote it.",
        )


def require_sound_commit(text: str, tables: Iterable[str]) -> None:
    """Refuse a stream's commit unless it creates a table of exactly the files ``tables``.

    Raises:
        UnreadableInput: it names other files, lacks what a new table needs, or does anything else.
    """
    try:
        actions = [parse_line(line) for line in text.split("\n") if line]
        adds = tuple(action for action in actions if isinstance(action, Add))
        named = {file.path for file in table_files(adds, MemoryStorage(), "t")}
    except FreezeframeError as error:
        raise refused_archive_error(f"A stream's commit cannot be used: {error}") from error
    known = (CommitInfo, Protocol, Metadata, DomainMetadata, Add)
    others = {type(action).__name__ for action in actions if not isinstance(action, known)}
    protocols = [action for action in actions if isinstance(action, Protocol)]
    if others or len(protocols) != 1 or sum(isinstance(action, Metadata) for action in actions) != 1:
        raise refused_archive_error(f"A stream's commit does not make a new table ({sorted(others)}).")
    if TENANT_LOG_FEATURE not in (protocols[0].writer_features or ()):
        raise refused_archive_error("A stream's table is not guarded against other writers.")
    if named != set(tables):
        raise refused_archive_error(
            f"A stream's commit names other files than its own: {sorted(named ^ set(tables))[:3]}."
        )


def refused_archive_error(cause: str) -> UnreadableInput:
    """The error for an invalid archive."""
    return UnreadableInput(
        "The archive cannot be imported.",
        cause=cause,
        remedy="Export it again, with this freezeframe; nothing of it was kept.",
    )


def _digest(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()
