"""Exports a stream's newest state as a table with a single commit.

Clones hold this form: no history, every file relative to the table's folder, a new table
for any Delta reader.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from freezeframe.errors import UnsupportedTable
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.format.action_columns import to_adds
from freezeframe.log.format.actions import Action, Add, CommitInfo
from freezeframe.log.primitives.paths import canonical_path
from freezeframe.log.scan.data_files import SHA256_TAG, file_name, vector_name
from freezeframe.log.segments.commit_content import sign_content
from freezeframe.storage import Storage
from freezeframe.store.table.commit import CommitIdentity, commit_info

_IN_FILE = "u"
_ABSOLUTE = "p"
# A table whose every commit has a time of its own has no version at which that began.
_ENABLEMENT = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


@dataclass(frozen=True, slots=True)
class PortableFile:
    """A file of a table: its path in the table's folder; SHA-256 and size in bytes where the log has them."""

    path: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class PortableStream:
    """``content`` is the text of the table's only commit, which names ``files`` and no others."""

    name: StreamName
    content: str
    files: tuple[PortableFile, ...]


def portable_stream(
    name: StreamName, snapshot: Snapshot, identity: CommitIdentity, operation: str
) -> PortableStream:
    """The stream's state as a new table."""
    adds = tuple(to_adds(snapshot.files))
    info = CommitInfo(commit_info(operation, {"sourceVersion": str(snapshot.version)}, identity))
    content = sign_content(info, tuple(_actions(snapshot, adds, identity))).decode()
    return PortableStream(name, content, table_files(adds, snapshot.storage, snapshot.table))


def _actions(snapshot: Snapshot, adds: tuple[Add, ...], identity: CommitIdentity) -> Iterator[Action]:
    stored = snapshot.metadata
    kept = {key: text for key, text in stored.configuration.items() if key not in _ENABLEMENT}
    yield snapshot.protocol
    yield replace(stored, id=str(uuid.uuid4()), created_time=identity.timestamp_ms, configuration=kept)
    yield from snapshot.domains.values()
    for add in adds:
        path = quote(_inside(snapshot.storage, snapshot.table, add.path))
        yield replace(add, path=canonical_path(path), data_change=True)


def table_files(adds: Iterable[Add], storage: Storage, folder: str) -> tuple[PortableFile, ...]:
    """The data files and deletion vectors that these actions of the table in ``folder`` name."""
    found: dict[str, PortableFile] = {}
    for add in adds:
        path = _inside(storage, folder, add.path)
        found[path] = PortableFile(path, add.size, (add.tags or {}).get(SHA256_TAG))
        vector = add.deletion_vector
        if vector is not None and vector.storage_type == _ABSOLUTE:
            raise _outside(vector.path_or_inline_dv)
        if vector is not None and vector.storage_type == _IN_FILE:
            # Several vectors may share a file.
            found[vector_name(vector)] = PortableFile(_inside(storage, folder, vector_name(vector)))
    return tuple(found.values())


def _inside(storage: Storage, folder: str, path: str) -> str:
    """The file's path below the table's folder."""
    name = file_name(storage, folder, path)
    if isinstance(name, Path) or not name.startswith(f"{folder}/"):
        raise _outside(path)
    return name.removeprefix(f"{folder}/")


def _outside(path: str) -> UnsupportedTable:
    return UnsupportedTable(
        "A table with files outside of its folder cannot be copied.",
        cause=f"It names {path!r}.",
        remedy="Write its rows anew with an update that replaces them (override=True).",
        path=path,
    )
