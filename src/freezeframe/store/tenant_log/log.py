"""The tenant log: its entries and its checkpoints."""

import functools
import logging
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, Protocol, Self, TypeVar

from freezeframe.clock import now_ms
from freezeframe.errors import CorruptLog, FreezeframeError, StorageUnavailable, VersionNotFound
from freezeframe.log import LogOptions, LogSegment, SnapshotManagement
from freezeframe.log.primitives.paths import HINT_NAME, LogFile, commit_name, log_file, version_prefix
from freezeframe.log.segments.checkpoint import CHECKPOINT_DAMAGED
from freezeframe.log.segments.commit import Committed, Outcome, OwnCommit, land_file
from freezeframe.log.segments.hint import Hint, hint_text
from freezeframe.log.segments.management import Moment, iso, to_ms
from freezeframe.settings import Settings
from freezeframe.storage import FileStatus, Storage
from freezeframe.storage.local import FileIdentity, file_identity
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.blobs.blob_store import SpareNames
from freezeframe.store.model.directory import TENANT_LOG_FOLDER
from freezeframe.store.tenant_log.entry import (
    Chain,
    Entry,
    Link,
    broken_chain_error,
    parse_entry,
    require_version,
)
from freezeframe.store.tenant_log.state import JobRecord, TenantState, parse_checkpoint

# Entries have no gaps, so a log without the next entry has not grown if its newest entry is still the same
# file. After an erasure or a restored backup it is not. In a bucket a listing is one request and two
# lookups are two, so there a log is always listed.


class LogTail:
    """The newest known entry of a log.

    Thread-safe: each method reads the remembered entry once, and another thread may forget it meanwhile.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        path = storage.local_path(folder)
        self._folder = None if path is None else str(path)
        self._seen: tuple[int, FileIdentity] | None = None

    def is_at(self, version: int) -> bool:
        """Return whether ``version`` is certain to be the newest; if unknown, the log must be listed."""
        seen = self._seen
        if seen is None or seen[0] != version:
            return False
        # The next entry first: deletions ascend, so if this entry still exists afterwards, the next entry was
        # not deleted before.
        return self._identity(version + 1) is None and self._identity(version) == seen[1]

    def note(self, version: int) -> None:
        """Record ``version`` as the newest of a listing."""
        found = self._identity(version) if version >= 0 else None
        self._seen = None if found is None else (version, found)

    def forget(self) -> None:
        """Discard the record, so that the next update lists the log."""
        self._seen = None

    def note_added(self, version: int) -> FileStatus | None:
        """Record an entry of this process at ``version``, directly after the recorded newest entry.

        Return the file as in a listing. None: it is unknown or the log has changed, so it must be listed.
        """
        seen = self._seen
        if seen is None or seen[0] != version - 1 or self._identity(version - 1) != seen[1]:
            return None
        found = self._identity(version)
        if found is None:
            return None
        self._seen = (version, found)
        return FileStatus(commit_name(version), found.size, found.modified_ns // 1_000_000)

    def _identity(self, version: int) -> FileIdentity | None:
        return None if self._folder is None else file_identity(f"{self._folder}/{commit_name(version)}")


_logger = logging.getLogger(__name__)


class LogState(Protocol):
    """Interface of a log's folded state."""

    @property
    def version(self) -> int:
        """The version of the newest entry; -1 before the first entry."""

    @property
    def chain(self) -> Chain:
        """The hash chain up to the newest entry read."""

    def after(self, version: int, *entries: Any) -> Self:
        """Return the state after ``entries``, which are ``version`` and the versions after it."""


S = TypeVar("S", bound=LogState)


@dataclass(frozen=True, slots=True)
class StateSnapshot(Generic[S]):
    """A log's state and the files it was read from."""

    segment: LogSegment
    state: S

    @property
    def version(self) -> int:
        """The log's version; -1 before the first entry."""
        return self.state.version

    def uncache(self) -> None:
        """Do nothing: the state is always in memory."""


