"""Deletes everything before an erasure: entries, table logs, data. Idempotent after a crash."""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog
from freezeframe.log.primitives.paths import parse_name
from freezeframe.log.write.checkpoint_writer import write_checkpoint
from freezeframe.storage import Storage
from freezeframe.store.directory.job_folders import remove_job_roots
from freezeframe.store.directory.paths import TENANT_LOG_FOLDER, table_folder
from freezeframe.store.directory.pending_uploads import remove_waiting
from freezeframe.store.maintenance.garbage import sweep
from freezeframe.store.tenant_log.table_lookup import present_tables
from freezeframe.store.transaction.transaction import TenantPlace


@dataclass(frozen=True, slots=True)
class Purged:
    """Numbers of deleted files and bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Purged) -> Purged:
        return Purged(self.files + other.files, self.bytes + other.bytes)


def purge(place: TenantPlace) -> Purged:
    """Delete everything from before the newest erasure, job roots included; does nothing without one.

    The tenant log's own entries go last: as long as there are any, it is not done.

    Raises:
        StorageUnavailable: something could not be deleted; the next ``gc`` goes on with it.
    """
    state, _ = present_tables(place.storage, place.log, ())
    if not state.erased or not _below(place.storage, TENANT_LOG_FOLDER, state.erased):
        return Purged()
    first = place.log.state_at(state.erased)
    remove_job_roots(place.storage, place.settings, before_ms=first.timestamp_ms)
    remove_waiting(place.storage, place.settings)
    place.log.write_checkpoint(first)
    done = Purged()
    for name, version in (*first.streams.items(), *first.dropped.items()):
        done += _purge_table(place.storage, table_folder(StreamName(name)), version)
    swept = sweep(place, state.erased, set(state.revoked), durable=True)
    done += Purged(len(swept), sum(file.size for file in swept))
    done += _delete_below(place.storage, TENANT_LOG_FOLDER, state.erased)
    place.log.forget()
    return done


def _purge_table(storage: Storage, folder: str, version: int) -> Purged:
    log = DeltaLog(storage, folder)
    if not _below(storage, log.folder, version):
        return Purged()
    if log.log_segment_for_version(version_to_load=version).checkpoint_version != version:
        write_checkpoint(log.snapshot_at(version=version))
    done = _delete_below(storage, log.folder, version)
    DeltaLog.invalidate_cache(storage, folder)
    return done


def _below(storage: Storage, folder: str, version: int) -> list[tuple[str, int]]:
    """The files of a log for versions below ``version``, with their sizes."""
    found = [(status, parse_name(status.name)) for status in storage.list_from(folder)]
    return [(one.name, one.size) for one, meaning in found if meaning and meaning.version < version]


def _delete_below(storage: Storage, folder: str, version: int) -> Purged:
    files = _below(storage, folder, version)
    for name, _ in files:
        storage.delete(f"{folder}/{name}")
    return Purged(len(files), sum(size for _, size in files))
