"""Log files that no kept version needs: entries of the tenant log, commits and checkpoints of tables.

As in Delta's log cleanup, a log then begins at its newest checkpoint that is not above the oldest version
that is kept, and what is below it goes. Source: ``docs/reference/tenant-log.md``, "Retention and gc".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from freezeframe.clock import now_ms
from freezeframe.identifiers import StreamName
from freezeframe.log.primitives.paths import LOG_FOLDER, SIDECAR_FOLDER, Kind, parse_name
from freezeframe.log.table.cleanup import PROTECTED_BEFORE, orphaned_sidecars
from freezeframe.storage.base import FileStatus
from freezeframe.store.directory.paths import TENANT_LOG_FOLDER, table_folder
from freezeframe.store.maintenance.references import TablesThen
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.transaction import TenantPlace


def old_log_files(
    everything: Iterable[FileStatus],
    place: TenantPlace,
    tables: TablesThen,
    state: TenantState,
    floor: int,
) -> list[FileStatus]:
    """Those of all files of a tenant that are of its logs, and that no version from ``floor`` on needs.

    A tag keeps what follows it, and a job the entry that holds its receipt, as long as its id is kept.
    The oldest first: who is cut off half-way leaves logs that begin later.

    Raises:
        CorruptLog: a version that is kept cannot be read; nothing must be deleted then.
    """
    begin = state.kept_from(floor)
    folders: dict[str, list[FileStatus]] = {}
    for file in everything:
        folders.setdefault(file.name.rpartition("/")[0], []).append(file)
    entries = folders.get(TENANT_LOG_FOLDER, [])
    if begin <= state.erased or any(version < state.erased for _, version, _ in _meanings(entries)):
        return []  # an erasure that was cut off needs them to go on
    first = place.log.snapshot_at(version=begin)
    needed, receipts = first.segment.checkpoint_version or 0, place.log.oldest_receipt(state)
    old = [
        file
        for kind, version, file in _meanings(entries)
        if version < needed and (kind.is_checkpoint or version < receipts)
    ]
    for name, version in {**first.state.dropped, **first.state.streams}.items():
        if name in state.streams or name in state.dropped:
            old += _of_table(folders, tables, StreamName(name), version)
    return sorted(old, key=lambda file: file.name)


def _of_table(
    folders: Mapping[str, Sequence[FileStatus]], tables: TablesThen, stream: StreamName, version: int
) -> list[FileStatus]:
    folder = f"{table_folder(stream)}/{LOG_FOLDER}"
    meanings = list(_meanings(folders.get(folder, ())))
    newest = max((one for kind, one, _ in meanings if kind.is_checkpoint and one <= version), default=0)
    if all(one >= newest for _, one, _ in meanings):
        return []
    snapshot = tables.at(stream, version)
    if snapshot.version < version:
        return []  # another table, which was taken in under the same name since
    needed = snapshot.segment.checkpoint_version or 0  # a damaged one was passed over for the one before
    if int(snapshot.metadata.configuration.get(PROTECTED_BEFORE) or 0) > needed:
        return []
    old = [file for _, one, file in meanings if one < needed]
    sidecars = folders.get(f"{folder}/{SIDECAR_FOLDER}", ())
    if sidecars:
        going = {file.name for file in old}
        kept = [replace(file, name=_last(file.name)) for file in folders[folder] if file.name not in going]
        orphans = orphaned_sidecars(
            tables.storage,
            folder,
            kept,
            [replace(file, name=_last(file.name)) for file in sidecars],
            now_ms(),
        )
        old += [file for file in sidecars if _last(file.name) in orphans]
    return old


def _meanings(files: Iterable[FileStatus]) -> Iterator[tuple[Kind, int, FileStatus]]:
    """What the files of a log are, and of which version."""
    for file in files:
        meaning = parse_name(_last(file.name))
        if meaning is not None:
            yield meaning.kind, meaning.version, file


def _last(name: str) -> str:
    return name.rpartition("/")[2]