class CheckpointedLog(SnapshotManagement[StateSnapshot[S]], Generic[S]):
    """The log in ``folder``; ``title`` names it in messages."""

    title: str

    def __init__(
        self, storage: Storage, folder: str, settings: Settings, empty: S, checkpoint_interval: int
    ) -> None:
        self._empty = empty
        self._checkpoint_interval = checkpoint_interval
        self._tail = LogTail(storage, folder)
        super().__init__(storage, folder, LogOptions(staleness_limit_ms=settings.staleness_limit_ms))

    @abstractmethod
    def parse_checkpoint(self, content: bytes, name: str) -> S:
        """Parse a checkpoint's bytes; ``CorruptLog`` if they are damaged."""

    @abstractmethod
    def checkpoint_content(self, state: S) -> bytes:
        """Return the content of a checkpoint of the state."""

    @abstractmethod
    def entry(self, version: int) -> Any:
        """Return the entry of a version; ``CorruptLog`` if it is damaged."""

    def listed_entry(self, file: LogFile) -> Any:
        """Return the entry in a listed file."""
        return self.entry(file.version)

    def create_snapshot(
        self,
        segment: LogSegment,
        previous: StateSnapshot[S] | None = None,
        new_commits: Sequence[LogFile] | None = None,
    ) -> StateSnapshot[S]:
        """Fold the state from the segment's files."""
        if previous is not None and new_commits is not None:
            state, files = previous.state, tuple(new_commits)
        else:
            state, files = self._read_checkpoint(segment), segment.commits
        entries = run_concurrently(
            self.storage, *(functools.partial(self.listed_entry, file) for file in files)
        )
        return StateSnapshot(segment, state.after(state.version + 1, *entries))

    def current_state(self) -> S:
        """Return the log's current state, after an update from the storage."""
        return self.update().state

    def update_internal(self, *, is_async: bool = False) -> StateSnapshot[S]:
        """See ``SnapshotManagement.update_internal``; a log that has not grown is not listed."""
        started = self.options.clock()
        if self._tail.is_at(self.current_snapshot.version):
            return self._touch(started)
        snapshot = super().update_internal(is_async=is_async)
        self._tail.note(snapshot.version)
        return snapshot

    def checkpoint_if_due(self, version: int) -> None:
        """Write a checkpoint every few versions, which bounds the time to open the log.

        In a tenant log it is called after the entry's roll-forward. A failure costs only speed.
        """
        if version == 0 or version % self._checkpoint_interval:
            return
        try:
            self.write_checkpoint(self.snapshot_at(version=version).state)
        except StorageUnavailable:
            _logger.warning("Checkpoint %s of %s was not written", version, self.title, exc_info=True)

    def write_checkpoint(self, state: S) -> None:
        """Write a checkpoint of a state."""
        name = f"{version_prefix(state.version)}.checkpoint.{uuid.uuid4()}.json"
        content = self.checkpoint_content(state)
        self.storage.put_if_absent(f"{self.folder}/{name}", content)
        hint = hint_text(Hint(version=state.version, size=1, size_in_bytes=len(content)))
        self.storage.replace(f"{self.folder}/{HINT_NAME}", hint.encode())
        self._tail.forget()  # the next update lists from the checkpoint on

    def _head_of(self, state: S) -> str:
        """Return the predecessor hash of the next entry; for a checkpoint without a chain from the entry."""
        return self.entry(state.version).sha256 if state.chain.head is None else state.chain.head

    def _read_checkpoint(self, segment: LogSegment) -> S:
        if segment.checkpoint is None:
            return self._empty
        (file,) = segment.checkpoint.files
        try:
            state = self.parse_checkpoint(self.storage.read(segment.path(file)), file.name)
            require_version(state.version, file.version, self.title)
        except (CorruptLog, FileNotFoundError) as error:
            # With this code the update falls back to an older checkpoint or to the entries.
            raise CorruptLog(
                f"The checkpoint {file.name!r} of {self.title} cannot be used.",
                cause=str(error),
                remedy="Delete it: the state is rebuilt without it.",
                code=CHECKPOINT_DAMAGED,
                file=file.name,
            ) from error
        return state


# The log has the shape of Delta's (``N.json`` by put-if-absent, checkpoints, a hint), so
# ``SnapshotManagement`` selects segments, falls back and updates the cached state. Protocol:
# ``docs/reference/tenant-log.md``.

_DAY_MS = 24 * 60 * 60 * 1000


