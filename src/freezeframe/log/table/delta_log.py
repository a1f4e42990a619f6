"""DeltaLog: the log of one Delta table. It *is* a SnapshotManagement whose snapshots are tables."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from freezeframe.errors import InvalidOption
from freezeframe.log.actions.actions import Metadata, Protocol
from freezeframe.log.actions.protocol import in_commit_timestamps, require_readable
from freezeframe.log.commits.commit_info import require_in_commit_timestamp
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import LOG_FOLDER, LogFile
from freezeframe.log.replay.replay import FileState
from freezeframe.log.replay.table_state import Heads, TableState, require_heads
from freezeframe.log.segments.management import SnapshotManagement
from freezeframe.log.segments.segment import EMPTY_VERSION, LogSegment
from freezeframe.log.table.cleanup import CleanupPlan, clean_up
from freezeframe.log.table.history import CommitTime, History, HistoryEntry, require_within_retention, to_ms
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.state_reader import StateReader
from freezeframe.log.table.verification import Finding, verify_log, verify_snapshot
from freezeframe.storage import LocalStorage, Storage

CACHE_SIZE = 10_000
CACHE_RETENTION_SECONDS = 3_600.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    log: DeltaLog
    used_at: float


class DeltaLog(SnapshotManagement[Snapshot]):
    """The log of one Delta table: its snapshots, now and then.

    ``DeltaLog.for_table`` gives the same object for the same table; a log made directly is
    nobody else's.
    """

    cache_size: ClassVar[int] = CACHE_SIZE
    cache_retention_seconds: ClassVar[float] = CACHE_RETENTION_SECONDS
    _cache: ClassVar[OrderedDict[tuple[object, str], _Entry]] = OrderedDict()
    _cache_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        storage: Storage,
        table: str = "",
        options: LogOptions | None = None,
    ) -> None:
        self.table = table.strip("/")
        folder = f"{self.table}/{LOG_FOLDER}" if self.table else LOG_FOLDER
        chosen = options or LogOptions()
        self._reader = StateReader(storage, folder, use_checksum=chosen.use_checksum)
        super().__init__(storage, folder, chosen)

    def __repr__(self) -> str:
        return f"DeltaLog({self.path!r})"

    @property
    def path(self) -> str:
        """Where the table is, for messages."""
        return self.storage.uri(self.table) if self.table else self.storage.root

    # One log per table

    @classmethod
    def for_table(
        cls,
        location: str | os.PathLike[str] | Storage,
        table: str = "",
        *,
        options: LogOptions | None = None,
    ) -> DeltaLog:
        """The log of a table: by its directory, or by a storage and the table's folder in it.

        Every spelling of a directory gives the same object while it is cached; it is not
        updated by asking (behaviours 41, 49). The cache holds ``DeltaLog.cache_size`` logs, each
        for ``DeltaLog.cache_retention_seconds`` after its last use. ``options`` count when
        the log is opened.

        Raises:
            CorruptLog: the log is damaged.
            UnsupportedTable: the table needs what is not known here.
        """
        return cls._get_or_open(location, table, options)[0]

    @classmethod
    def for_table_with_snapshot(
        cls, location: str | os.PathLike[str] | Storage, table: str = ""
    ) -> tuple[DeltaLog, Snapshot]:
        """The log and its latest snapshot, updated (behaviour 41); one opened for this call is up to date."""
        log, is_new = cls._get_or_open(location, table)
        return log, log.current_snapshot if is_new else log.update()

    @classmethod
    def note_commit(cls, storage: Storage, table: str, version: int, content: bytes) -> None:
        """This process has landed ``content`` as the table's ``version``: it need not be read back.

        Counts for the one log that ``for_table`` gives, if it is open, and for its next update.
        """
        _, _, key = _locate(storage, table)
        with cls._cache_lock:
            entry = cls._cache.get(key)
        if entry is not None:
            entry.log._reader.own_commit.note(version, content)  # noqa: SLF001 - another one of this class

    @classmethod
    def clear_cache(cls) -> None:
        """Forget all logs; who holds one keeps it."""
        with cls._cache_lock:
            cls._cache.clear()

    @classmethod
    def invalidate_cache(cls, location: str | os.PathLike[str] | Storage, table: str = "") -> None:
        """Forget the log of one table."""
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
        """The log of a table, and whether it was opened just now."""
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
        oldest = time.monotonic() - cls.cache_retention_seconds
        expired = [key for key, entry in cls._cache.items() if entry.used_at < oldest]
        for key in expired:
            del cls._cache[key]
        while len(cls._cache) > max(0, cls.cache_size):
            cls._cache.popitem(last=False)

    # History

    @property
    def _history(self) -> History:
        return History(self.storage, self.folder)

    def history(self, limit: int | None = None, start: int = 0, end: int | None = None) -> list[HistoryEntry]:
        """The versions, newest first, with their times and what their writers said (behaviour 69).

        A cached snapshot that reaches ``end`` is good enough; else the log is updated first.
        Seed: ``DeltaHistoryManager.getHistory``.
        """
        snapshot = self.current_snapshot
        if end is None or end > snapshot.version:
            snapshot = self.update()
        return self._history.entries(snapshot, limit, start, end) if snapshot.exists else []

    def version_at(self, timestamp: datetime, *, can_return_last_commit: bool = False) -> int:
        """The version that was current at ``timestamp`` (naive: UTC), by monotonised times (behaviour 71).

        Raises:
            VersionNotFound: the moment is before the first version that can be read, or after
                the latest one (unless ``can_return_last_commit``).
        """
        found = self._history.active_commit_at_time(
            self.update(), timestamp, can_return_last_commit=can_return_last_commit
        )
        return found.version

    def active_commit_at_time(
        self,
        timestamp: datetime,
        *,
        can_return_last_commit: bool = False,
        can_return_earliest_commit: bool = False,
        must_be_recreatable: bool = True,
    ) -> CommitTime:
        """The last commit at or before ``timestamp``; see ``History.active_commit_at_time``."""
        return self._history.active_commit_at_time(
            self.update(),
            timestamp,
            can_return_last_commit=can_return_last_commit,
            can_return_earliest_commit=can_return_earliest_commit,
            must_be_recreatable=must_be_recreatable,
        )

    def earliest_version(self, *, must_be_recreatable: bool = True) -> int:
        """The first version that has a commit, or the first that can be made again (behaviour 72)."""
        return self._history.earliest_version(must_be_recreatable=must_be_recreatable)

    def check_version_exists(self, version: int, *, must_be_recreatable: bool = True) -> None:
        """Refuse a version that cannot be read; see ``History.check_version_exists``."""
        self._history.check_version_exists(self.update(), version, must_be_recreatable=must_be_recreatable)

    def starting_version(self, timestamp: datetime) -> int:
        """The first version at or after ``timestamp``: where a stream of changes begins.

        Seed: ``DeltaSource.getStartingVersion``.

        Raises:
            VersionNotFound: the moment is after the latest version.
        """
        found = self._history.active_commit_at_time(
            self.update(), timestamp, can_return_earliest_commit=True, must_be_recreatable=False
        )
        return found.version if found.timestamp >= to_ms(timestamp) else found.version + 1

    def clean_up_expired_logs(self) -> CleanupPlan:
        """Delete what the table's log retention no longer asks for (behaviour 75); says what it was."""
        return clean_up(self.update(), self.options.clock())

    def verify(self) -> list[Finding]:
        """What is damaged in the log and in the data of its latest version; nothing if all is well.

        Raises:
            InputNotFound: there is no table.
        """
        findings = verify_log(self.storage, self.folder)
        return findings or verify_snapshot(self.update())

    # Snapshots

    def snapshot_at(self, version: int | None = None, timestamp: datetime | None = None) -> Snapshot:
        """The snapshot of a version or moment; with ``enforce_file_retention`` a young one (behaviour 68)."""
        snapshot = super().snapshot_at(version, timestamp)
        if self.options.enforce_file_retention and snapshot.version < self.current_snapshot.version:
            require_within_retention(snapshot, self.options.clock())
        return snapshot

    def create_snapshot(
        self,
        segment: LogSegment,
        previous: Snapshot | None = None,
        new_commits: Sequence[LogFile] | None = None,
    ) -> Snapshot:
        """The table at the segment's version (seed: ``createSnapshot``; the checksum is read here).

        Raises:
            CorruptLog: the log is damaged, or protocol or metadata are nowhere to be found.
            UnsupportedTable: the protocol asks for what is not known here.
        """
        if segment.version == EMPTY_VERSION:
            _log.info("Creating initial snapshot without metadata, because the directory is empty")
            return self._snapshot(segment, Heads.empty(), Protocol(1, 1), Metadata(id=""))
        state: TableState | None = None
        if previous is not None and new_commits is not None and previous.is_loaded:
            state = self._reader.advance(previous.state, segment, new_commits)
            heads = state.heads
        else:
            heads, state = self._reader.heads(segment)
        protocol, metadata = require_heads(heads, segment.version)
        require_readable(protocol, self.path)
        self._note_changes(previous, metadata)
        snapshot = self._snapshot(segment, heads, protocol, metadata)
        return snapshot if state is None else snapshot.with_state(state)

    def _snapshot(
        self, segment: LogSegment, heads: Heads, protocol: Protocol, metadata: Metadata
    ) -> Snapshot:
        return Snapshot(
            self.storage,
            self.table,
            segment,
            protocol=protocol,
            metadata=metadata,
            timestamp=_timestamp(segment, heads, metadata),
            commit_info=heads.commit_info,
            load_state=lambda: self._load_state(segment),
            clock=self.options.clock,
        )

    def _load_state(self, segment: LogSegment) -> TableState:
        """The state of the segment; where its checkpoint is damaged, of one that does without it."""
        if segment.version == EMPTY_VERSION:
            return TableState(Heads.empty(), FileState.empty())
        state, _ = self._around_damage(segment, self._reader.state)
        self._warn_of_size(state)
        return state

    def _note_changes(self, previous: Snapshot | None, metadata: Metadata) -> None:
        if previous is not None and previous.exists and previous.metadata.id != metadata.id:
            _log.warning(
                "The id of the table %s changed from %s to %s: it was made anew",
                self.path,
                previous.metadata.id,
                metadata.id,
            )

    def _warn_of_size(self, state: TableState) -> None:
        limit = self.options.files_warning_threshold
        if limit and state.files.count > limit:
            _log.warning("The table %s has %s files; optimizing it would help", self.path, state.files.count)


