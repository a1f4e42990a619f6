"""DeltaLog: the public interface to the log of one Delta table."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NoReturn, cast

import numpy as np
import pyarrow as pa

from freezeframe.errors import CorruptLog, InvalidOption, VersionNotFound
from freezeframe.log.format.action_columns import from_adds, to_adds
from freezeframe.log.format.actions import Add, Cdc, DeletionVector, Remove, parse_line
from freezeframe.log.names_elsewhere import CalledVersion, KnowsNamesElsewhere, refuse_name
from freezeframe.log.primitives.listing import list_log
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import LOG_FOLDER, Kind, canonical_path, commit_name, parse_name
from freezeframe.log.scan.data_skipping import Predicate
from freezeframe.log.scan.file_rows import FileRead, deleted_rows, file_batches, rows_at
from freezeframe.log.scan.rows import plan_reads, require_rows
from freezeframe.log.segments.management import Moment, require_version
from freezeframe.log.segments.segment import version_missing
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Maintenance, Upkeep
from freezeframe.storage import LocalStorage, Storage
from freezeframe.storage.location import storage_at
from freezeframe.storage.probe import require_proven

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

_CHANGE_TYPE = {"name": "_change_type", "type": "string", "nullable": True, "metadata": {}}
CHANGE_COLUMNS = pa.schema(
    [
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)
"""The columns that rows of changes have beside the table's own, in the words of Delta and Spark."""