class TenantLog(CheckpointedLog[TenantState]):
    """One tenant's log: its state, current and past, and appending entries."""

    title = "the tenant log"

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self._job_id_ms = settings.job_id_days * _DAY_MS
        self._own_entry = OwnCommit()
        self.rolled_forward = ""
        """The write id of an entry whose commits this process has seen in their tables."""
        self.spare_names = SpareNames()
        self._past: TenantState | None = None
        super().__init__(storage, TENANT_LOG_FOLDER, settings, TenantState(), settings.checkpoint_interval)

    def state_at(self, version: int) -> TenantState:
        """Return the tenant's state at a version."""
        kept = self._past
        if kept is None or kept.version != version or not self.has_passed(kept):
            # Past states are immutable, and paging through a list requests the same state repeatedly.
            kept = self._past = self.snapshot_at(version=version).state
        return kept

    def has_passed(self, state: TenantState) -> bool:
        """Return whether the log still has the entry that made the state: the directory may be another."""
        if state.version < 0:
            return True
        try:
            return self.entry(state.version).sha256 == state.chain.head
        except VersionNotFound:
            return False

    def entry(self, version: int) -> Entry:
        """Return the entry of a version."""
        name = commit_name(version)
        try:
            entry = parse_entry(self.storage.read(f"{self.folder}/{name}"), name)
        except FileNotFoundError:
            raise VersionNotFound(
                f"The tenant has no version {version}.", remedy="Read a version that its history lists."
            ) from None
        if entry.link is not None:
            require_version(entry.link.version, version, self.title)
        return entry

    def entries_down(self, newest: TenantState, versions: Iterable[int]) -> Iterator[tuple[int, Entry]]:
        """Return the entries of descending versions, each verified by the hash in its successor."""
        successor: Entry | None = None
        above = newest.version + 1
        for version in versions:
            if version < newest.version and version != above - 1:
                successor = self.entry(version + 1)
            entry = self.entry(version)
            if successor is not None:
                chain = Chain(entry.sha256, is_begun=entry.link is not None)
                chain.after(version + 1, successor.link, successor.sha256, self.title)
            elif newest.chain.head not in {None, entry.sha256}:
                raise broken_chain_error(self.title, version, "It is not the entry that was read before.")
            yield version, entry
            successor, above = entry, version

    def version_at(self, timestamp: Moment) -> int:
        """Return the newest version at a moment.

        It is found by binary search: the times of entries always ascend.
        """
        limit_ms = to_ms(timestamp)
        newest = self.current_state()
        low, high = newest.kept_from(), newest.version
        oldest = low
        while low <= high:
            middle = (low + high) // 2
            if self.entry(middle).timestamp_ms <= limit_ms:
                low = middle + 1
            else:
                high = middle - 1
        if high < oldest:
            cause = f"It is before version {oldest}, the oldest that is kept, by retention or an erasure."
            raise VersionNotFound(
                f"No version {'is kept' if oldest else 'existed'} at {iso(limit_ms)}.",
                cause=cause if oldest else "It is before the tenant's first commit.",
                remedy="Read at a later moment.",
            )
        return high

    def add(self, after: TenantState, entry: Entry) -> Outcome:
        """Append ``entry`` as the version after ``after``: the commit point of all its changes."""
        version = after.version + 1
        entry = replace(entry, link=Link(version, self._head_of(after)))
        name = f"{self.folder}/{commit_name(version)}"
        content = entry.to_bytes()
        outcome = land_file(self.storage, name, version, content)
        if isinstance(outcome, Committed):
            self._own_entry.note(version, content)
            with suppress(FreezeframeError):  # it is committed; the next update lists it
                self._take_in(version)
        return outcome

    def _take_in(self, version: int) -> None:
        """Apply an entry of this process to the current state without a listing, if they are adjacent."""
        with self._update_lock:
            previous = self.current_snapshot
            if previous.version != version - 1:
                return
            started = self.options.clock()
            status = self._tail.note_added(version)
            file = None if status is None else log_file(status)
            if file is None:
                return
            segment = replace(
                previous.segment, version=version, commits=(*previous.segment.commits, file), last_commit=file
            )
            self.replace_snapshot(self.create_snapshot(segment, previous, (file,)), started)

    def parse_checkpoint(self, content: bytes, name: str) -> TenantState:
        """See ``CheckpointedLog.parse_checkpoint``."""
        return parse_checkpoint(content, name)

    def checkpoint_content(self, state: TenantState) -> bytes:
        """See ``CheckpointedLog.checkpoint_content``.

        A job from before an erasure is kept with its receipt, because its entry is deleted.
        """
        return self._with_receipts(state).to_checkpoint(oldest_job_ms=self._oldest_job_ms(state))

    def forget(self) -> None:
        """Discard the cached state, because some of its source files were deleted."""
        self._past = None
        with self._update_lock:
            self._captured = self.snapshot_at_init()

    def listed_entry(self, file: LogFile) -> Entry:
        """Return the entry in a listed file; an entry of this process is not read back."""
        own = self._own_entry.take(file)
        return self.entry(file.version) if own is None else parse_entry(own, file.name)

    def known_job(self, state: TenantState, job_id: str | None) -> JobRecord | None:
        """Return the committed job of an id; None without an id or after ``job_id_days``."""
        job = None if job_id is None else state.jobs.get(job_id)
        return job if job is not None and self._is_known(state, job) else None

    def receipt(self, job: JobRecord) -> Mapping[str, Any] | None:
        """Return the receipt of a committed job; None if it is not kept."""
        if job.receipt is not None:
            return job.receipt
        try:
            return self.entry(job.version).receipt
        except VersionNotFound:
            return None

    def oldest_receipt(self, state: TenantState) -> int:
        """Return the oldest entry with a receipt of a known job id; else the newest entry."""
        jobs = (job for job in state.jobs.values() if job.receipt is None and self._is_known(state, job))
        return min((job.version for job in jobs), default=state.version)

    def oldest_kept_ms(self) -> int | None:
        """Return the commit time of the oldest kept version (ms); None if every version is kept."""
        begin = self.current_state().kept_from()
        return self.entry(begin).timestamp_ms if begin > 0 else None

    def _is_known(self, state: TenantState, job: JobRecord) -> bool:
        return job.timestamp_ms >= self._oldest_job_ms(state)

    def _oldest_job_ms(self, state: TenantState) -> int:
        # One commit by a clock that ran ahead would make every id old: the earlier of the two clocks counts.
        return min(state.timestamp_ms, now_ms()) - self._job_id_ms

    def _with_receipts(self, state: TenantState) -> TenantState:
        if not state.erased:
            return state
        jobs = {
            name: replace(job, receipt=self.receipt(job)) if job.version < state.erased else job
            for name, job in state.jobs.items()
        }
        return replace(state, jobs=MappingProxyType(jobs))
