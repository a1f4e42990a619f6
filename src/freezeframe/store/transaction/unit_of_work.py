"""Unit of work: the changes of one job, and its receipt.

Both kinds of calls go through it: those inside ``with tenant.job()`` and those outside, which are
jobs of one change. A job with an id that is committed already does nothing again: its calls are
answered from the receipt of that commit, and their rows are not read.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import IdempotencyConflict, InvalidOption, StorageUnavailable
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import Snapshot
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.model.receipt import JobReceipt, Receipt, join_receipts, parse_job_receipt
from freezeframe.store.model.update_options import SYSTEM, Author, KeyedUpdate, Update, system_user
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.tenant_log.entry import FileChange, Kind, StreamChange, TenantChange
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import NO_VERSION, JobRecord, TenantState
from freezeframe.store.transaction.stream_changes import StagedStream, prefetch, run_together
from freezeframe.store.transaction.transaction import (
    Check,
    CommitCheck,
    CommitMetadata,
    TenantPlace,
    Transaction,
    require_commit,
)
from freezeframe.store.updates.update_place import UpdatePlace
from freezeframe.store.updates.update_step import Step, StepResult, take_update


@dataclass(frozen=True, slots=True)
class _StagedUpdate:
    """An update that has become a step of the transaction."""

    name: StreamName
    result: StepResult


class UnitOfWork:
    """One job's changes until they are committed or given up.

    ``restored`` is the version that they bring back, where they are a restoration.
    """

    def __init__(
        self,
        place: TenantPlace,
        author: Author = SYSTEM,
        *,
        job_id: str | None = None,
        token: str = "",
        is_single: bool = False,
        stream: StreamName | None = None,
        restored: int | None = None,
    ) -> None:
        place.guard.require_writable()
        job_id = place.request_context.job_id if job_id is None else job_id
        _require_job_id(job_id)
        begun = prefetch(place.storage, place.log, stream)
        now = begun.state
        self._known = place.log.known_job(now, job_id)
        base = now if self._known is None else _oldest_kept_state(place.log, now, self._known.version - 1)
        self._transaction = Transaction(
            place, base=base, job_id=job_id, token=token, rebases_files=is_single, begun=begun
        )
        self._first = None if self._known is None else self._read_receipt(self._known)
        who = author.who or system_user()
        self._metadata = CommitMetadata("commit", job_id, who, author.message, restored)
        self._repeated: set[str] = set()
        self._started = time.monotonic()
        self._is_over = False
        self.receipt: JobReceipt | None = None

    @property
    def write_id(self) -> str:
        """The transaction's own id, which is in the names of all staged files."""
        return self._transaction.write_id

    @property
    def storage(self) -> Storage:
        """The tenant's storage."""
        return self._transaction.place.storage

    @property
    def settings(self) -> Settings:
        """The settings of the process."""
        return self._transaction.place.settings

    @property
    def is_repeated(self) -> bool:
        """Whether the job was committed before this run."""
        return self._known is not None

    @property
    def is_over(self) -> bool:
        """Whether the job is committed or abandoned."""
        return self._is_over

    @property
    def done(self) -> JobReceipt:
        """The receipt of the job, after its commit."""
        if self.receipt is None:
            raise InvalidOption(
                "The job has no receipt.",
                cause="It is still open, or was given up because of an error.",
                remedy="Ask for it after the 'with' block.",
            )
        return self.receipt

    def state(self) -> TenantState:
        """The state within the job: the one that it began on, with its own changes."""
        return self._transaction.state()

    def snapshot(self, name: StreamName, version: int | None = None) -> Snapshot:
        """The stream's table within the job, or at an older version."""
        if self._known is not None and str(name) in self._repeated:
            log = self._transaction.place.log
            state = _oldest_kept_state(log, log.current_state(), self._known.version)
            return table_snapshot(self.storage, state, name, version)
        return self._transaction.snapshot(name, version)

    def version_to_make(self, name: StreamName) -> int | None:
        """The tenant version that the job creates for the stream, if no other job commits before it.

        None: the job has not changed the stream.
        """
        staged = self._transaction.streams.get(str(name))
        return self._transaction.base.version + 1 if staged is not None and staged.content else None

    def note_read(self, read: StreamName | FilePath) -> None:
        """Record a read of the stream or file, which later writes of the job to it may depend on."""
        if isinstance(read, FilePath):
            self._transaction.note_file_read(str(read))
        elif self._known is None:
            self._transaction.note_stream_read(read)

    def update(self, name: StreamName, frame: Any, update: Update | KeyedUpdate) -> Receipt:
        """Stage an update in the job; the receipt predicts its result.

        Without a key in the update, the stream's key within the job counts.
        """
        transaction = self._transaction
        transaction.stage(name)
        if self._known is not None:
            return self._answer_again(name)
        return self._note_update(self._stage_update(name, frame, update, transaction.place.engine))

    def update_all(
        self, updates: Sequence[tuple[StreamName, Any, Update | KeyedUpdate]]
    ) -> tuple[Receipt, ...]:
        """Update several streams as ``update`` does; Spark searches all their keys in one query.

        Where one fails, the others are part of the job, as after one call for each; errors as of ``update``.
        """
        if self._known is not None or len(updates) == 1:
            return tuple(self.update(*update) for update in updates)
        transaction = self._transaction
        for name, _, _ in updates:
            transaction.stage(name)
        transaction.announce()
        works = [functools.partial(self._stage_update, *update) for update in updates]
        outcomes = run_together(transaction.place.engine, works)
        receipts = [self._note_update(outcome) for outcome in outcomes if not isinstance(outcome, Exception)]
        for failure in outcomes:
            if isinstance(failure, Exception):
                raise failure
        return tuple(receipts)

    def _stage_update(
        self, name: StreamName, frame: Any, asked: Update | KeyedUpdate, engine: TableEngine
    ) -> _StagedUpdate:
        """The update as a step of the transaction; may run in threads for streams that are staged already."""
        staged = self._transaction.stage(name)
        update = self._resolve_key(name, asked)
        place = UpdatePlace(name, self.storage, engine, self.settings)
        if _is_lazy(frame):
            self._transaction.announce()
        with take_update(place, self.write_id, staged.view(), frame, update) as taken:
            result = self._transaction.add_step(name, taken.to_step())
        return _StagedUpdate(name, result)

    def _resolve_key(self, name: StreamName, update: Update | KeyedUpdate) -> Update:
        """The update with the stream's key within the job, if it has none of its own."""
        if isinstance(update, Update):
            return update
        seen = self._transaction.stage(name).view()
        return update(stored_key(seen.metadata) or () if seen.version >= 0 else None)

    def _note_update(self, done: _StagedUpdate) -> Receipt:
        """The receipt of a staged update, with the versions that its commit would make."""
        transaction = self._transaction
        version = transaction.base.version + (0 if transaction.is_empty else 1)
        stream_version = transaction.stage(done.name).version
        receipt: Receipt = replace(done.result.answer, version=version, stream_version=stream_version)
        return receipt

    def add_step(self, name: StreamName, step: Step) -> StepResult | None:
        """Stage any other change of a stream; None in a repeated job."""
        return None if self._known is not None else self._transaction.add_step(name, step)

    def stage_file(self, change: FileChange) -> None:
        """Stage a change of a file; a later one of the same path replaces it."""
        self._transaction.add_file(change)

    def require_place(self, path: FilePath, moved: str | None = None) -> None:
        """Refuse a path that conflicts with the existing files, now and at the commit.

        ``moved`` is the path of a file that is about to leave its place.
        """
        self._transaction.files.require_place(path, moved)

    def announce(self) -> None:
        """Write the job's lease before its first blob, so that gc leaves its files alone."""
        self._transaction.announce()

    def change_tenant(self, change: TenantChange, kind: Kind, *checks: Check) -> None:
        """Change the tenant itself; ``checks`` see the state that the commit follows."""
        self._transaction.tenant = change
        self._transaction.checks.extend(checks)
        self._metadata = replace(self._metadata, kind=kind)

    def take_over(self, change: StreamChange, kind: Kind, *checks: Check) -> None:
        """Take over changes of a table that were made outside of the tenant log."""
        self._transaction.taken_over[str(change.stream)] = change
        self._transaction.checks.extend(checks)
        self._metadata = replace(self._metadata, kind=kind)

    @property
    def identity(self) -> CommitIdentity:
        """The author and times of this job's commits."""
        return self._transaction.identity

    def require(self, check: CommitCheck) -> None:
        """Add a check of this work's changes and of the state that their commit follows."""
        self._transaction.commit_checks.append(check)

    def commit(self) -> JobReceipt:
        """Commit all changes at once, and return the receipt."""
        self._is_over = True
        if self._known is not None:
            self._require_tenant()
            self._transaction.abandon()
            self.receipt = self._read_receipt(self._known)
        elif self._metadata.job_id is None and self._transaction.is_empty:
            self._require_tenant()
            require_commit(self._transaction)
            version = self._transaction.base.version
            self._transaction.abandon()
            self.receipt = self._job_receipt(version, committed=False)
        else:
            done = self._transaction.commit(self._metadata, self._job_record)
            if isinstance(done, JobRecord):
                self._transaction.abandon()
                self.receipt = self._read_receipt(done)
            else:
                self.receipt = self._job_receipt(done, committed=True)
                if self._metadata.kind == "commit":
                    self._transaction.place.after_commit(self._transaction.place, done)
        return self.receipt

    def abandon(self, error: BaseException) -> None:
        """Delete what was staged because of ``error``; delete nothing if the outcome is unknown."""
        self._is_over = True
        self._transaction.abandon()
        if isinstance(error, Exception) and not isinstance(error, StorageUnavailable):
            self._require_tenant()

    def _require_tenant(self) -> None:
        self._transaction.place.guard.require_open()

    def _answer_again(self, name: StreamName) -> Receipt:
        """The stream's part of the first receipt."""
        first = self._first.streams.get(str(name)) if self._first else None
        if first is None:
            raise IdempotencyConflict(
                f"The job {self._metadata.job_id!r} is committed already, without the stream {str(name)!r}.",
                cause="An id names one run of a job; that run did not update this stream.",
                remedy="Give each run an id of its own.",
                job_id=self._metadata.job_id,
            )
        self._repeated.add(str(name))
        return first

    def _read_receipt(self, record: JobRecord) -> JobReceipt:
        """The receipt from when the job was committed."""
        kept = self._transaction.place.log.receipt(record)
        if kept is None:
            return JobReceipt(record.version, None, committed=True, seconds=0.0, repeated=True)
        return parse_job_receipt(kept)

    def _job_record(self, version: int) -> dict[str, Any] | None:
        """The record in the entry from which a repeated job is answered."""
        return None if self._metadata.job_id is None else self._job_receipt(version, committed=True).to_json()

    def _job_receipt(self, version: int, *, committed: bool) -> JobReceipt:
        transaction = self._transaction
        streams = {name: _stream_receipt(staged, version) for name, staged in transaction.streams.items()}
        return JobReceipt(
            tenant_version=version,
            job_id=self._metadata.job_id,
            committed=committed,
            seconds=time.monotonic() - self._started,
            streams=MappingProxyType({name: one for name, one in streams.items() if one is not None}),
            files_written=_paths(transaction.files.changes, deleted=False),
            files_deleted=_paths(transaction.files.changes, deleted=True),
        )


