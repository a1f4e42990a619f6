"""Files of a tenant that are still referenced, which ``gc`` retains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from freezeframe.identifiers import StreamName
from freezeframe.log import DeletionVector, DeltaLog, Snapshot
from freezeframe.log.actions.actions import Add, parse_line
from freezeframe.log.scan.data_files import file_name
from freezeframe.log.scan.deletion_vectors import vector_name
from freezeframe.storage import Storage
from freezeframe.store.directory.paths import blob_file, table_folder
from freezeframe.store.tenant_log.entry import StreamChange
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import change_content
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState

_FEW_FILES = 1000


class TablesThen:
    """Streams' tables at older versions; those of few files are read once for all who ask."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._read: dict[tuple[StreamName, int], Snapshot] = {}

    def at(self, stream: StreamName, version: int) -> Snapshot:
        """The table at a version; at its newest one, where that is lower."""
        known = self._read.get((stream, version))
        if known is not None:
            return known
        log = DeltaLog.for_table(self.storage, table_folder(stream))
        snapshot = log.update()
        if snapshot.version > version:
            snapshot = log.snapshot_at(version=version)
            if snapshot.count <= _FEW_FILES:
                self._read[stream, version] = snapshot
        return snapshot


def referenced_files(tables: TablesThen, log: TenantLog, state: TenantState, floor: int) -> set[str]:
    """Every data file, vector and blob referenced by a version from ``floor`` on or a tagged one.

    Raises:
        CorruptLog: an entry or a table is damaged; nothing must be deleted then.
    """
    if state.version == NO_VERSION:
        return set()
    named = set(_blobs_of(state))
    named |= _of_range(tables, log, state, max(floor, 0))
    for version in sorted({one for one in state.tags.values() if one < floor}):
        then = log.state_at(version)
        named |= set(_blobs_of(then))
        for name, table_version in then.streams.items():
            named |= _of_version(tables, StreamName(name), table_version)
    return named


def _of_range(tables: TablesThen, log: TenantLog, state: TenantState, floor: int) -> set[str]:
    """The files referenced by any version from ``floor`` to the newest."""
    first = log.state_at(floor)
    named = set(_blobs_of(first))
    for name, version in (*first.streams.items(), *first.dropped.items()):
        named |= _of_version(tables, StreamName(name), version)
    for _, entry in log.entries_down(state, range(state.version, floor, -1)):
        named |= {blob_file(change.blob) for change in entry.files if change.blob is not None}
        for change in entry.streams:
            folder = table_folder(change.stream)
            if change.is_external:
                # Its own commit does not cover earlier foreign commits.
                named |= _of_version(tables, change.stream, change.table_version)
            named |= set(_added_files(tables.storage, folder, _content(tables.storage, change)))
    return named


def _content(storage: Storage, change: StreamChange) -> Iterable[str]:
    # Not `splitlines`, which also splits at separators inside of column names.
    return filter(None, change_content(storage, change).split("\n")) if change.lands else ()


def _added_files(storage: Storage, folder: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        action = parse_line(line)
        if isinstance(action, Add):
            yield str(file_name(storage, folder, action.path))
            yield from _vector_file(storage, folder, action.deletion_vector)


def _of_version(tables: TablesThen, stream: StreamName, version: int) -> set[str]:
    # A version that is committed but not rolled forward: the entry's own commit names the new files.
    return set(_live(tables.at(stream, version)))


def _live(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.version < 0:
        return
    files = snapshot.file_list.select(["path", "deletion_vector"])
    for file in files.to_pylist():
        yield str(file_name(snapshot.storage, snapshot.table, file["path"]))
        stored = file["deletion_vector"]
        vector = None if stored is None else DeletionVector.from_json(stored)
        yield from _vector_file(snapshot.storage, snapshot.table, vector)


def _vector_file(storage: Storage, folder: str, vector: DeletionVector | None) -> Iterator[str]:
    if vector is not None and vector.storage_type == "u":
        yield f"{folder}/{vector_name(vector)}"
    elif vector is not None and vector.storage_type == "p":
        yield str(file_name(storage, folder, vector.path_or_inline_dv))


def _blobs_of(state: TenantState) -> Iterator[str]:
    return (blob_file(held.blob) for held in state.files.values())
