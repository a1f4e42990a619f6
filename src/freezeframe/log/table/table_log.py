"""TableLog: the snapshots and the history of one Delta table."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

from freezeframe.errors import CorruptLog, VersionNotFound
from freezeframe.log.format.actions import CommitInfo, Metadata, Protocol
from freezeframe.log.format.protocol import in_commit_timestamps, require_readable
from freezeframe.log.primitives.listing import complete_checkpoints, list_log, sort_listing
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import LOG_FOLDER, LogFile
from freezeframe.log.segments.commit import read_commit_info, read_in_commit_timestamp
from freezeframe.log.segments.management import Moment, SnapshotManagement, iso, require_version, to_ms
from freezeframe.log.segments.replay import FileState, Heads, TableState, require_heads
from freezeframe.log.segments.segment import EMPTY_VERSION, LogSegment, version_missing
from freezeframe.log.segments.state_reader import StateReader
from freezeframe.log.table.snapshot import DELETED_FILE_RETENTION, Snapshot, VersionHead, oldest_tombstone
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import run_concurrently

# History of a table: versions by time, their authors, and the oldest readable version.
#
# Times are in-commit timestamps where enabled, else modification times of the commit files, adjusted
# to ascend where clocks went backwards. Seed: ``DeltaHistoryManager``.

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitTime:
    """A version and its time in ms."""

    version: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A version, its time in ms, and its commit info."""

    version: int
    timestamp: int
    commit_info: CommitInfo | None

    def to_json(self) -> dict[str, Any]:
        """Version, ISO time, and the fields of the commit info."""
        fields = {} if self.commit_info is None else self.commit_info.to_json()
        rest = {name: value for name, value in fields.items() if name != "timestamp"}
        return {"version": self.version, "timestamp": iso(self.timestamp), **rest}