def read_changes(
    log: TableLog, start: int, end: int | None = None, *, may_be_empty: bool = False
) -> pa.RecordBatchReader:
    """Return the changes of versions ``start`` to ``end`` in the columns of ``end``; see ``DeltaLog``."""
    start = require_version(start)
    newest = log.update()
    last = newest.version if end is None else require_version(end)
    require_rows(newest)
    if start > last + (may_be_empty or end is None):
        raise InvalidOption(
            f"Versions {start} to {last} are not a range.", remedy="Pass the earlier version first."
        )
    if last > newest.version:
        raise version_missing(log.path, last, newest.version)
    times = {entry.version: entry.timestamp for entry in log.commit_times(start, last)}
    gone = [version for version in range(start, last + 1) if version not in times]
    if gone:
        raise VersionNotFound(
            f"The changes of version {gone[0]} can no longer be read.",
            cause="Its commit was cleaned up after the log's retention.",
            remedy="Begin with a later version; history() lists them.",
            code="DELTA_VERSION_NOT_FOUND",
            version=gone[0],
        )
    snapshot = log.snapshot_at(version=last)
    schema = pa.schema([*plan_reads(snapshot, None, None, from_adds([])).schema, *CHANGE_COLUMNS])
    batches = (
        batch
        for version in range(start, last + 1)
        for batch in _Commit(log, snapshot, version, times[version]).batches(schema)
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


class _Commit:
    """One commit of the range; its rows have the columns of ``snapshot``."""

    def __init__(self, log: TableLog, snapshot: Snapshot, version: int, timestamp_ms: int) -> None:
        self._log = log
        self._snapshot = snapshot
        self._version = version
        self._timestamp_us = timestamp_ms * 1000

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch, kind in self._changes():
            rows = batch.num_rows
            change = batch.column(batch.num_columns - 1) if kind is None else pa.repeat(kind, rows)
            columns = batch.columns if kind is not None else batch.columns[:-1]
            version = pa.repeat(pa.scalar(self._version, pa.int64()), rows)
            moment = pa.repeat(pa.scalar(self._timestamp_us, schema.field("_commit_timestamp").type), rows)
            yield pa.RecordBatch.from_arrays([*columns, change, version, moment], schema=schema)

    def _changes(self) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Batches with their kind of change, or None where the last column holds it."""
        name = f"{self._log.folder}/{commit_name(self._version)}"
        try:
            content = self._log.storage.read(name)
        except FileNotFoundError as error:
            raise CorruptLog(
                f"The commit {name} is gone.",
                cause="It was listed and then deleted, by log retention or by hand.",
                remedy="Begin with a later version.",
                code="DELTA_LOG_FILE_NOT_FOUND",
            ) from error
        found = (parse_line(line) for line in content.splitlines() if line.strip())
        actions = [action for action in found if action is not None]
        recorded = [action for action in actions if isinstance(action, Cdc)]
        if recorded:
            for batch in self._recorded_changes(recorded):
                yield batch, None
            return
        adds = {canonical_path(a.path): a for a in actions if isinstance(a, Add) and a.data_change}
        removed = self._removed_files([a for a in actions if isinstance(a, Remove) and a.data_change])
        for path, add in removed.items():
            after = adds.get(path)
            for batch in self._rows(add) if after is None else self._between(add, after):
                yield batch, "delete"
        for path, add in adds.items():
            before = removed.get(path)
            for batch in self._rows(add) if before is None else self._between(add, before):
                yield batch, "insert"

    def _removed_files(self, removes: Sequence[Remove]) -> dict[str, Add]:
        """Return the add actions of removed files, from the state before: a remove may hold only the path."""
        found: dict[str, Add] = {}
        bare: set[str] = set()
        for remove in removes:
            path = canonical_path(remove.path)
            if remove.size is None or remove.partition_values is None:
                bare.add(path)
            else:
                found[path] = Add(
                    remove.path, remove.size, remove.partition_values, deletion_vector=remove.deletion_vector
                )
        if bare:
            files = self._log.snapshot_at(version=self._version - 1).files
            wanted = pa.array([path in bare for path in files["path"].to_pylist()], pa.bool_())
            found |= {canonical_path(add.path): add for add in to_adds(files.filter(wanted))}
        return found

    def _read(self, add: Add) -> FileRead:
        return plan_reads(self._snapshot, None, None, from_adds([add])).reads[0]

    def _rows(self, add: Add) -> Iterator[pa.RecordBatch]:
        return file_batches(self._snapshot.storage, self._read(add), None)

    def _between(self, add: Add, other: Add) -> Iterator[pa.RecordBatch]:
        """Return rows of a file that are live under the vector of ``add`` but deleted under ``other``'s."""
        gone = np.setdiff1d(
            self._deleted_positions(other.deletion_vector), self._deleted_positions(add.deletion_vector)
        )
        return rows_at(self._snapshot.storage, self._read(add), gone.astype(np.int64))

    def _deleted_positions(self, vector: DeletionVector | None) -> np.ndarray:
        if vector is None:
            return np.zeros(0, np.uint64)
        return deleted_rows(self._snapshot.storage, self._snapshot.table, vector)

    def _recorded_changes(self, files: Sequence[Cdc]) -> Iterator[pa.RecordBatch]:
        for file in files:
            read = self._read(Add(file.path, file.size, file.partition_values))
            wide = replace(read, fields=(*read.fields, _CHANGE_TYPE), shown=read.shown + 1)
            yield from file_batches(self._snapshot.storage, wide, None)


CACHE_SIZE = 10_000
CACHE_RETENTION_SECONDS = 3_600.0


_Key = tuple[object, str, str, str]


@dataclass(slots=True)
class _Entry:
    log: DeltaLog
    used_at: float


class DeltaLog(TableLog, metaclass=KnowsNamesElsewhere):
    """The log of one Delta table.

    ``DeltaLog.open`` and ``DeltaLog.for_table`` return the same cached object for the same table; a
    directly constructed log is not cached. A ``Snapshot`` answers queries of one version.
    """

    cache_size: ClassVar[int] = CACHE_SIZE
    cache_retention_seconds: ClassVar[float] = CACHE_RETENTION_SECONDS
    _cache: ClassVar[OrderedDict[_Key, _Entry]] = OrderedDict()
    _cache_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        location: str | os.PathLike[str] | Storage,
        table: str = "",
        options: LogOptions | None = None,
    ) -> None:
        """Open the log of a table, given its directory or URL, or a storage and the table's folder in it."""
        super().__init__(_storage_of(location), table, options)

    def __dir__(self) -> Iterable[str]:
        """Return the names that a user of a table needs; ``SnapshotManagement`` has the seed's others."""
        return (*_NAMES, *(name for name in super().__dir__() if name.startswith("_")))

    if not TYPE_CHECKING:  # a type checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            refuse_name("DeltaLog", name)

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
        log, is_new = cls._get_or_open(_storage_of(uri, storage_options), "", options)
        if not is_new:
            log.update()
        return log

    @classmethod
    def is_table(
        cls, uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> bool:
        """Return whether a Delta table exists: its log holds a commit or a checkpoint. No file is read.

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
        """Return the log of a table, given its directory, or a storage and the table's folder in it.

        Every spelling of a directory returns the same object while it is cached; the call does not
        update it. A storage and a folder in it have a log of their own, whose names begin in that storage.
        The cache holds ``DeltaLog.cache_size`` logs, each
        for ``DeltaLog.cache_retention_seconds`` after its last use. ``options`` apply only
        when the log is opened.

        Raises:
            CorruptLog: the log is damaged.
            UnsupportedTable: the table requires an unsupported feature.
        """
        return cls._get_or_open(location, table, options)[0]

    @classmethod
    def for_table_with_snapshot(
        cls, location: str | os.PathLike[str] | Storage, table: str = "", since: int | None = None
    ) -> tuple[DeltaLog, Snapshot]:
        """Return the log and its latest snapshot; a cached log is updated first.

        An update that began at or after ``since`` (ms) suffices.
        """
        log, is_new = cls._get_or_open(location, table)
        return log, log.current_snapshot if is_new else log.update(check_if_updated_since=since)

    @classmethod
    def note_commit(cls, storage: Storage, table: str, version: int, content: bytes) -> None:
        """Record a commit of this process, so that the next update need not read it back.

        Applies to the cached log of ``for_table``, if it is open, and to its next update. Where this has the
        state before the commit, the state after it is kept beside the commit.
        """
        _, _, key = _locate(storage, table)
        with cls._cache_lock:
            entry = cls._cache.get(key)
        if entry is not None:
            entry.log._note_commit(version, content)  # noqa: SLF001 - another instance of this class

    @classmethod
    def clear_cache(cls) -> None:
        """Remove all logs from the cache; references to them stay valid."""
        with cls._cache_lock:
            cls._cache.clear()

    @classmethod
    def invalidate_cache(cls, location: str | os.PathLike[str] | Storage, table: str = "") -> None:
        """Remove the logs of one table from the cache, whichever way they were opened."""
        _, _, place = _locate(location, table)
        with cls._cache_lock:
            for key in [key for key in cls._cache if key[:2] == place[:2]]:
                del cls._cache[key]

    @classmethod
    def _get_or_open(
        cls,
        location: str | os.PathLike[str] | Storage,
        table: str,
        options: LogOptions | None = None,
    ) -> tuple[DeltaLog, bool]:
        """Return the log of a table, and whether this call opened it."""
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

    @property
    def version(self) -> int:
        """The version of the snapshot loaded last; -1 if there is no table."""
        return CalledVersion(self.current_snapshot.version)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the snapshot loaded last; see ``Snapshot.schema``."""
        return self.current_snapshot.schema

    def to_arrow(self, columns: Sequence[str] | None = None, where: Predicate | None = None) -> pa.Table:
        """Return the rows of the newest version; see ``Snapshot.to_arrow``."""
        return self.update().to_arrow(columns, where)

    def to_pandas(self, columns: Sequence[str] | None = None, where: Predicate | None = None) -> pd.DataFrame:
        """Return the rows of the newest version as pandas; see ``Snapshot.to_pandas``."""
        return self.update().to_pandas(columns, where)

    def to_dataset(self) -> ds.Dataset:
        """Return the newest version as a PyArrow dataset; see ``Snapshot.to_dataset``."""
        return self.update().to_dataset()

    def changes(
        self,
        start: int | None = None,
        end: int | None = None,
        *,
        start_timestamp: Moment | None = None,
        end_timestamp: Moment | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows that versions ``start`` (None: 0) to ``end`` (None: the newest) changed.

        In place of a version a moment can be given: the first version at or after ``start_timestamp``, the
        last at or before ``end_timestamp``. Where no version is in between there are no rows.

        Besides the table's columns they have ``_change_type`` (``insert``, ``delete``, and where a
        writer recorded them ``update_preimage`` and ``update_postimage``), ``_commit_version`` and
        ``_commit_timestamp``. Without change files, the changes of a commit are derived from its added
        and removed files. Batches are read lazily.

        Raises:
            VersionNotFound: a version of the range has no commit (any more).
            CorruptData: a file is missing or damaged; raised while iterating.
        """
        both = (("start", start, start_timestamp), ("end", end, end_timestamp))
        for name, version, moment in both:
            if version is not None and moment is not None:
                raise InvalidOption(
                    f"Both {name} and {name}_timestamp are given.", remedy="Pass one of them."
                )
        require_rows(self.update())
        if start_timestamp is not None:
            start = self.starting_version(start_timestamp, can_return_next_version=True)
        if end_timestamp is not None:
            end = self.active_commit_at_time(
                end_timestamp, can_return_last_commit=True, must_be_recreatable=False
            ).version
        is_timed = start_timestamp is not None or end_timestamp is not None
        return read_changes(self, start or 0, end, may_be_empty=is_timed)

    # Writing

    def start_transaction(
        self, *, upkeep: Upkeep | None = None, own_features: Collection[str] = ()
    ) -> Transaction:
        """Return a transaction on the newest version; see ``Transaction``.

        Raises:
            StorageUnsuitable: the bucket's store has no atomic create, so commits could be lost.
        """
        if _access(self.storage):
            require_proven(self.storage, self.folder)
        return Transaction(self, upkeep=upkeep, own_features=own_features)

    @property
    def maintenance(self) -> Maintenance:
        """Checkpoints, cleanup and verification."""
        return Maintenance(self)


_NAMES = (  # noqa: SIM905 - as a list it is a line for each name
    "changes clear_cache for_table history invalidate_cache is_table maintenance open options path schema "
    "snapshot snapshot_at start_transaction storage to_arrow to_dataset to_pandas update version"
).split()


def _storage_of(
    location: str | os.PathLike[str] | Storage, options: Mapping[str, str] | None = None
) -> Storage:
    """Return the storage at a location; refuse a file, and the folder of a log, which are no empty tables."""
    if hasattr(location, "put_if_absent"):
        return cast("Storage", location)
    storage = storage_at(cast("str", location), options)  # which refuses what is no path
    path = storage.local_path("")
    if path is not None and (path.is_file() or path.name == LOG_FOLDER):
        raise InvalidOption(
            f"{path} is {'a file' if path.is_file() else 'the folder of a log'}, not a table.",
            remedy=f"Pass the folder that has {LOG_FOLDER} in it.",
        )
    return storage


def _locate(location: str | os.PathLike[str] | Storage, table: str) -> tuple[Storage, str, _Key]:
    """Return (storage, folder, cache key) of a table.

    The key begins with where the table is. The storage's root and the folder follow, because names that a
    log gives begin at its root: the log of ``S.snapshot`` by its path has other names than a tenant's.
    """
    storage = _storage_of(location)
    folder = table.strip("/")
    if isinstance(storage, LocalStorage):
        root = os.path.realpath(storage.root)
        # No link below the root is followed.
        return storage, folder, ("local", os.path.normpath(f"{root}/{folder}"), root, folder)
    access = _access(storage)
    if access:
        return storage, folder, (access, f"{storage.root}/{folder}".rstrip("/"), storage.root, folder)
    return storage, folder, (_Identity(storage), folder, "", folder)


def _access(storage: Storage) -> str:
    """Return the access options of a bucket opened by its URL; empty for every other storage."""
    return getattr(storage, "access", "")


@dataclass(frozen=True, slots=True, eq=False)
class _Identity:
    """A storage as a dictionary key, compared by identity: overlays share the name of their root."""

    storage: Storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.storage is self.storage

    def __hash__(self) -> int:
        return id(self.storage)
