"""Snapshot management: the newest segment of a log and its updates."""

from __future__ import annotations

import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from numbers import Integral
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from freezeframe.errors import CorruptLog, InvalidOption, ReportDamage, VersionNotFound
from freezeframe.log.primitives.listing import (
    CheckpointFiles,
    Listing,
    WatchedLog,
    complete_checkpoints,
    find_checkpoint_before,
    list_log,
    newest_checkpoint,
    sort_listing,
)
from freezeframe.log.primitives.options import LogOptions, report
from freezeframe.log.primitives.paths import LogFile
from freezeframe.log.segments.checkpoint import CHECKPOINT_DAMAGED
from freezeframe.log.segments.hint import Hint, read_hint
from freezeframe.log.segments.segment import (
    EMPTY_VERSION,
    LogSegment,
    choose_segment,
    commits_since,
    missing_checkpoint,
    version_missing,
)
from freezeframe.storage import FileStatus, Storage

THREADS_MAX = 4
LISTINGS_MAX = 4
"""How often a log is listed anew while files that were listed are deleted before they are read."""

_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


def run_in_background(work: Callable[[], None]) -> Future[None]:
    """Run ``work`` on the pool of at most ``THREADS_MAX`` threads that all logs share.

    A forked process has a pool of its own.
    """
    with _lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            _pools.clear()
            pool = _pools[os.getpid()] = ThreadPoolExecutor(THREADS_MAX, "freezeframe-state-update")
    return pool.submit(work)


_BEGINS_LATER = ("DELTA_TRUNCATED_TRANSACTION_LOG", "DELTA_VERSION_NOT_FOUND")

# SnapshotManagement: the current snapshot of a log, and its update.
#
# This is the seed's extension of ``DeltaLog`` as a base class for any versioned log: a folder with
# ``N.json``, checkpoints under Delta's names, and a hint. It lists the folder, selects the segment,
# falls back when a checkpoint is missing or damaged, decides on staleness, updates in the foreground
# or on a background thread, and installs the new snapshot. Subclasses define the type of snapshot.
#
# Another kind of log subclasses ``SnapshotManagement[S]`` with its snapshot type (any object with
# ``version``, ``segment`` and ``uncache()``) and implements ``create_snapshot`` and, if it supports
# time travel by timestamp, ``version_at``. Attributes must be set *before* ``super().__init__``,
# which loads the first snapshot. An unreadable checkpoint must raise ``CorruptLog`` with the code
# ``CHECKPOINT_DAMAGED`` for the fallback to work::
#
#     class TenantLog(SnapshotManagement[TenantState]):
#         def create_snapshot(self, segment, previous=None, new_commits=None):
#             ...  # read segment.checkpoint and segment.deltas, or previous + new_commits

_log = logging.getLogger(__name__)


class VersionedState(Protocol):
    """Interface of a snapshot of any log."""

    @property
    def version(self) -> int:
        """The version; -1 for an empty log."""

    @property
    def segment(self) -> LogSegment:
        """The files that define the snapshot."""

    def uncache(self) -> None:
        """Release the state; it is read again on the next access."""


Moment: TypeAlias = datetime | date | str | int
"""A datetime, a day, ISO text, or milliseconds since 1970; without a zone in UTC."""

S = TypeVar("S", bound=VersionedState)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CapturedSnapshot(Generic[S]):
    """A snapshot and the start time of its update in ms (-1: never updated)."""

    snapshot: S
    updated_ms: int