class History:
    """Version history of the log in ``folder``."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._path = f"{storage.root}/{folder}"

    def entries(
        self, snapshot: Snapshot, limit: int | None = None, start: int = 0, end: int | None = None
    ) -> list[HistoryEntry]:
        """Return the versions from ``start`` to ``end``, newest first, at most ``limit``.

        ``end`` is limited to the latest version; ``start`` above ``end`` returns an empty list.
        Versions without a commit file are left out.
        """
        last = snapshot.version if end is None else min(end, snapshot.version)
        if limit is not None:
            start = max(start, last - limit + 1)
        if start > last:
            return []
        times = self.commit_times(snapshot, start, last)
        times.reverse()
        infos = self._of_each([time.version for time in times], read_commit_info)
        return [
            HistoryEntry(time.version, time.timestamp, info) for time, info in zip(times, infos, strict=True)
        ]

    def _of_each(self, versions: Sequence[int], read: Callable[[Storage, str, int], T]) -> list[T]:
        """``read`` of each version's commit, concurrently unless the storage is local."""
        calls = (partial(read, self._storage, self._folder, version) for version in versions)
        return list(run_concurrently(self._storage, *calls))

    def commit_times(self, snapshot: Snapshot, start: int, end: int) -> list[CommitTime]:
        """Return the time of each version from ``start`` to ``end`` with a commit file."""
        since = in_commit_timestamps(snapshot.metadata)
        plain = self.file_times(start, end)
        if since is None:
            return plain
        own = [time.version for time in plain if time.version >= since[0]]
        found = zip(own, self._of_each(own, read_in_commit_timestamp), strict=True)
        later = [CommitTime(version, timestamp) for version, timestamp in found]
        return [time for time in plain if time.version < since[0]] + later

    def file_times(self, start: int, end: int) -> list[CommitTime]:
        """Return modification time of each commit, raised to its predecessor's + 1 ms where it is not later.

        The result depends on all earlier commits that still exist.
        """
        listing = sort_listing(list_log(self._storage, self._folder, 0, end))
        times: list[CommitTime] = []
        for file in listing.commits:
            timestamp = file.modified_ms
            if times and timestamp <= times[-1].timestamp:
                _log.info(
                    "The commits %s and %s have times that do not ascend: %s is moved",
                    times[-1].version,
                    file.version,
                    file.version,
                )
                timestamp = times[-1].timestamp + 1
            times.append(CommitTime(file.version, timestamp))
        return [time for time in times if time.version >= start]

    def active_commit_at_time(
        self,
        snapshot: Snapshot,
        timestamp: Moment,
        *,
        can_return_last_commit: bool = False,
        can_return_earliest_commit: bool = False,
        must_be_recreatable: bool = True,
    ) -> CommitTime:
        """Return last version at or before ``timestamp`` (naive: UTC). Seed: ``getActiveCommitAtTime``."""
        moment = to_ms(timestamp)
        earliest = self.earliest_version(must_be_recreatable=must_be_recreatable)
        last = snapshot.version
        since = in_commit_timestamps(snapshot.metadata)
        if since is not None and moment >= since[1] and since[0] <= last:
            low = max(earliest, since[0])
            found = self._search_own_times(low, last, moment)
            first = self._own_time(low)
        else:
            before = last if since is None else min(last, since[0] - 1)
            times = self.file_times(earliest, before)
            index = bisect_right([time.timestamp for time in times], moment)
            found = times[index - 1] if index else None
            first = times[0] if times else self._own_time(earliest)
        if found is None:
            if not can_return_earliest_commit:
                raise VersionNotFound(
                    f"The timestamp {iso(moment)} is before the earliest version that can be read.",
                    cause=f"That is version {first.version} of {iso(first.timestamp)}.",
                    remedy="Use that time or a later one.",
                    code="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
                    version=first.version,
                )
            return first
        if found.version == last and moment > found.timestamp and not can_return_last_commit:
            raise VersionNotFound(
                f"The timestamp {iso(moment)} is after the latest version.",
                cause=f"That is version {last} of {iso(found.timestamp)}.",
                remedy="Use that time or an earlier one, or read the latest version without a time.",
                code="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                version=last,
            )
        return found

    def earliest_version(self, *, must_be_recreatable: bool = True) -> int:
        """Return the first version with a commit, or the first recreatable version."""
        listing = sort_listing(list_log(self._storage, self._folder))
        if not listing.commits:
            raise VersionNotFound(
                f"No commits found at {self._path}.",
                cause="The log holds no commit file.",
                remedy="Check the path of the table.",
                code="DELTA_NO_COMMITS_FOUND",
            )
        versions = [file.version for file in listing.commits]
        if not must_be_recreatable or versions[0] == 0:
            return versions[0]
        # Commits below the newest gap cannot be part of a segment.
        floor = versions[-1]
        for version in reversed(versions[:-1]):
            if version != floor - 1:
                break
            floor = version
        for checkpoint in complete_checkpoints(listing.checkpoint_files):
            if floor - 1 <= checkpoint.version <= versions[-1]:
                return max(checkpoint.version, floor) if checkpoint.version < floor else checkpoint.version
        raise VersionNotFound(
            f"No recreatable commits found at {self._path}.",
            cause="The first commits are gone and no complete checkpoint covers them.",
            remedy="Restore the missing files from a copy.",
            code="DELTA_NO_RECREATABLE_HISTORY_FOUND",
        )

    def check_version_exists(
        self, snapshot: Snapshot, version: int, *, must_be_recreatable: bool = True
    ) -> None:
        """Refuse a version that cannot be read (seed: ``checkVersionExists``)."""
        earliest = self.earliest_version(must_be_recreatable=must_be_recreatable)
        if version > snapshot.version:
            raise version_missing(snapshot.path, version, snapshot.version)
        if version < earliest:
            raise VersionNotFound(
                f"Version {version} can no longer be read: versions {earliest} to {snapshot.version} can.",
                cause="Its commits were cleaned up after the log's retention.",
                remedy=f"Read version {earliest} or later.",
                code="DELTA_VERSION_NOT_FOUND",
                version=version,
                earliest=earliest,
                latest=snapshot.version,
            )

    def _search_own_times(self, low: int, high: int, moment: int) -> CommitTime | None:
        """Binary search for the last version in [low, high] with an own time at or before ``moment``."""
        found: CommitTime | None = None
        while low <= high:
            middle = (low + high) // 2
            time = self._own_time(middle)
            if time.timestamp <= moment:
                found, low = time, middle + 1
            else:
                high = middle - 1
        return found

    def _own_time(self, version: int) -> CommitTime:
        try:
            timestamp = read_in_commit_timestamp(self._storage, self._folder, version)
        except FileNotFoundError as error:
            raise CorruptLog(
                f"The commit of version {version} is gone.",
                cause="It was cleaned up or deleted by hand.",
                remedy="Read a later version.",
                code="DELTA_LOG_FILE_NOT_FOUND",
            ) from error
        return CommitTime(version, timestamp)


