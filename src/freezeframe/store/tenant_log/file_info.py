"""Metadata of a tenant's files, for listings and file history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from freezeframe.clock import moment, rfc3339
from freezeframe.store.tenant_log.entry import Entry, FileChange
from freezeframe.store.tenant_log.state import HeldFile


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file at one moment. ``size`` and ``sha256`` are of what is stored: for a sealed file its ciphertext.

    ``version`` is the tenant version that brought these bytes, ``modified`` its moment (UTC).
    """

    path: str
    size: int
    modified: datetime
    sha256: str
    sealed: bool
    version: int

    def to_json(self) -> dict[str, Any]:
        """All fields by name, the version as ``tenant_version``; the moment is RFC 3339."""
        return _to_json(self)


@dataclass(frozen=True, slots=True)
class FileRevision:
    """One version of a file: the tenant version and moment, who and what made it, and what it was then.

    A deletion has ``deleted`` true, no SHA-256 and the size 0.
    """

    version: int
    modified: datetime
    deleted: bool
    size: int
    sha256: str
    sealed: bool
    job_id: str | None
    author: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """All fields by name, the version as ``tenant_version``; the moment is RFC 3339."""
        return _to_json(self)


def file_entry(path: str, held: HeldFile) -> FileEntry:
    """Metadata of a file."""
    return FileEntry(path, held.size, moment(held.modified_ms), held.sha256, held.sealed, held.version)


def file_revision(version: int, entry: Entry, change: FileChange) -> FileRevision:
    """Metadata of a file's revision."""
    return FileRevision(
        version=version,
        modified=moment(entry.timestamp_ms),
        deleted=change.blob is None,
        size=change.size,
        sha256=change.sha256,
        sealed=change.sealed,
        job_id=entry.job_id,
        author=entry.author,
        message=entry.message,
    )


def _to_json(info: FileEntry | FileRevision) -> dict[str, Any]:
    names = {name: "tenant_version" if name == "version" else name for name in info.__dataclass_fields__}
    return {told: _value(getattr(info, name)) for name, told in names.items()}


def _value(value: Any) -> Any:
    return rfc3339(value) if isinstance(value, datetime) else value
