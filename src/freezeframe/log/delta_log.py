"""DeltaLog: the public interface to the log of one Delta table."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa

from freezeframe.errors import AlreadyExists
from freezeframe.log.primitives.listing import list_log
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import LOG_FOLDER, Kind, parse_name
from freezeframe.log.statistics.data_skipping import Predicate
from freezeframe.log.table.changes import read_changes
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.write.appending import append_rows
from freezeframe.log.write.conflicts import Isolation
from freezeframe.log.write.creation import first_actions
from freezeframe.log.write.deletion import delete_matching
from freezeframe.log.write.maintenance import Maintenance
from freezeframe.log.write.post_commit import Upkeep
from freezeframe.log.write.restoring import restore_version
from freezeframe.log.write.transaction import Transaction, require_committed
from freezeframe.storage import LocalStorage, Storage
from freezeframe.storage.location import storage_at
from freezeframe.storage.probe import require_atomic_create

if TYPE_CHECKING:
    import pyarrow.dataset as ds

CACHE_SIZE = 10_000
CACHE_RETENTION_SECONDS = 3_600.0
_PROBE_ROUNDS = 2

_proven: set[str] = set()
"""Buckets that were seen to create atomically."""


@dataclass(slots=True)
class _Entry:
    log: DeltaLog
    used_at: float


class DeltaLog(TableLog):
    """The log of one Delta table.

    ``DeltaLog.open`` and ``DeltaLog.for_table`` return the same cached object for the same table; a
    directly constructed log is not cached. A ``Snapshot`` answers queries of one version.
    """

    cache_size: ClassVar[int] = CACHE_SIZE
    cache_retention_seconds: ClassVar[float] = CACHE_RETENTION_SECONDS
    _cache: ClassVar[OrderedDict[tuple[object, str], _Entry]] = OrderedDict()
    _cache_lock: ClassVar[threading.Lock] = threading.Lock()

    # Opening

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        options: LogOptions | None = None,
    ) -> DeltaLog:
        """Open the log of the table at a directory, a ``file:`` URL or ``s3://bucket/folder``, and update it.

        A table that does not exist yet has version -1. ``storage_options`` configure access to a
        bucket (``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_ACCESS_KEY_ID``, ...); environment
        variables of these names supply the rest. Repeated calls return the same log; only the
        ``options`` of the first call apply.

        Raises:
            InvalidOption: a URL of another kind, or an unknown option.
            CorruptLog: the log is damaged.
            UnsupportedTable: the table requires an unsupported feature.
            StorageUnavailable: the storage failed.
        """
        log, is_new = cls._get_or_open(storage_at(uri, storage_options), "", options)
        if not is_new:
            log.update()
        return log

    @classmethod
    def is_table(
        cls, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> bool:
        """Whether a Delta table exists: its log holds a commit or a checkpoint. No file is read.

        Raises:
            InvalidOption, StorageUnavailable: as ``open``.
        """
        names = (parse_name(status.name) for status in list_log(storage_at(uri, storage_options), LOG_FOLDER))
        return any(
            name is not None and (name.kind is Kind.COMMIT or name.kind.is_checkpoint) for name in names
        )

    @classmethod
    def create(
        cls,
        uri: str | os.PathLike[str],
        schema: pa.Schema,
        *,
        partition_by: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> DeltaLog:
        """Create an empty table under the lowest protocol that its columns and properties allow.

        Raises:
            AlreadyExists: the table exists.
            InvalidOption: invalid columns, partition columns or properties.
            StorageUnsuitable: the bucket's store has no atomic create.
        """
        actions = first_actions(schema, partition_by, configuration or {})
        log = cls.open(uri, storage_options=storage_options)
        if log.snapshot.exists:
            raise AlreadyExists(
                f"There is a table at {log.path} already.", remedy="Open it, or choose another place."
            )
        require_committed(log.start_transaction().commit(actions, "CREATE TABLE"))
        return log

    @classmethod
    def for_table(
        cls,
        location: str | os.PathLike[str] | Storage,
        table: str = "",
        *,
        options: LogOptions | None = None,
    ) -> DeltaLog:
        """The log of a table, given its directory, or a storage and the table's folder in it.

        Every spelling of a directory returns the same object while it is cached; the call does not
        update it (behaviours 41, 49). The cache holds ``DeltaLog.cache_size`` logs, each
        for ``DeltaLog.cache_retention_seconds`` after its last use. ``options`` apply only
        when the log is opened.

        Raises:
            CorruptLog: the log is damaged.
            UnsupportedTable: the table requires an unsupported feature.
        """
        return cls._get_or_open(location, table, options)[0]

    @classmethod
    def for_table_with_snapshot(
        cls, location: str | os.PathLike[str] | Storage, table: str = ""
    ) -> tuple[DeltaLog, Snapshot]:
        """The log and its latest snapshot; a cached log is updated first (behaviour 41)."""
        log, is_new = cls._get_or_open(location, table)
        return log, log.current_snapshot if is_new else log.update()

    @classmethod
    def note_commit(cls, storage: Storage, table: str, version: int, content: bytes) -> None:
        """Record a commit of this process, so that the next update need not read it back.

        Applies to the cached log of ``for_table``, if it is open, and to its next update.
        """
        _, _, key = _locate(storage, table)
        with cls._cache_lock:
            entry = cls._cache.get(key)
        if entry is not None:
            entry.log._reader.own_commit.note(version, content)  # noqa: SLF001 - another instance of this class

    @classmethod
    def clear_cache(cls) -> None:
        """Remove all logs from the cache; references to them stay valid."""
        with cls._cache_lock:
            cls._cache.clear()

    @classmethod
    def invalidate_cache(cls, location: str | os.PathLike[str] | Storage, table: str = "") -> None:
        """Remove the log of one table from the cache."""
        _, _, key = _locate(location, table)
        with cls._cache_lock:
            cls._cache.pop(key, None)

    @classmethod
    def _get_or_open(
        cls,
        location: str | os.PathLike[str] | Storage,
        table: str,
        options: LogOptions | None = None,
    ) -> tuple[DeltaLog, bool]:
        """The log of a table, and whether this call opened it."""
        storage, table, key = _locate(location, table)
        with cls._cache_lock:
            cls._expire()
            entry = cls._cache.get(key)
            if entry is not None:
                entry.used_at = time.monotonic()
                cls._cache.move_to_end(key)
                return entry.log, False
        log = cls(storage, table, options)
        with cls._cache_lock:
            entry = cls._cache.setdefault(key, _Entry(log, time.monotonic()))
            cls._expire()
            return entry.log, entry.log is log

    @classmethod
    def _expire(cls) -> None:
        """Evict expired logs and those beyond the cache's size; the most recent is at the end."""
        oldest = time.monotonic() - cls.cache_retention_seconds
        while cls._cache:
            entry = next(iter(cls._cache.values()))
            if entry.used_at >= oldest and len(cls._cache) <= max(0, cls.cache_size):
                break
            cls._cache.popitem(last=False)

    # Reading

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot loaded last; ``update`` loads a newer one."""
        return self.current_snapshot

    def to_arrow(self, columns: Sequence[str] | None = None, where: Predicate | None = None) -> pa.Table:
        """The rows of the newest version; see ``Snapshot.to_arrow``."""
        return self.update().to_arrow(columns, where)

    def to_dataset(self) -> ds.Dataset:
        """The newest version as a PyArrow dataset; see ``Snapshot.to_dataset``."""
        return self.update().to_dataset()

    def changes(self, start: int, end: int | None = None) -> pa.RecordBatchReader:
        """The rows that the versions ``start`` to ``end`` (None: the newest) inserted, deleted and updated.

        Besides the table's columns they have ``_change_type`` (``insert``, ``delete``, and where a
        writer recorded them ``update_preimage`` and ``update_postimage``), ``_commit_version`` and
        ``_commit_timestamp``. Without change files, the changes of a commit are derived from its added
        and removed files. Batches are read lazily.

        Raises:
            VersionNotFound: a version of the range has no commit (any more).
            CorruptData: a file is missing or damaged; raised while iterating.
        """
        return read_changes(self, start, end)

    # Writing

    def start_transaction(
        self,
        *,
        isolation: Isolation = Isolation.WRITE_SERIALIZABLE,
        upkeep: Upkeep | None = None,
        own_features: Collection[str] = (),
    ) -> Transaction:
        """A transaction on the newest version; see ``Transaction``.

        Raises:
            StorageUnsuitable: the bucket's store has no atomic create, so commits could be lost.
        """
        storage = self.storage
        access = _access(storage)
        if access:
            bucket = f"{access} {urlsplit(storage.root).netloc}"
            if bucket not in _proven:
                require_atomic_create(storage, self.folder, rounds=_PROBE_ROUNDS)
                _proven.add(bucket)
        return Transaction(self, isolation=isolation, upkeep=upkeep, own_features=own_features)

    def append(self, rows: Any) -> int:
        """Append rows (an Arrow table, or any frame that exports Arrow data) and return the new version.

        Raises:
            MissingColumn, SchemaDriftError: the rows do not fit the table's columns.
            ConflictError: the table's columns or protocol were changed meanwhile.
        """
        return append_rows(self.start_transaction(), rows)

    def delete(self, where: Predicate | None = None) -> int:
        """Delete matching rows (None: all) and return the new version, or the current one if none matched.

        Uses deletion vectors where the table enables them, else rewrites the files with matching rows.

        Raises:
            MissingColumn, InvalidOption: ``where`` is not a valid predicate for this table.
            ConflictError: other writers changed the same rows in every attempt.
        """
        return delete_matching(self.start_transaction, where)

    def restore(self, version: int | None = None, timestamp: datetime | None = None) -> int:
        """Commit the content of an earlier version as a new version, and return its number.

        Raises:
            VersionNotFound: the version or moment cannot be read.
            CorruptData: a data file of it is missing; nothing is committed.
            ConflictError: another writer committed meanwhile.
        """
        return restore_version(self.start_transaction(), self.snapshot_at(version, timestamp))

    @property
    def maintenance(self) -> Maintenance:
        """Vacuum, checkpoints, compaction, cleanup and verification."""
        return Maintenance(self)


def _locate(
    location: str | os.PathLike[str] | Storage, table: str
) -> tuple[Storage, str, tuple[object, str]]:
    """(storage, folder, cache key) of a table."""
    storage = storage_at(location) if isinstance(location, str | os.PathLike) else location
    folder = table.strip("/")
    if isinstance(storage, LocalStorage):
        return storage, folder, ("local", os.path.realpath(Path(storage.root) / folder))
    access = _access(storage)
    if access:
        return storage, folder, (access, f"{storage.root}/{folder}".rstrip("/"))
    return storage, folder, (_Identity(storage), folder)


def _access(storage: Storage) -> str:
    """The access options of a bucket opened by its URL; empty for every other storage."""
    return getattr(storage, "access", "")


@dataclass(frozen=True, slots=True, eq=False)
class _Identity:
    """A storage as a dictionary key, compared by identity: overlays share the name of their root."""

    storage: Storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.storage is self.storage

    def __hash__(self) -> int:
        return id(self.storage)