def require_within_retention(snapshot: Snapshot, now_ms: int) -> None:
    """Refuse a snapshot older than the deleted-file retention, whose files a vacuum may have deleted."""
    oldest = now_ms - snapshot.deleted_file_retention_ms
    if snapshot.timestamp < oldest:
        raise VersionNotFound(
            f"Version {snapshot.version} of {iso(snapshot.timestamp)} is older than removed files are kept.",
            cause="Its data files may have been deleted since.",
            remedy="Read a later version, or raise delta.deletedFileRetentionDuration.",
            code="DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
            version=snapshot.version,
        )


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

    @cached_property
    def path(self) -> str:
        """The location of the table, for messages."""
        return self.storage.uri(self.table) if self.table else self.storage.root

    def _note_commit(self, version: int, content: bytes) -> None:
        self._reader.own_commit.note(version, content)
        before = self.current_snapshot
        if before.version == version - 1 and (before.is_loaded or not before.exists):
            try:
                self._reader.keep_state(version, before.state, content)
            except Exception:  # noqa: BLE001 - whatever fails: it is derived, and the commit is there
                _log.debug(
                    "The state beside version %s of %s was not written", version, self.path, exc_info=True
                )

    # History

    @property
    def _history(self) -> History:
        return History(self.storage, self.folder)

    def history(self, limit: int | None = None, start: int = 0, end: int | None = None) -> list[HistoryEntry]:
        """Return the versions, newest first, with their times and commit infos.

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
        """Return the time of each version from ``start`` to ``end`` with a commit file."""
        return self._history.commit_times(self.update(), start, end)

    def version_at(self, timestamp: Moment, *, can_return_last_commit: bool = False) -> int:
        """Return the version that was current at ``timestamp`` (naive: UTC), by monotonised times.

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
        timestamp: Moment,
        *,
        can_return_last_commit: bool = False,
        can_return_earliest_commit: bool = False,
        must_be_recreatable: bool = True,
    ) -> CommitTime:
        """Return the last commit at or before ``timestamp``; see ``History.active_commit_at_time``."""
        return self._history.active_commit_at_time(
            self.update(),
            timestamp,
            can_return_last_commit=can_return_last_commit,
            can_return_earliest_commit=can_return_earliest_commit,
            must_be_recreatable=must_be_recreatable,
        )

    def earliest_version(self, *, must_be_recreatable: bool = True) -> int:
        """Return the first version with a commit, or the first recreatable version."""
        return self._history.earliest_version(must_be_recreatable=must_be_recreatable)

    def check_version_exists(self, version: int, *, must_be_recreatable: bool = True) -> None:
        """Refuse a version that cannot be read; see ``History.check_version_exists``."""
        self._history.check_version_exists(self.update(), version, must_be_recreatable=must_be_recreatable)

    def starting_version(self, timestamp: Moment, *, can_return_next_version: bool = False) -> int:
        """Return the first version at or after ``timestamp``, from which a stream of changes starts.

        Seed: ``DeltaSource.getStartingVersion``.

        Raises:
            VersionNotFound: the moment is after the latest version, unless ``can_return_next_version``, or
                before a first commit other than version 0, so that commits in between are gone.
        """
        snapshot = self.update()
        found = self._history.active_commit_at_time(
            snapshot,
            timestamp,
            can_return_last_commit=can_return_next_version,
            can_return_earliest_commit=self.earliest_version(must_be_recreatable=False) == 0,
            must_be_recreatable=False,
        )
        return found.version if found.timestamp >= to_ms(timestamp) else found.version + 1

    # Snapshots

    def snapshot_at(self, version: int | None = None, timestamp: Moment | None = None) -> Snapshot:
        """Return the snapshot of a version or moment; ``enforce_file_retention`` refuses old ones."""
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
        """Return the table at the segment's version (seed: ``createSnapshot``; the checksum is read here).

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
        if previous is not None and previous.exists and previous.metadata.id != metadata.id:
            _log.warning(
                "The id of the table %s changed from %s to %s: it was made anew",
                self.path,
                previous.metadata.id,
                metadata.id,
            )
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
            load_state=partial(self._load_state, segment, head),
            options=self.options,
        )

    def _load_state(
        self, segment: LogSegment, head: VersionHead, oldest: int | None, *, complete: bool = False
    ) -> TableState:
        """Return the state of the segment, or of another where files are damaged or were cleaned up.

        Raises:
            CorruptLog: protocol or metadata differ from those of the ``head``, which came from a checksum.
        """
        if segment.version == EMPTY_VERSION:
            return TableState(Heads.empty(), FileState.empty())
        read = partial(self._reader.state, oldest_tombstone=oldest, complete=complete)
        state = self._as_listed(segment, lambda listed: self._around_damage(listed, read)[0])
        if segment.checksum is not None and self.options.use_checksum:
            checksum = segment.path(segment.checksum)
            compared = (
                ("protocol", head.protocol, state.heads.protocol),
                ("metadata", head.metadata, state.heads.metadata),
            )
            wrong = [name for name, said, found in compared if found is not None and said != found]
            if wrong:
                raise CorruptLog(
                    f"The checksum {checksum} says otherwise than the log about {' and '.join(wrong)}.",
                    cause="A commit was taken back and written anew by a writer without checksums, or the log"
                    " is damaged.",
                    remedy="If the log is whole, delete the .crc file: it is derived.",
                    code="DELTA_TXN_LOG_FAILED_INTEGRITY",
                    file=checksum,
                )
        limit = self.options.files_warning_threshold
        if limit and state.files.count > limit:
            _log.warning("The table %s has %s files; optimizing it would help", self.path, state.files.count)
        return state.without_expired(oldest)


def _retention(metadata: Metadata | None) -> str | None:
    return None if metadata is None else metadata.configuration.get(DELETED_FILE_RETENTION)
