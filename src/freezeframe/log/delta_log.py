"""DeltaLog: the public interface to the log of one Delta table."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from freezeframe.errors import InvalidOption
from freezeframe.log.primitives.listing import list_log
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import LOG_FOLDER, Kind, parse_name
from freezeframe.log.statistics.data_skipping import Predicate
from freezeframe.log.table.changes import read_changes
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.write.transaction import Transaction
from freezeframe.log.write.upkeep import Maintenance, Upkeep
from freezeframe.storage import LocalStorage, Storage
from freezeframe.storage.location import storage_at
from freezeframe.storage.probe import require_proven

if TYPE_CHECKING:
    import pyarrow.dataset as ds

CACHE_SIZE = 10_000
CACHE_RETENTION_SECONDS = 3_600.0


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
            InvalidOption: a URL of another kind, an unknown option, a file, or the log's own folder.
            CorruptLog: the log is damaged.
            UnsupportedTable: the table requires an unsupported feature.
            StorageUnavailable: the storage failed.
        """
        storage = storage_at(uri, storage_options)
        _require_folder_of_table(storage)
        log, is_new = cls._get_or_open(storage, "", options)
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
        self, *, upkeep: Upkeep | None = None, own_features: Collection[str] = ()
    ) -> Transaction:
        """A transaction on the newest version; see ``Transaction``.

        Raises:
            StorageUnsuitable: the bucket's store has no atomic create, so commits could be lost.
        """
        if _access(self.storage):
            require_proven(self.storage, self.folder)
        return Transaction(self, upkeep=upkeep, own_features=own_features)

    @property
    def maintenance(self) -> Maintenance:
        """Checkpoints, compaction, cleanup and verification."""
        return Maintenance(self)


def _require_folder_of_table(storage: Storage) -> None:
    """Refuse a file, and the folder of a log: neither is an empty table."""
    path = storage.local_path("")
    if path is not None and (path.is_file() or path.name == LOG_FOLDER):
        raise InvalidOption(
            f"{path} is {'a file' if path.is_file() else 'the folder of a log'}, not a table.",
            remedy=f"Pass the folder that has {LOG_FOLDER} in it.",
        )


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