def _stream_receipt(staged: StagedStream, tenant_version: int) -> Receipt | None:
    answers = tuple(result.answer for result in staged.results if isinstance(result.answer, Receipt))
    if not answers:
        return None
    counts = staged.counts
    return replace(
        join_receipts(answers),
        inserted=counts.inserted,
        updated=counts.updated,
        unchanged=counts.unchanged,
        deleted=counts.deleted,
        version=tenant_version,
        stream_version=staged.version,
        committed=bool(staged.content),
    )


def _paths(files: Mapping[str, FileChange], *, deleted: bool) -> tuple[str, ...]:
    return tuple(sorted(path for path, change in files.items() if (change.blob is None) == deleted))


def _oldest_kept_state(log: TenantLog, newest: TenantState, version: int) -> TenantState:
    """The state at a version, or at the oldest version from it on that is kept."""
    wanted = version if newest.is_listed(version) or not newest.floor else max(version, newest.floor)
    return log.state_at(wanted) if wanted > NO_VERSION else TenantState()


def _is_lazy(frame: Any) -> bool:
    """Whether taking the rows in writes files: a Spark frame is landed, rows by pieces may have to be."""
    return hasattr(frame, "sparkSession") or isinstance(frame, pa.RecordBatchReader)


def _require_job_id(job_id: Any) -> None:
    if job_id is not None and (not isinstance(job_id, str) or not job_id.strip() or len(job_id) > 500):  # noqa: PLR2004
        raise InvalidOption(
            f"{job_id!r} cannot be a job's id.",
            cause="It identifies one run of a job and is kept in the tenant's log.",
            remedy="Pass a text of 1 to 500 characters, or None for a job without an id.",
        )
