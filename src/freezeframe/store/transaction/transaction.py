"""Transaction of one job over streams and files, committed atomically.

Both kinds of calls go through it: those inside ``with tenant.job()`` and those outside, which are
jobs of one change. A transaction sees the tenant as it was when it began, with its own changes, and no
later commit of another job. If other jobs commit first, what they changed decides:

- other streams and files: this transaction's changes are committed one version later;
- a stream that this transaction changes too: its changes are applied again to the new rows. If this job had
  read rows of the stream, its changes may rest on old values, so it fails with ``ConflictError``;
- a file that this transaction changes too: ``ConflictError``, because bytes cannot be merged. A single
  write outside of a job that did not read the file first is committed after the other write.

That is snapshot isolation, first committer wins. A job whose id is committed already changes nothing
again: its calls return the receipt of that commit, and their batches are not read.
"""

from __future__ import annotations

import functools
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType, TracebackType
from typing import Any, Self, cast

from freezeframe.clock import now_ms
from freezeframe.engine.frames.rows import Rows
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import (
    ConflictError,
    IdempotencyConflict,
    InvalidOption,
    ReportDamage,
    StorageUnavailable,
    VersionNotFound,
)
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import Snapshot
from freezeframe.store.model.directory import (
    BLOBS_FOLDER,
    STAGING_FOLDER,
    blob_file,
    ensure_format,
    require_no_store,
    require_own_place,
)
from freezeframe.store.model.receipt import JobReceipt, Receipt, parse_job_receipt
from freezeframe.store.model.update_options import SYSTEM, Author, KeyedUpdate, Update, system_user
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.tenant_log.entry import FileChange, Kind, StreamChange, TenantChange
from freezeframe.store.tenant_log.lease import HeldCommit
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import keep_long_commits, shorten_entry, table_snapshot
from freezeframe.store.tenant_log.state import NO_VERSION, JobRecord, TenantState
from freezeframe.store.transaction.changes import NO_GUARD, Changes, Check, TenantContext
from freezeframe.store.transaction.commit import (
    CommitMetadata,
    check_commit,
    commit_changes,
    entry_of,
    make_durable,
    rebase_on_newest,
    require_not_revoked,
    revoked_error,
)
from freezeframe.store.transaction.dry_run import DryRun, effects_of
from freezeframe.store.transaction.staged import Prefetched, prefetch, run_together
from freezeframe.store.updates.update import Change, ChangeResult

_JOB_ID_MAX = 500
_DAY_MS = 24 * 60 * 60 * 1000


