"""Transaction over several streams and files, committed atomically.

A transaction sees the tenant as it was when it began, with its own changes: nobody else's commit
shows in the middle of it. The commit point is one put-if-absent in the tenant log. Before it
nothing is visible, after it everything is, and whoever comes next finishes what a crash left
half-way. A race that is lost is settled by what the winners did:

- they touched other streams and files: the same changes are committed one version later;
- they touched a stream of ours: its steps are carried out again on their result, unless rows of it
  had been read before: then our rows may be made from old ones, and that is a ``ConflictError``;
- they touched a file of ours: ``ConflictError``, because bytes cannot be merged. A single write
  outside of a job that did not read the file first simply comes after theirs.

That is snapshot isolation, first committer wins. Protocol: ``docs/reference/tenant-log.md``.
"""

from __future__ import annotations

import functools
import logging
import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from freezeframe.clock import now_ms
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import ConflictError, JobRevoked, OutcomeUnknown, StorageUnavailable, TenantNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.segments.commit import Committed, Unknown
from freezeframe.observation import Operation, note, observe
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.model.directory import blob_file, ensure_format, require_no_store
from freezeframe.store.model.update_options import NO_REQUEST, RequestContext
from freezeframe.store.table.commit import CommitIdentity, restamp
from freezeframe.store.tenant_log.entry import Entry, FileChange, Kind, StreamChange, TenantChange
from freezeframe.store.tenant_log.lease import Lease
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import (
    forget_long_commits,
    keep_long_commits,
    present_tables,
    require_no_case_twin,
    roll_forward,
    shorten_entry,
    stream_base,
    table_snapshot,
)
from freezeframe.store.tenant_log.state import NO_VERSION, JobRecord, TenantState
from freezeframe.store.transaction.file_changes import StagedFiles
from freezeframe.store.transaction.stream_changes import Prefetched, StagedStream
from freezeframe.store.transaction.tenant_guard import NO_GUARD, TenantGuard
from freezeframe.store.updates.update_step import Step, StepResult