def _timestamp(segment: LogSegment, heads: Heads, metadata: Metadata) -> int:
    """The version's time in ms: its own where in-commit timestamps are on, else the file's."""
    if segment.last_commit is None:
        return -1
    since = in_commit_timestamps(metadata)
    if since is not None and segment.version >= since[0]:
        return require_in_commit_timestamp(heads.commit_info, segment.version)
    return segment.last_commit.modified_ms


def _locate(
    location: str | os.PathLike[str] | Storage, table: str
) -> tuple[Storage, str, tuple[object, str]]:
    """(storage, folder, cache key) of a table."""
    if isinstance(location, str | os.PathLike):
        text = os.fspath(location)
        if text.startswith("file:"):
            text = unquote(urlsplit(text).path)
        elif "://" in text:
            raise InvalidOption(
                f"{text!r} is no directory of this machine.",
                remedy="For an object store, pass a storage and the table's folder in it.",
            )
        storage: Storage = LocalStorage(Path(text))
    else:
        storage = location
    folder = table.strip("/")
    if isinstance(storage, LocalStorage):
        return storage, folder, ("local", os.path.realpath(Path(storage.root) / folder))
    return storage, folder, (_Identity(storage), folder)


@dataclass(frozen=True, slots=True, eq=False)
class _Identity:
    """A storage as a key: the object itself, whatever it calls itself (overlays share their root's name)."""

    storage: Storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.storage is self.storage

    def __hash__(self) -> int:
        return id(self.storage)