class Transaction(Changes):
    """One job's changes: staged, then committed or abandoned. Not thread-safe.

    A ``with`` block commits at its end, and abandons if there is an error. A dry run, and a job with a
    ``review`` in its context, first work out what they change: a dry run is then abandoned, and a job that
    its review does not let through is held, so that ``store.job.publish_job`` can commit just what is staged.
    """

    def __init__(
        self,
        context: TenantContext,
        author: Author = SYSTEM,
        *,
        job_id: str | None = None,
        token: str = "",
        is_single: bool = False,
        stream: StreamName | None = None,
        base: TenantState | None = None,
    ) -> None:
        """``stream`` is read ahead; with ``base`` the tenant's state is known, and nothing is read."""
        if base is None:
            context.guard.require_writable()
        job_id = context.request_context.job_id if job_id is None else job_id
        _require_job_id(job_id)
        self._known: JobRecord | None = None
        if base is None:
            begun = prefetch(context.log, stream)
            base = begun.state
            self._known = context.log.known_job(base, job_id)
        else:
            begun = Prefetched(base, has_format=False)
        if self._known is not None:
            base = _oldest_kept_state(context.log, base, self._known.version - 1)
        identity = CommitIdentity(uuid.uuid4().hex, base.next_timestamp_ms(now_ms()), job_id)
        super().__init__(context, base, identity, begun)
        self.token = token
        self.is_single = is_single
        self.is_over = False
        self.receipt: JobReceipt | None = None
        self.dry_run: DryRun | None = None
        self._metadata = CommitMetadata("commit", job_id, author.who or system_user(), author.message)
        self._first = None if self._known is None else self._read_receipt(self._known)
        self._repeated: set[str] = set()
        self._is_announced = False
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if error is not None:
            self.abandon(error)
            self.require_kept(error)
            return
        try:
            self.commit()
        except BaseException as failure:
            self.abandon(failure)
            self.require_kept(failure)
            raise

    @property
    def is_repeated(self) -> bool:
        """Whether the job was committed before this run."""
        return self._known is not None

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is committed at the end."""
        return self.context.is_dry_run

    @property
    def done(self) -> JobReceipt:
        """The receipt of the job, after its commit."""
        if self.receipt is None:
            raise InvalidOption(
                "The job has no receipt.",
                cause="It is still open, or ended with an error.",
                remedy="Ask for it after the 'with' block.",
            )
        return self.receipt

    def snapshot(self, name: StreamName, version: int | None = None) -> Snapshot:
        """Return the stream's table within the transaction, or at an older version."""
        context = self.context
        if self._known is not None and str(name) in self._repeated:
            state = _oldest_kept_state(context.log, context.log.current_state(), self._known.version)
            return table_snapshot(context.log, state, name, version)
        table = self.tables.get(str(name))
        is_there = table is not None and (table.content or str(name) in self.base.streams)
        if table is not None and is_there and version in (None, table.version):
            return table.view()
        return table_snapshot(context.log, self.base, name, version)

    def note_read(self, read: StreamName | FilePath) -> None:
        """Record a read of the stream or file, which later writes of the job to it may depend on."""
        if isinstance(read, FilePath):
            self.files_read.add(str(read))
        elif self._known is None:
            if str(read) in self.tables or str(read) in self.base.streams:
                self.table(read).was_read = True
            else:
                self.streams_missed.add(str(read))

    def update(
        self, name: StreamName, batch: Rows, update: Update | KeyedUpdate, engine: TableEngine | None = None
    ) -> Receipt:
        """Stage an update of a stream; the receipt predicts its result.

        Without a key in the update, the stream's key within the job counts.
        """
        try:
            table = self.table(name)
            if self._known is not None:
                first = self._first.streams.get(str(name)) if self._first else None
                if first is None:
                    raise IdempotencyConflict(
                        f"The job {self._metadata.job_id!r} is committed already,"
                        f" without the stream {str(name)!r}.",
                        cause="An id names one run of a job; that run did not update this stream.",
                        remedy="Give each run an id of its own.",
                        job_id=self._metadata.job_id,
                    )
                self._repeated.add(str(name))
                return first
            update = table.with_key(update)
            if batch.is_lazy:
                self.announce()
            with table.open_batch(batch, update, engine) as change:
                self.announce()
                result = table.apply(change.apply)
        except ReportDamage as error:
            self.require_kept(error)
            raise
        return self._predict(cast("Receipt", result.receipt))

    def update_all(
        self, updates: Sequence[tuple[StreamName, Rows, Update | KeyedUpdate]]
    ) -> tuple[Receipt, ...]:
        """Update several streams as ``update`` does; Spark searches all their keys in one query.

        Where one fails, the others are part of the job, as after one call for each; errors as of ``update``.
        """
        if self._known is not None or len(updates) == 1:
            return tuple(self.update(*update) for update in updates)
        for name, _, _ in updates:
            self.table(name)
        self.announce()
        works = [functools.partial(self.update, *update) for update in updates]
        outcomes = run_together(self.context.engine, works)
        for failure in outcomes:
            if isinstance(failure, Exception):
                raise failure
        # Only now it is known whether any of them changes something.
        return tuple(self._predict(receipt) for receipt in outcomes if not isinstance(receipt, Exception))

    def apply(self, name: StreamName, change: Change) -> ChangeResult | None:
        """Stage any other change of a stream; None in a repeated job."""
        if self._known is not None:
            return None
        table = self.table(name)
        self.announce()
        return table.apply(change)

    def stage_tenant(self, change: TenantChange, kind: Kind, *checks: Check) -> None:
        """Stage a change of the tenant itself; ``checks`` see the state that the commit follows."""
        self.tenant = change
        self.checks.extend(checks)
        self._metadata = replace(self._metadata, kind=kind)

    def take_over(self, change: StreamChange, kind: Kind, *checks: Check) -> None:
        """Stage changes of a table that were made outside of the tenant log."""
        self.taken_over[str(change.stream)] = change
        self.checks.extend(checks)
        self._metadata = replace(self._metadata, kind=kind)

    def announce(self) -> None:
        """Write the job's lease before its first file, so that gc spares what is staged."""
        if not self._is_announced:
            context = self.context
            require_not_revoked(self, self.base)
            if self.base.version == NO_VERSION and context.guard is NO_GUARD:
                require_no_store(context.storage)
                require_own_place(context.storage)
            if not (self._begun.has_format or self.is_dry_run):
                ensure_format(context.storage)
            self.lease.hold()
            self._is_announced = True

    def commit(self) -> JobReceipt:
        """Commit all changes at once, and return the receipt; see the class for dry runs and reviews."""
        self.is_over = True
        known: JobRecord | None = self._known
        if known is None and (self.is_dry_run or self.context.review is not None):
            known = self._review()
            if self.receipt is not None:
                return self.receipt
        if known is not None or (self._metadata.job_id is None and self.is_empty):
            self.context.guard.require_open()
            if known is None:
                check_commit(self, self.base)
            self._release()
            self.receipt = (
                self._job_receipt(self.base.version, committed=False)
                if known is None
                else self._read_receipt(known)
            )
            return self.receipt
        self.announce()
        outcome = commit_changes(self, self._metadata, self._job_record)
        if isinstance(outcome, JobRecord):
            self._release()
            self.receipt = self._read_receipt(outcome)
            return self.receipt
        self.receipt = self._job_receipt(outcome, committed=True)
        context = self.context if self.context.review is None else replace(self.context, review=None)
        context.after_commit(context, outcome, self._metadata.kind, self.changed_streams)
        return self.receipt

    def _review(self) -> JobRecord | None:
        """Work out what would be committed; end a dry run, or hold the job that its review does not pass.

        Returns the job's record where it is committed by now.
        """
        if not self.is_dry_run:
            make_durable(self)
        newest = rebase_on_newest(self, self._metadata.job_id)
        if isinstance(newest, JobRecord):
            return newest
        effects, difference = effects_of(self.tables, self.files, self.context.storage, newest)
        review = self.context.review
        found = effects if review is None else review(effects, difference)
        if found is None and not self.is_dry_run:
            for table in self.tables.values():
                table.depends_on_rows_read = True  # what the review saw is committed, or nothing
            return None
        effects = found or effects
        if not self.is_dry_run:
            self._hold(newest, effects)
        receipt = self._job_receipt(newest.version, committed=False)
        self._release()
        self.dry_run, self.receipt = effects, receipt
        return None

    def _hold(self, newest: TenantState, effects: DryRun) -> None:
        """Keep what is staged with the entry that would commit it after ``newest``, under the lease."""
        self.announce()
        storage, settings = self.context.storage, self.context.settings
        if newest.erased != self.base.erased:  # the erasure may not have seen the job's lease
            raise revoked_error(self, newest)
        entry = entry_of(self, newest, self._metadata, self._job_record)
        entry, long_commits = shorten_entry(entry)
        make_durable(self)
        keep_long_commits(storage, long_commits)
        for table in self.tables.values():
            table.discard(table.new_files() if table.content else ())
        until_ms = now_ms() + int(settings.held_days * _DAY_MS)
        seen = self.seen(newest)
        self.is_held = True  # also where the answer of the storage is lost: nothing is deleted from here on
        self.lease.keep(HeldCommit(entry, until_ms, *seen, effects.to_json(), newest.erased, self.token))

    def abandon(self, error: BaseException) -> None:
        """Delete what was staged because of ``error``; delete nothing if the outcome is unknown."""
        self.is_over = True
        self._release()
        if isinstance(error, Exception) and not isinstance(error, StorageUnavailable):
            self.context.guard.require_open()

    def require_kept(self, error: BaseException) -> None:
        """Raise ``ConflictError`` if ``error`` is no damage: an erasure or gc deleted what the job reads."""
        is_of_file = isinstance(error, VersionNotFound) and "file" in error.details
        if self.may_be_committed or not (is_of_file or isinstance(error, ReportDamage)):
            return
        if not self.context.log.current_state().has_same_past(self.base):
            raise ConflictError(
                "The version that this job reads was deleted while it ran.",
                cause="An erasure, or a garbage collection, of the tenant ran at the same time.",
                remedy="Run it again; nothing of it was committed.",
            ) from error

    def _release(self) -> None:
        """Delete staged files; if the job is held, or its outcome unknown, only end the heartbeat."""
        self.lease.stop()
        self.files.close()
        if self._is_announced:
            self.context.guard.remove_orphans()
        if self.may_be_committed or self.is_held:
            return
        for table in self.tables.values():
            table.discard()
        for change in self.files.changes.values():
            self._delete_blob(change)
        self.lease.release()
        if self.is_dry_run:
            new = [table.base.table for table in self.tables.values() if table.base.version < 0]
            own = [STAGING_FOLDER] if self.base.version == NO_VERSION else []
            with suppress(StorageUnavailable):
                for folder in (*new, *own, f"{BLOBS_FOLDER}/{self.write_id}"):
                    self.context.storage.prune(folder)

    def _delete_blob(self, change: FileChange) -> None:
        if change.blob is None or not change.blob.startswith(f"{self.write_id}/"):
            return
        try:
            self.context.storage.delete(blob_file(change.blob))
        except StorageUnavailable:
            return  # left for gc, which deletes what nothing references

    def _predict(self, receipt: Receipt) -> Receipt:
        """Return the receipt of a staged update with the versions that its commit would make."""
        version = self.base.version + (0 if self.is_empty else 1)
        return replace(receipt, version=version, stream_version=self.tables[receipt.stream].version)

    def _read_receipt(self, record: JobRecord) -> JobReceipt:
        """Read the receipt from when the job was committed."""
        kept = self.context.log.receipt(record)
        if kept is None:
            return JobReceipt(record.version, None, committed=True, seconds=0.0, repeated=True)
        return parse_job_receipt(kept)

    def _job_record(self, version: int) -> dict[str, Any] | None:
        """Return the receipt that the entry keeps for a repeated job."""
        return None if self._metadata.job_id is None else self._job_receipt(version, committed=True).to_json()

    def _job_receipt(self, version: int, *, committed: bool) -> JobReceipt:
        receipts = {name: table.receipt(version) for name, table in self.tables.items()}
        streams = {name: receipt for name, receipt in receipts.items() if receipt is not None}
        if self.is_dry_run or self.is_held:  # as of an update that changed nothing: the versions from before
            streams = {
                name: replace(receipt, stream_version=self.tables[name].base.version, committed=False)
                for name, receipt in streams.items()
            }
        return JobReceipt(
            tenant_version=version,
            job_id=self._metadata.job_id,
            committed=committed,
            seconds=time.monotonic() - self._started,
            streams=MappingProxyType(streams),
            files_written=_paths(self.files.changes, deleted=False),
            files_deleted=_paths(self.files.changes, deleted=True),
            script_sha256=self.context.request_context.script_sha256,
        )


def _paths(files: Mapping[str, FileChange], *, deleted: bool) -> tuple[str, ...]:
    return tuple(sorted(path for path, change in files.items() if (change.blob is None) == deleted))


def _oldest_kept_state(log: TenantLog, newest: TenantState, version: int) -> TenantState:
    """Return the state at a version, or at the oldest version from it on that is kept."""
    wanted = version if newest.is_listed(version) or not newest.floor else max(version, newest.floor)
    return log.state_at(wanted) if wanted > NO_VERSION else TenantState()


def _require_job_id(job_id: Any) -> None:
    if job_id is None or (isinstance(job_id, str) and job_id.strip() and len(job_id) <= _JOB_ID_MAX):
        return
    raise InvalidOption(
        f"{job_id!r} cannot be a job's id.",
        cause="It identifies one run of a job and is kept in the tenant's log.",
        remedy="Pass a text of 1 to 500 characters, or None for a job without an id.",
    )
