"""Vacuum: deletes data files not referenced by any version within the retention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from freezeframe.errors import InvalidOption, NotFound
from freezeframe.log.actions.actions import DeletionVector
from freezeframe.log.replay.replay import select_rows, younger_than
from freezeframe.log.scan.data_files import file_name
from freezeframe.log.scan.deletion_vectors import vector_name
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.write.writability import require_writable
from freezeframe.storage import FileStatus

CHANGE_FOLDER = "_change_data"


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The deleted files (under ``dry_run`` those to delete), by name below the table, and their bytes."""

    names: tuple[str, ...]
    bytes: int
    dry_run: bool


def vacuum_table(
    snapshot: Snapshot,
    now_ms: int,
    *,
    retention_ms: int | None = None,
    dry_run: bool = False,
    allow_short_retention: bool = False,
) -> Vacuumed:
    """Delete files older than the retention that neither the snapshot nor an unexpired remove names.

    Names that begin with ``_`` or ``.`` are excluded, except change files and partition folders.

    Raises:
        NotFound: the table does not exist.
        InvalidOption: ``retention_ms`` is shorter than the table's own and ``allow_short_retention`` is off.
        UnsupportedTable: the table requires an unsupported writer feature.
        StorageUnavailable: the storage failed; the next call deletes the rest.
    """
    if not snapshot.exists:
        raise NotFound(f"There is no table at {snapshot.path}.", remedy="Check the path.")
    require_writable(snapshot.protocol, snapshot.metadata, snapshot.schema, snapshot.path)
    kept_ms = snapshot.deleted_file_retention_ms
    if retention_ms is not None:
        if retention_ms < 0 or (retention_ms < kept_ms and not allow_short_retention):
            raise InvalidOption(
                f"Files of the last {retention_ms} to {kept_ms} ms would be deleted.",
                cause="Readers and writers of the table may count on delta.deletedFileRetentionDuration.",
                remedy="Give a longer retention, or allow_short_retention=True if nobody uses the table.",
            )
        kept_ms = retention_ms
    oldest = now_ms - kept_ms
    needed = set(_needed_paths(snapshot, oldest))
    prefix = f"{snapshot.table}/" if snapshot.table else ""
    found = [
        status
        for status in snapshot.storage.list_below(snapshot.table)
        if status.modified_ms < oldest and prefix + status.name not in needed and _is_data(status)
    ]
    if not dry_run:
        for status in found:
            snapshot.storage.delete(prefix + status.name)
    names = tuple(sorted(status.name for status in found))
    return Vacuumed(names, sum(status.size for status in found), dry_run)


def _needed_paths(snapshot: Snapshot, oldest: int) -> Iterator[str]:
    tombstones = snapshot.all_tombstones
    young = select_rows(tombstones, younger_than(tombstones["deletion_timestamp"], oldest - 1))
    for files in (snapshot.file_list, young):
        for row in files.select(["path", "deletion_vector"]).to_pylist():
            yield str(file_name(snapshot.storage, snapshot.table, row["path"]))
            yield from _vector(snapshot, row["deletion_vector"])


def _vector(snapshot: Snapshot, vector: dict[str, Any] | None) -> Iterator[str]:
    if vector is None or vector["storageType"] == "i":
        return
    found = DeletionVector.from_json(vector)
    path = vector_name(found) if found.storage_type == "u" else found.path_or_inline_dv
    yield str(file_name(snapshot.storage, snapshot.table, path))


def _is_data(status: FileStatus) -> bool:
    return all(
        not part.startswith(("_", ".")) or part == CHANGE_FOLDER or "=" in part
        for part in PurePosixPath(status.name).parts
    )