class SnapshotManagement(ABC, Generic[S]):
    """The current snapshot of the log in ``folder`` of ``storage``, kept up to date on demand.

    Threads may share one instance: a lock guards the assignment of a new snapshot, and reads of
    ``current_snapshot`` never wait.
    """

    def __init__(self, storage: Storage, folder: str, options: LogOptions | None = None) -> None:
        self.storage = storage
        self.folder = folder
        self.options = options or LogOptions()
        self._update_lock = threading.RLock()
        self._async_lock = threading.Lock()
        self._async_update: Future[None] | None = None
        self._watched = WatchedLog()
        self._listed: tuple[int, tuple[FileStatus, ...]] | None = None
        self._captured: CapturedSnapshot[S] = self.snapshot_at_init()

    @property
    def path(self) -> str:
        """The location of the log, for messages."""
        return self.folder

    # Implemented by subclasses

    @abstractmethod
    def create_snapshot(
        self, segment: LogSegment, previous: S | None = None, new_commits: Sequence[LogFile] | None = None
    ) -> S:
        """Create the snapshot of a segment (seed: ``createSnapshot``).

        With ``previous`` and ``new_commits`` the segment's state is that of ``previous`` plus those
        commits, in ascending order, so an implementation may read only these.

        Raises:
            CorruptLog: ``CHECKPOINT_DAMAGED`` to retry with another checkpoint, else any code.
        """

    def version_at(self, timestamp: Moment) -> int:
        """Return the version that was current at ``timestamp``; raises unless a subclass supports it."""
        raise InvalidOption(
            f"The log {self.folder!r} cannot be read as of {timestamp}.",
            cause="The log has no timestamps.",
            remedy="Name a version.",
        )

    # The current snapshot

    @property
    def current_snapshot(self) -> S:
        """The snapshot loaded last; the access does not update it."""
        return self._captured.snapshot

    @property
    def last_update_timestamp(self) -> int:
        """Start time of the last successful update in ms; -1 before the first."""
        return self._captured.updated_ms

    def snapshot_at_init(self) -> CapturedSnapshot[S]:
        """Return latest snapshot on opening the log, located by the hint (seed: ``getSnapshotAtInit``)."""
        started = self.options.clock()
        snapshot = self._create_latest(self.log_segment_from(self.last_checkpoint()))
        _log.info("Returning initial snapshot %s", snapshot)
        return CapturedSnapshot(snapshot, started)

    def last_checkpoint(self) -> Hint | None:
        """Return the hint, or where it is garbled a hint at the newest listed checkpoint."""
        hint, garbled = read_hint(
            self.storage, self.folder, sleep=self.options.sleep, verify=self.options.verify_hint
        )
        if not garbled:
            return hint
        _log.warning("_last_checkpoint is corrupted. Will search the checkpoint files directly")
        found = find_checkpoint_before(self.storage, self.folder, -1)
        return None if found is None else Hint(version=found.version)

    # Segments

    def list_from(self, start_version: int, end_version: int | None = None) -> Iterator[FileStatus]:
        """List the files of the log from a version on, in the order of their names (seed: ``listFrom``)."""
        return list_log(self.storage, self.folder, start_version, end_version)

    def log_segment_from(self, starting_checkpoint: Hint | None) -> LogSegment:
        """Return the segment of the latest version, listed from the hint on (seed: ``getLogSegmentFrom``)."""
        return self.log_segment_for_version(
            None if starting_checkpoint is None else starting_checkpoint.version
        )

    def log_segment_for_version(
        self, start_checkpoint: int | None = None, version_to_load: int | None = None
    ) -> LogSegment:
        """Choose the newest checkpoint up to ``version_to_load`` (None: the latest) and the commits after it.

        ``start_checkpoint`` is the presumed version of a checkpoint. The listing starts there, and
        again further back where that checkpoint is missing.
        Seed: ``getLogSegmentForVersion``.

        Raises:
            CorruptLog: a gap, missing first commits, or no checkpoint where one is required.
            VersionNotFound: ``version_to_load`` does not exist.
        """
        start = start_checkpoint
        if start is not None and version_to_load is not None and start > version_to_load:
            start = None
        listing = sort_listing(self.list_from(start or 0, version_to_load), version_to_load)
        return self._choose(listing, start, version_to_load)

    def _choose(self, listing: Listing, start: int | None, version_to_load: int | None) -> LogSegment:
        use_compacted = self.options.use_compacted
        if start and listing.is_empty:
            # The table was recreated, or the hint belongs to another one: list the whole log.
            listing = sort_listing(self.list_from(0), version_to_load)
            start = None
        if start is not None and listing.commits:
            found = newest_checkpoint(listing.checkpoint_files)
            if found is None or found.version < start:
                segment = self._segment_below(start, version_to_load)
                if segment is None:
                    raise missing_checkpoint(self.folder, start)
                return segment
        try:
            return choose_segment(self.folder, listing, version_to_load, use_compacted=use_compacted)
        except CorruptLog:
            # A listing beside a cleanup can lack both old commits and the checkpoint that replaces them.
            again = sort_listing(self.list_from(start or 0, version_to_load), version_to_load)
            if again == listing:
                raise
            return choose_segment(self.folder, again, version_to_load, use_compacted=use_compacted)

    def _segment_below(
        self, checkpoint_version: int, version_to_load: int | None, avoid: frozenset[str] = frozenset()
    ) -> LogSegment | None:
        """Return a segment without the checkpoint of that version, or ``None``."""
        checkpoint = self._other_checkpoint(checkpoint_version, avoid)
        start = 0 if checkpoint is None else checkpoint.version
        listing = sort_listing(self.list_from(start), version_to_load)
        listing = Listing(
            listing.commits, (), () if checkpoint is None else checkpoint.files, listing.checksums
        )
        try:
            return choose_segment(self.folder, listing, version_to_load, use_compacted=False)
        except CorruptLog as error:
            _log.warning(
                "No other checkpoint than that of version %s is usable: %s", checkpoint_version, error
            )
            return None

    def _other_checkpoint(self, version: int, avoid: frozenset[str]) -> CheckpointFiles | None:
        if avoid:
            same = sort_listing(self.list_from(version), version).checkpoint_files
            left = [
                checkpoint
                for checkpoint in complete_checkpoints(same)
                if avoid.isdisjoint(f.name for f in checkpoint.files)
            ]
            if left:
                return left[-1]
        return find_checkpoint_before(self.storage, self.folder, version) if version > 0 else None

    # Snapshots

    def _create(
        self, segment: LogSegment, previous: S | None = None, new_commits: Sequence[LogFile] | None = None
    ) -> tuple[S, LogSegment]:
        """Create a snapshot, avoiding a damaged checkpoint, and return its segment."""
        start = segment.checkpoint_version
        checkpoint = "" if start is None else f" starting from checkpoint version {start}"
        _log.info("Loading version %s%s", segment.version, checkpoint)

        def make(item: LogSegment) -> S:
            known = (previous, new_commits) if item is segment else (None, None)
            return self.create_snapshot(item, *known)

        with report(self.options.listener, "deltaLog.snapshot", self.path) as metrics:
            metrics |= {"version": segment.version, "checkpoint": start, "commits": len(segment.commits)}
            return self._around_damage(segment, make)

    def _create_latest(
        self, segment: LogSegment, previous: S | None = None, new_commits: Sequence[LogFile] | None = None
    ) -> S:
        """``_create``, with a new listing if listed files were cleaned up meanwhile."""

        def create(item: LogSegment) -> S:
            return self._create(item, *((previous, new_commits) if item is segment else ()))[0]

        return self._as_listed(segment, create, lambda: self.log_segment_from(self.last_checkpoint()))

    def _as_listed(
        self,
        segment: LogSegment,
        read: Callable[[LogSegment], T],
        list_again: Callable[[], LogSegment] | None = None,
    ) -> T:
        """Return ``read`` of the segment, or of a new listing if files of it were cleaned up meanwhile.

        Without ``list_again`` the segment of the same version is listed.
        """
        for _ in range(LISTINGS_MAX):
            try:
                return read(segment)
            except ReportDamage:
                again = self._listed_version(segment.version) if list_again is None else list_again()
                if again == segment:
                    raise
                _log.info("Files of %s were deleted before they were read: reading %s", segment, again)
                segment = again
        return read(segment)

    def _listed_version(self, version: int) -> LogSegment:
        """Return the segment of a version as it is listed now; ``VersionNotFound`` if it was cleaned up."""
        checkpoint = find_checkpoint_before(self.storage, self.folder, version + 1)
        try:
            return self.log_segment_for_version(None if checkpoint is None else checkpoint.version, version)
        except (CorruptLog, VersionNotFound) as error:
            later = newest_checkpoint(sort_listing(self.list_from(0)).checkpoint_files)
            if error.error_code not in _BEGINS_LATER or later is None or later.version <= version:
                raise
        raise VersionNotFound(
            f"Version {version} can no longer be read: the log {self.folder!r} begins at {later.version}.",
            cause="Its commits were cleaned up after the log's retention.",
            remedy=f"Read version {later.version} or a later one.",
            code="DELTA_VERSION_NOT_FOUND",
            version=version,
            earliest=later.version,
        )

    def _around_damage(self, segment: LogSegment, make: Callable[[LogSegment], T]) -> tuple[T, LogSegment]:
        """Call ``make`` with the segment, or with alternatives that avoid its damaged file.

        The first alternative drops compacted files. Next come at most ``checkpoint_retries_max``
        other checkpoints, then the commits alone; the first error is raised.
        """
        damage: list[ReportDamage] = []
        avoid: frozenset[str] = frozenset()
        while True:
            try:
                return make(segment), segment
            except ReportDamage as error:
                if segment.compacted and error.error_code != CHECKPOINT_DAMAGED:
                    # Compacted files only repeat commits, which are all listed.
                    _log.warning("%s cannot be read with its compacted files: %s", segment, error)
                    segment = replace(segment, compacted=())
                    continue
                if error.error_code != CHECKPOINT_DAMAGED or segment.checkpoint is None:
                    raise
                damage.append(error)
                avoid |= {file.name for file in segment.checkpoint.files}
            _log.warning(
                "Failed to create a snapshot from log segment %s. Trying a different checkpoint.", segment
            )
            tried_all = len(damage) > self.options.checkpoint_retries_max
            other = (
                self._segment_below(0, segment.version)
                if tried_all
                else self._segment_below(segment.checkpoint.version, segment.version, avoid)
            )
            if other is None:
                raise damage[0]
            segment = other

    def snapshot_at(self, version: int | None = None, timestamp: Moment | None = None) -> S:
        """Return the snapshot of one version, or of the version that was current at ``timestamp``.

        ``timestamp`` is a datetime, ISO text, or milliseconds since 1970 as ``history`` has them.
        Returns the current snapshot if it has that version; an older version causes no update.

        Raises:
            InvalidOption: neither or both are given, or the version is negative.
            VersionNotFound: the version does not exist (any more).
        """
        if (version is None) == (timestamp is None):
            raise InvalidOption(
                "Give either a version or a timestamp of the snapshot.",
                cause="Both were given." if version is not None else "Neither was given.",
                remedy="Give one of them.",
            )
        wanted = require_version(self.version_at(timestamp) if timestamp is not None else version)
        current = self.current_snapshot
        if wanted > current.version:
            current = self.update()
        if wanted == current.version:
            return current
        if wanted > current.version:
            raise version_missing(self.path, wanted, current.version)
        return self._as_listed(self._listed_version(wanted), lambda segment: self._create(segment)[0])

    # Updating

    @property
    def is_snapshot_stale(self) -> bool:
        """Whether the snapshot is too old for use without a listing.

        True where the limit is 0, before the first update, or where the last update is at least the
        limit old. (Current Delta treats exactly the limit as fresh; the seed's rule applies here.)
        """
        limit, updated = self.options.staleness_limit_ms, self.last_update_timestamp
        return limit == 0 or updated < 0 or self.options.clock() - updated >= limit

    def update(self, *, staleness_acceptable: bool = False, check_if_updated_since: int | None = None) -> S:
        """Return the latest snapshot (seed: ``update``).

        With ``staleness_acceptable`` a fresh snapshot is returned at once, and the update runs on a
        background thread, at most one at a time. An update that began at or after
        ``check_if_updated_since`` (ms) suffices.

        Raises:
            CorruptLog: the log is damaged; the old snapshot stays current.
        """
        captured = self._captured
        if check_if_updated_since is not None and captured.updated_ms >= check_if_updated_since:
            return captured.snapshot
        if staleness_acceptable and not self.is_snapshot_stale:
            # an update is already running
            if self._async_lock.acquire(blocking=False):

                def run() -> None:
                    try:
                        self.try_update(is_async=True)
                    except Exception as error:  # noqa: BLE001 - no caller waits: the error is logged
                        _log.warning("The asynchronous update of %s failed: %s", self.folder, error)
                    finally:
                        self._async_lock.release()

                self._async_update = run_in_background(run)
            return captured.snapshot
        with self._update_lock:
            return self.update_internal()

    def try_update(self, *, is_async: bool = False) -> S:
        """Update, or return the current snapshot if another thread is updating."""
        if not self._update_lock.acquire(blocking=False):
            return self.current_snapshot
        try:
            return self.update_internal(is_async=is_async)
        finally:
            self._update_lock.release()

    def update_internal(self, *, is_async: bool = False) -> S:
        """List and install new files; the caller holds the update lock (seed: ``updateInternal``)."""
        with report(self.options.listener, "deltaLog.update", self.path) as metrics:
            before = self._captured.snapshot
            found = self._update()
            metrics |= {"version": found.version, "isAsync": is_async, "isNew": found is not before}
            return found

    def _update(self) -> S:
        started = self.options.clock()
        previous = self._captured.snapshot
        start = previous.segment.checkpoint_version
        statuses = (start or 0, self._watched.list_from(self.storage, self.folder, start or 0))
        if statuses == self._listed and previous.version > EMPTY_VERSION:
            return self._touch(started)
        listing = sort_listing(statuses[1])
        segment = self._choose(listing, start, None)
        if segment == previous.segment:
            self._listed = statuses
            return self._touch(started)
        new_commits = commits_since(previous.segment, listing, segment)
        snapshot = self._create_latest(segment, previous, new_commits)
        self.replace_snapshot(snapshot, started)
        _log.info("Updated snapshot to %s", snapshot)
        return snapshot

    def _touch(self, started: int) -> S:
        captured = self._captured
        self._captured = CapturedSnapshot(captured.snapshot, max(started, captured.updated_ms))
        return captured.snapshot

    def replace_snapshot(self, new_snapshot: S, updated_ms: int | None = None) -> None:
        """Install a snapshot as current and uncache the old one's state.

        Seed: ``replaceSnapshot``. A writer installs its own commit in the same way.
        """
        with self._update_lock:
            old = self._captured
            updated = self.options.clock() if updated_ms is None else updated_ms
            self._captured = CapturedSnapshot(new_snapshot, max(updated, old.updated_ms))
            self._listed = None
            if old.snapshot is not new_snapshot:
                old.snapshot.uncache()


def require_version(value: Any) -> int:
    """Return the value as a version."""
    if not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0:
        return int(value)
    remedy = "Pass a whole number from 0 on; a moment goes by its own name, such as timestamp=."
    raise InvalidOption(f"{value!r:.80} is not a version.", remedy=remedy)


def to_ms(timestamp: Moment) -> int:
    """Return a moment in ms since 1970; without a zone it is in UTC, and a day is its first moment."""
    if isinstance(timestamp, int) and not isinstance(timestamp, bool):
        return timestamp
    found: object = timestamp
    with suppress(ValueError):
        found = datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
    if isinstance(found, date) and not isinstance(found, datetime):
        found = datetime(found.year, found.month, found.day, tzinfo=UTC)
    if not isinstance(found, datetime):
        raise InvalidOption(
            f"{timestamp!r:.80} is not a valid timestamp.",
            remedy="Pass a datetime, ISO text such as 2026-11-20T14:05:00Z, or milliseconds since 1970.",
        )
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    whole = int(aware.replace(microsecond=0).timestamp())
    return whole * 1000 + aware.microsecond // 1000


def iso(timestamp_ms: int) -> str:
    """Format a time in ms as ISO 8601 in UTC; beyond Python's range, the number itself."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
