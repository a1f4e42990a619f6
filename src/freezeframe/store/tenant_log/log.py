"""The tenant log: an append-only log whose entries commit all changes of a job atomically.

The log has the shape of Delta's (``N.json`` by put-if-absent, checkpoints, a hint), so
``SnapshotManagement`` handles segment selection, fallback, staleness and updates of the cached state.
This module defines the entries. Protocol: ``docs/reference/tenant-log.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from freezeframe.errors import FreezeframeError, VersionNotFound
from freezeframe.log.commits.commit import Committed, Outcome, land_file
from freezeframe.log.commits.own_commit import OwnCommit
from freezeframe.log.primitives.paths import LogFile, commit_name, log_file
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.blobs.path_conflicts import SpareNames
from freezeframe.store.directory.paths import TENANT_LOG_FOLDER
from freezeframe.store.tenant_log.checkpointed_log import CheckpointedLog
from freezeframe.store.tenant_log.entry import Entry, parse_entry
from freezeframe.store.tenant_log.entry_chain import Chain, Link, broken_chain_error, require_version
from freezeframe.store.tenant_log.state import JobRecord, TenantState, parse_checkpoint

_DAY_MS = 24 * 60 * 60 * 1000
_EPOCH = datetime.fromtimestamp(0, UTC)


class TenantLog(CheckpointedLog[TenantState]):
    """One tenant's log: its state, current and past, and appending entries."""

    title = "the tenant log"

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self._job_id_ms = settings.job_id_days * _DAY_MS
        self._own_entry = OwnCommit()
        self._rolled_forward = ""
        self.spare_names = SpareNames()
        self._past: TenantState | None = None
        super().__init__(storage, TENANT_LOG_FOLDER, settings, TenantState(), settings.checkpoint_interval)

    def state_at(self, version: int | None = None) -> TenantState:
        """The tenant's state at a version (None: now).

        Raises:
            VersionNotFound: there is no such version.
        """
        if version is None:
            return self.current_state()
        kept = self._past
        if kept is None or kept.version != version:
            # Past states are immutable, and paging through a list requests the same one repeatedly.
            kept = self._past = self.snapshot_at(version=version).state
        return kept

    def entry(self, version: int) -> Entry:
        """The entry of a version.

        Raises:
            VersionNotFound: there is no such version.
            CorruptLog: it is damaged, or of another version.
        """
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
        """The entries of descending versions, each verified by the hash in its successor.

        Raises:
            CorruptLog: an entry is damaged, or not the one that was there.
        """
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

    def version_at(self, timestamp: datetime) -> int:
        """The newest version at a moment, by binary search: the times of entries always ascend.

        Raises:
            VersionNotFound: the moment is before the first commit, or before the oldest that is kept.
        """
        moment = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
        limit_ms = (moment - _EPOCH) // timedelta(milliseconds=1)
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
                f"Nothing was kept {'from' if oldest else 'yet at'} {moment.isoformat()}.",
                cause=cause if oldest else "It is before the tenant's first commit.",
                remedy="Read at a later moment.",
            )
        return high

    def add(self, after: TenantState, entry: Entry) -> Outcome:
        """Append ``entry`` as the version after ``after``: the commit point of all its changes.

        Raises:
            StorageUnavailable: the storage refused; nothing is visible.
        """
        version = after.version + 1
        entry = replace(entry, link=Link(version, self._head_of(after)))
        name = f"{self.folder}/{commit_name(version)}"
        content = entry.to_bytes()
        outcome = land_file(self.storage, name, version, content)
        if isinstance(outcome, Committed):
            self._own_entry.note(version, content)
            with suppress(FreezeframeError):  # it is committed all the same; the next look lists it
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

    def is_rolled_forward(self, entry: Entry) -> bool:
        """Whether this process has seen all commits of the entry in their tables, where they are final."""
        return entry.write_id == self._rolled_forward

    def note_rolled_forward(self, entry: Entry) -> None:
        """Record that all commits of the entry are in their tables."""
        self._rolled_forward = entry.write_id

    def parse_checkpoint(self, content: bytes, name: str) -> TenantState:
        """See ``CheckpointedLog.parse_checkpoint``."""
        return parse_checkpoint(content, name)

    def checkpoint_content(self, state: TenantState) -> bytes:
        """See ``CheckpointedLog.checkpoint_content``.

        A job from before an erasure is kept with its receipt, for its entry goes.
        """
        return self._with_receipts(state).to_checkpoint(oldest_job_ms=self._oldest_job_ms(state))

    def forget(self) -> None:
        """Discard the cached state, because some of its source files were deleted."""
        self._past = None
        with self._update_lock:
            self._captured = self.snapshot_at_init()

    def listed_entry(self, file: LogFile) -> Entry:
        """The entry in a listed file; an own, just written one is not read back."""
        own = self._own_entry.take(file)
        return self.entry(file.version) if own is None else parse_entry(own, file.name)

    def known_job(self, state: TenantState, job_id: str | None) -> JobRecord | None:
        """The committed job of an id; None once the id has been kept for ``job_id_days``, or without one."""
        job = None if job_id is None else state.jobs.get(job_id)
        return job if job is not None and self._is_known(state, job) else None

    def receipt(self, job: JobRecord) -> Mapping[str, Any] | None:
        """The receipt of a committed job; None where it was not kept, or is no longer."""
        if job.receipt is not None:
            return job.receipt
        try:
            return self.entry(job.version).receipt
        except VersionNotFound:
            return None

    def oldest_receipt(self, state: TenantState) -> int:
        """The oldest entry that holds the receipt of a job whose id is still known; else the newest one."""
        jobs = (job for job in state.jobs.values() if job.receipt is None and self._is_known(state, job))
        return min((job.version for job in jobs), default=state.version)

    def oldest_kept_ms(self) -> int | None:
        """When the oldest version that is kept was committed (ms); None where nothing was let go."""
        begin = self.current_state().kept_from()
        return self.entry(begin).timestamp_ms if begin > 0 else None

    def _is_known(self, state: TenantState, job: JobRecord) -> bool:
        return job.timestamp_ms >= self._oldest_job_ms(state)

    def _oldest_job_ms(self, state: TenantState) -> int:
        return state.timestamp_ms - self._job_id_ms

    def _with_receipts(self, state: TenantState) -> TenantState:
        if not state.erased:
            return state
        jobs = {
            name: replace(job, receipt=self.receipt(job)) if job.version < state.erased else job
            for name, job in state.jobs.items()
        }
        return replace(state, jobs=MappingProxyType(jobs))