_PAUSE_SECONDS_MAX = 0.2

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TenantPlace:
    """One tenant with the storage, engine and settings for its changes."""

    storage: Storage
    log: TenantLog
    engine: TableEngine
    settings: Settings
    guard: TenantGuard = NO_GUARD
    request_context: RequestContext = NO_REQUEST
    checks: tuple[CommitCheck, ...] = ()
    """What each commit has to pass: conditions and limits of a request."""
    after_commit: Callable[[TenantPlace, int], None] = lambda *_: None
    """What follows each commit of content, by its version; it does not fail."""


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Metadata of an entry: kind, job, author, message."""

    kind: Kind = "commit"
    job_id: str | None = None
    author: str = ""
    message: str = ""
    restored: int | None = None


Check = Callable[[TenantState], None]
"""Raises if a transaction may not be committed after this state."""
CommitCheck = Callable[[TenantState, "Transaction"], None]
"""Raises if the changes of a transaction may not be committed after this state."""


class Transaction:
    """Staged changes, and the commit that makes them visible. Not thread-safe."""

    def __init__(
        self,
        place: TenantPlace,
        *,
        base: TenantState | None = None,
        job_id: str | None = None,
        token: str = "",
        rebases_files: bool = False,
        begun: Prefetched | None = None,
    ) -> None:
        self.place = place
        self.write_id = uuid.uuid4().hex
        self.base = place.log.current_state() if base is None else base
        self.streams: dict[str, StagedStream] = {}
        self.tenant: TenantChange | None = None
        self.taken_over: dict[str, StreamChange] = {}
        self.checks: list[Check] = []
        self.commit_checks: list[CommitCheck] = [*place.checks]
        self._begun = begun
        self._job_id = job_id
        self._token = token
        self._files_read: set[str] = set()
        self._rebases_files = rebases_files
        self.identity = CommitIdentity(self.write_id, self.base.next_timestamp_ms(now_ms()), job_id)
        self.files = StagedFiles(self.base, self.identity.timestamp_ms, place.log.spare_names)
        self._lease = Lease(place.storage, self.write_id, job_id, place.settings.lease_heartbeat_seconds)
        self._is_announced = False
        self._may_be_committed = False

    @property
    def is_empty(self) -> bool:
        """Whether there are no changes to commit."""
        staged = any(stream.content for stream in self.streams.values())
        return not (staged or self.files.changes or self.tenant or self.taken_over)

    def changes_existing(self, state: TenantState) -> bool:
        """Whether a stream or file of ``state`` is changed or removed; new ones alone are none."""
        changed = {name for name, one in self.streams.items() if one.content}
        return not (changed.isdisjoint(state.streams) and self.files.changes.keys().isdisjoint(state.files))

    def added_bytes(self, state: TenantState) -> int:
        """How many bytes more than ``state`` the tenant's newest version holds after this transaction."""
        replaced = [state.files[path].size for path in self.files.changes if path in state.files]
        streams = [
            stream.view().size - stream.base.size for stream in self.streams.values() if stream.content
        ]
        return sum(change.size for change in self.files.changes.values()) - sum(replaced) + sum(streams)

    def state(self) -> TenantState:
        """The tenant's state within this transaction."""
        fresh = {name: one.version for name, one in self.streams.items() if one.content}
        streams = {**self.base.streams, **fresh} if fresh else self.base.streams
        return replace(self.base, streams=MappingProxyType(streams), files=self.files.current_files())

    def snapshot(self, name: StreamName, version: int | None = None) -> Snapshot:
        """The stream's table within this transaction, or at one of its older versions."""
        staged = self.streams.get(str(name))
        is_there = staged is not None and (staged.content or str(name) in self.base.streams)
        if staged is not None and is_there and version in (None, staged.version):
            return staged.view()
        return table_snapshot(self.place.storage, self.base, name, version)

    def note_stream_read(self, name: StreamName) -> None:
        """Record a read of the stream, which later writes to it may depend on."""
        if str(name) in self.streams or str(name) in self.base.streams:
            self.stage(name).was_read = True

    def note_file_read(self, path: str) -> None:
        """Record a read of the file, which a later write to it may depend on."""
        self._files_read.add(path)

    def stage(self, name: StreamName) -> StagedStream:
        """The stream in this transaction."""
        found = self.streams.get(str(name))
        if found is None:
            if str(name) not in self.base.streams:
                require_no_case_twin({*self.base.streams, *self.streams}, name)
            since = None if self._begun is None else self._begun.looked_at(name)
            base = stream_base(self.place.storage, self.place.log, self.base, name, since)
            found = StagedStream(name, self.place.storage, self.place.engine, self.identity, base)
            self.streams[str(name)] = found
        return found

    def add_step(self, name: StreamName, step: Step) -> StepResult:
        """Execute a change of a stream, visible to this transaction only."""
        staged = self.stage(name)
        self.announce()
        return staged.add(step)

    def add_file(self, change: FileChange) -> None:
        """Stage a change of a file."""
        self.files.add(change)

    def announce(self) -> None:
        """Write the lease, which protects files staged from now on from gc."""
        if not self._is_announced:
            self._require_alive(self.base)
            if self.base.version == NO_VERSION and self.place.guard is NO_GUARD:
                require_no_store(self.place.storage)
            if self._begun is None or not self._begun.has_format:
                ensure_format(self.place.storage)
            self._lease.hold()
            self._is_announced = True

    def commit(
        self, metadata: CommitMetadata, receipt: Callable[[int], dict[str, Any] | None]
    ) -> int | JobRecord:
        """Make all changes visible as the tenant version that is returned.

        A job record instead of a version: another run of the same job was quicker, and nothing was committed.
        ``receipt`` gives what the entry keeps as the job's answer, from its version.
        """
        self.announce()
        with observe("commit") as operation:
            return self._commit(metadata, receipt, operation)

    def _commit(
        self,
        metadata: CommitMetadata,
        receipt: Callable[[int], dict[str, Any] | None],
        operation: Operation,
    ) -> int | JobRecord:
        tries = self.place.settings.commit_tries_max
        for number in range(tries):
            place, taken_over = self.place, self.taken_over.keys()
            state, tables = present_tables(
                place.storage, place.log, self._touched_streams(), taken_over, place.guard.require_open
            )
            known = self.place.log.known_job(state, self._job_id)
            if known is not None:
                return known
            self._rebase(state, tables)
            entry, long_commits = shorten_entry(self._entry(state, metadata, receipt))
            keep_long_commits(self.place.storage, long_commits)
            self._may_be_committed = True
            outcome = self.place.log.add(state, entry)
            if isinstance(outcome, Committed):
                note(version=outcome.version)
                self._finish(entry, outcome.version)
                return outcome.version
            if isinstance(outcome, Unknown):
                raise self._unknown(outcome.reason)
            self._may_be_committed = False
            operation.retries += 1
            forget_long_commits(self.place.storage, long_commits)
            time.sleep(random.uniform(0, min(_PAUSE_SECONDS_MAX, 0.002 * 2**number)))  # noqa: S311 - jitter
        raise ConflictError(
            f"The tenant kept changing: {tries} tries were not enough.",
            cause="Other jobs committed between every reading and committing of this one.",
            remedy="Run the call again when they are done; nothing of it was written.",
        )

    def abandon(self) -> None:
        """Delete staged files; if the commit's outcome is unknown, only end the heartbeat."""
        self._lease.stop()
        self.files.close()
        if self._is_announced:
            self.place.guard.remove_orphans()
        if self._may_be_committed:
            return
        for staged in self.streams.values():
            staged.discard()
        for change in self.files.changes.values():
            self._delete_blob(change)
        self._lease.release()

    def _touched_streams(self) -> list[StreamName]:
        return [staged.name for staged in self.streams.values() if staged.steps]

    def _rebase(self, state: TenantState, tables: Sequence[Snapshot]) -> None:
        """Rebase this transaction's changes on the newest state, or raise a conflict."""
        self._require_alive(state)
        require_commit(self, state)  # before conflicts: a condition that no longer holds is told as that
        for check in self.checks:
            check(state)
        self._require_files_untouched(state)
        self.files.require_places(state)
        for name, table in zip(self._touched_streams(), tables, strict=True):
            staged = self.streams[str(name)]
            if str(name) not in state.streams:
                require_no_case_twin(state.streams, name)
            if table.version != staged.base.version:
                _require_unread(staged, table.version)
                staged.replay(table)
                require_commit(self, state)  # the step may have other effects on the newer table

    def _require_alive(self, state: TenantState) -> None:
        if self.write_id in state.revoked or self._token in state.revoked_tokens:
            raise JobRevoked(
                "This job was declared dead and can no longer be committed.",
                cause="Its heartbeat stopped for so long that gc, or another run of it, took over.",
                remedy="Run it again; nothing of it was written.",
                write_id=self.write_id,
            )

    def _require_files_untouched(self, state: TenantState) -> None:
        for path in self.files.changes:
            before, now = self.base.files.get(path), state.files.get(path)
            if before != now and not (self._rebases_files and path not in self._files_read):
                raise ConflictError(
                    f"The file {path!r} was changed by somebody else meanwhile.",
                    cause="Another job committed it after this one began.",
                    remedy="Run the job again; nothing of it was written.",
                    path=path,
                )

    def _entry(
        self,
        state: TenantState,
        metadata: CommitMetadata,
        receipt: Callable[[int], dict[str, Any] | None],
    ) -> Entry:
        bases = (staged.base.timestamp + 1 for staged in self.streams.values() if staged.content)
        timestamp_ms = max(state.next_timestamp_ms(now_ms()), *bases, 0)  # a table's times always rise too
        taken_over = tuple(
            replace(change, content=restamp(change.content, timestamp_ms)) if change.content else change
            for change in self.taken_over.values()
        )
        streams = tuple(
            StreamChange(staged.name, staged.version, staged.content_at(timestamp_ms), staged.counts)
            for staged in self.streams.values()
            if staged.content
        )
        change = self._tenant_change(state)
        tenant = () if change is None else (change,)
        request = self.place.request_context
        return Entry(
            self.write_id,
            timestamp_ms,
            (*streams, *taken_over, *self.files.changes.values(), *tenant),
            job_id=metadata.job_id,
            author=metadata.author,
            message=metadata.message,
            kind=metadata.kind,
            receipt=receipt(state.version + 1),
            request_id=request.request_id,
            restored=metadata.restored,
        )

    def _tenant_change(self, state: TenantState) -> TenantChange | None:
        """The change of the tenant; its first entry says which versions are kept, unless somebody did."""
        kept, change = self.place.settings.keep_versions, self.tenant or TenantChange()
        if state.version != NO_VERSION or not kept or change.policy is not None:
            return self.tenant
        return replace(change, policy=MappingProxyType({"keepVersions": kept, "keepDays": None}))

    def _finish(self, entry: Entry, version: int) -> None:
        """After the commit point: roll the entry forward, and delete unreferenced files.

        A failure is told in the log only, for the job has succeeded.
        """
        try:
            self._roll_forward(entry, version)
        except TenantNotFound:
            raise
        except Exception:  # whatever it is, the entry is committed: the next writer or gc does the rest
            _logger.warning("Tenant version %s is committed, but not tidied up", version, exc_info=True)

    def _roll_forward(self, entry: Entry, version: int) -> None:
        place = self.place
        self.files.close()
        landed = roll_forward(place.storage, place.log, entry, version, place.settings.checkpoint_interval)
        # A deletion of the tenant that began after the last check may have missed files written since.
        # Files under the lease are now garbage, or referenced by the entry.
        tidy = [self._lease.release if landed else self._lease.stop, *self._discards()]
        run_concurrently(place.storage, *tidy, place.guard.require_open)

    def _discards(self) -> list[Callable[[], None]]:
        return [
            functools.partial(staged.discard, staged.new_files() if staged.content else ())
            for staged in self.streams.values()
        ]

    def _delete_blob(self, change: FileChange) -> None:
        if change.blob is None or not change.blob.startswith(f"{self.write_id}/"):
            return
        try:
            self.place.storage.delete(blob_file(change.blob))
        except StorageUnavailable:
            return  # left for gc, which deletes what nothing references

    def _unknown(self, reason: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            "It is not known whether the changes were committed.",
            cause=reason,
            remedy="Read again: the changes are there all together or not at all.",
            write_id=self.write_id,
        )


def require_commit(transaction: Transaction, state: TenantState | None = None) -> None:
    """Run the checks of commits for a state (default: its base, where there is nothing to commit)."""
    for check in transaction.commit_checks:
        check(transaction.base if state is None else state, transaction)


def _require_unread(staged: StagedStream, found: int) -> None:
    if staged.rests_on_read:
        raise ConflictError(
            f"The stream {str(staged.name)!r} is at version {found}, not at {staged.base.version} any more.",
            cause="This job read rows of it before it wrote to it, and another job was quicker to commit.",
            remedy="Run the job again; nothing of it was written.",
            stream=str(staged.name),
            version=found,
        )
