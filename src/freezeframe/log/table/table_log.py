"""TableLog: SnapshotManagement whose snapshots are table snapshots."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from freezeframe.log.actions.actions import Metadata, Protocol
from freezeframe.log.actions.protocol import require_readable
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import LOG_FOLDER, LogFile
from freezeframe.log.replay.replay import FileState, Heads, TableState, require_heads
from freezeframe.log.segments.management import SnapshotManagement, require_version
from freezeframe.log.segments.segment import EMPTY_VERSION, LogSegment
from freezeframe.log.table.history import CommitTime, History, HistoryEntry, require_within_retention, to_ms
from freezeframe.log.table.snapshot import DELETED_FILE_RETENTION, Snapshot, VersionHead, oldest_tombstone
from freezeframe.log.table.state_reader import StateReader
from freezeframe.storage import Storage

_log = logging.getLogger(__name__)


class TableLog(SnapshotManagement[Snapshot]):
    """The log of one Delta table: its snapshots, current and past, and its history.

    ``freezeframe.log.DeltaLog`` adds opening and writing.
    """

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
        return f"{type(self).__name__}({self.path!r})"

    @property
    def path(self) -> str:
        """The location of the table, for messages."""
        return self.storage.uri(self.table) if self.table else self.storage.root

    # History

    @property
    def _history(self) -> History:
        return History(self.storage, self.folder)

    def history(self, limit: int | None = None, start: int = 0, end: int | None = None) -> list[HistoryEntry]:
        """The versions, newest first, with their times and commit infos (behaviour 69).

        A cached snapshot that reaches ``end`` suffices; else the log is updated first.
        Seed: ``DeltaHistoryManager.getHistory``.

        Raises:
            InvalidOption: ``limit``, ``start`` or ``end`` is not a whole number from 0 on.
        """
        for item in (start, *(item for item in (limit, end) if item is not None)):
            require_version(item)
        snapshot = self.current_snapshot
        if end is None or end > snapshot.version:
            snapshot = self.update()
        return self._history.entries(snapshot, limit, start, end) if snapshot.exists else []

    def commit_times(self, start: int, end: int) -> list[CommitTime]:
        """The time of each version from ``start`` to ``end`` with a commit file (behaviour 70)."""
        return self._history.commit_times(self.update(), start, end)

    def version_at(self, timestamp: datetime | int, *, can_return_last_commit: bool = False) -> int:
        """The version that was current at ``timestamp`` (naive: UTC), by monotonised times (behaviour 71).

        Raises:
            VersionNotFound: the moment is before the first readable version, or after
                the latest one (unless ``can_return_last_commit``).
        """
        found = self._history.active_commit_at_time(
            self.update(), timestamp, can_return_last_commit=can_return_last_commit
        )
        return found.version

    def active_commit_at_time(
        self,
        timestamp: datetime | int,
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
        """The first version with a commit, or the first recreatable version (behaviour 72)."""
        return self._history.earliest_version(must_be_recreatable=must_be_recreatable)

    def check_version_exists(self, version: int, *, must_be_recreatable: bool = True) -> None:
        """Refuse a version that cannot be read; see ``History.check_version_exists``."""
        self._history.check_version_exists(self.update(), version, must_be_recreatable=must_be_recreatable)

    def starting_version(self, timestamp: datetime | int) -> int:
        """The first version at or after ``timestamp``, from which a stream of changes starts.

        Seed: ``DeltaSource.getStartingVersion``.

        Raises:
            VersionNotFound: the moment is after the latest version.
        """
        found = self._history.active_commit_at_time(
            self.update(), timestamp, can_return_earliest_commit=True, must_be_recreatable=False
        )
        return found.version if found.timestamp >= to_ms(timestamp) else found.version + 1

    # Snapshots

    def snapshot_at(self, version: int | None = None, timestamp: datetime | int | None = None) -> Snapshot:
        """The snapshot of a version or moment; ``enforce_file_retention`` refuses old ones (behaviour 68)."""
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
            CorruptLog: the log is damaged, or it lacks protocol or metadata.
            UnsupportedTable: the protocol requires an unsupported feature.
        """
        if segment.version == EMPTY_VERSION:
            _log.info("Creating initial snapshot without metadata, because the directory is empty")
            return self._snapshot(segment, VersionHead(Protocol(1, 1), Metadata(id="")))
        state: TableState | None = None
        if previous is not None and new_commits is not None and previous.is_loaded:
            state = self._reader.advance(previous.state, segment, new_commits)
            heads = state.heads
            if _retention(heads.metadata) != _retention(previous.metadata):
                state = None  # a longer retention needs tombstones that only the log still has
        else:
            heads, state = self._reader.heads(segment, with_state=previous is None)
        protocol, metadata = require_heads(heads, segment.version)
        require_readable(protocol, self.path)
        self._note_changes(previous, metadata)
        snapshot = self._snapshot(segment, VersionHead(protocol, metadata, heads.commit_info))
        if state is None:
            return snapshot
        return snapshot.with_state(state.without_expired(oldest_tombstone(metadata, self.options.clock())))

    def _snapshot(self, segment: LogSegment, head: VersionHead) -> Snapshot:
        return Snapshot(
            self.storage,
            self.table,
            segment,
            head,
            load_state=partial(self._load_state, segment),
            options=self.options,
        )

    def _load_state(self, segment: LogSegment, oldest: int | None, *, complete: bool = False) -> TableState:
        """The state of the segment, or of an alternative segment where its checkpoint is damaged."""
        if segment.version == EMPTY_VERSION:
            return TableState(Heads.empty(), FileState.empty())
        state, _ = self._around_damage(
            segment, lambda item: self._reader.state(item, oldest, complete=complete)
        )
        self._warn_of_size(state)
        return state.without_expired(oldest)

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


def _retention(metadata: Metadata | None) -> str | None:
    return None if metadata is None else metadata.configuration.get(DELETED_FILE_RETENTION)
