"""A job: one run of a script for a tenant, committed atomically; its status seen from outside."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from freezeframe.errors import (
    ConflictError,
    CorruptLog,
    InvalidName,
    InvalidOption,
    JobRevoked,
    VersionNotFound,
)
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.store.maintenance.garbage import sweep
from freezeframe.store.model.receipt import JobReceipt, parse_job_receipt
from freezeframe.store.model.update_options import Author
from freezeframe.store.tenant_log.entry import TenantChange
from freezeframe.store.tenant_log.lease import HeldCommit, Lease, live_leases
from freezeframe.store.tenant_log.roll_forward import (
    change_content,
    forget_long_commits,
    stream_base,
    table_snapshot,
)
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import TenantContext, blob_of
from freezeframe.store.transaction.staged import StagedTable
from freezeframe.store.transaction.transaction import Transaction

# The status of a job seen from outside, and revoking it before it commits.
#
# For supervisors of job processes: a process may die between its commit and its report, or go on after
# it was given up. The tenant's log has the outcome and decides.


def find_committed_job(context: TenantContext, job_id: str) -> JobReceipt | None:
    """Return the receipt of the job of that id, marked as repeated; None if it is not committed."""
    record = context.log.known_job(context.log.current_state(), job_id)
    if record is None:
        return None
    kept = context.log.receipt(record)
    if kept is None:
        return JobReceipt(record.version, job_id, committed=True, seconds=0.0, repeated=True)
    return parse_job_receipt(kept)


def revoke_job(
    context: TenantContext, job_id: str, reason: str = "", who: str = "", *, tokens: Iterable[str] = ()
) -> tuple[str, ...]:
    """Revoke every open run of that job, so that it cannot commit; return the revoked tokens.

    Runs that have announced themselves are found by their leases, and revoked as transactions. A run that
    has started without announcing itself yet is revoked by its token, if that is among ``tokens``. A run
    that has committed stays committed (``find_committed_job``), and one that is held stays held. Nothing is
    written if there is nothing to revoke, or the job is committed or held.
    """
    leases = live_leases(context.storage)
    state = context.log.current_state()  # read last: a run that registers later finds the tokens revoked
    if context.log.known_job(state, job_id) is not None or find_held_job(context, job_id) is not None:
        return ()
    found = {lease.write_id for lease in leases if lease.job_id == job_id} - state.revoked.keys()
    change = TenantChange(
        revoked=tuple(sorted(found)), revoked_tokens=tuple(sorted(set(tokens) - state.revoked_tokens.keys()))
    )
    revoked = (*change.revoked, *change.revoked_tokens)
    if revoked:
        message = reason or f"The job {job_id!r} was taken over."
        with Transaction(context, Author(who, message)) as transaction:
            transaction.stage_tenant(change, "revoke")
    return revoked


# A held job: its files are staged, its entry is in its lease, and it is committed on demand or discarded.


def find_held_job(context: TenantContext, job_id: str) -> HeldCommit | None:
    """Return the held commit of the job of that id; None if it is not held, or committed by now."""
    return max(_held_commits(context, job_id), key=lambda commit: commit.until_ms, default=None)


def _held_commits(context: TenantContext, job_id: str) -> list[HeldCommit]:
    """Return the job's held commits: one, unless two runs of it that knew nothing of each other were held."""
    commits = [lease.commit for lease in live_leases(context.storage) if lease.job_id == job_id]
    state = context.log.current_state()  # read last: it has what published or revoked one of them
    if not any(commits) or context.log.known_job(state, job_id) is not None:
        return []
    return [
        commit
        for commit in commits
        if commit and commit.entry.write_id not in state.revoked and commit.token not in state.revoked_tokens
    ]


def publish_job(context: TenantContext, job_id: str) -> JobReceipt:
    """Commit what a held job has staged, if nothing changed that it read or changes; return its receipt.

    A job that is committed already is answered with its receipt (``repeated``).

    Raises:
        JobRevoked: the job is not held (any more).
        ConflictError: another commit changed what the job rests on; the job stays held.
    """
    held = find_held_job(context, job_id)
    committed = find_committed_job(context, job_id)  # read last: who publishes it at once removes the lease
    if committed is not None:
        return committed
    if held is None:
        raise JobRevoked(
            f"The job {job_id!r} is not held.",
            cause="It was discarded, its time is over, or an erasure of rows removed what it had staged.",
            remedy="Run it again.",
            code="NOT_HELD",
        )
    try:
        with _Publication(context, held) as publication:
            pass
    except CorruptLog:
        committed = find_committed_job(context, job_id)
        if committed is None:
            raise
        return committed  # who published it at once removed what was staged
    except InvalidName as error:  # the job's own names were fine: others were made meanwhile
        raise ConflictError(
            f"The job {job_id!r} cannot be published: a name of it is taken meanwhile.",
            cause=f"{error.problem} {error.cause}".strip(),
            remedy="Run it again, or discard it; until then it stays held.",
        ) from error
    # The commits that were published have another time, unless the clock was put back.
    head = context.log.current_state().head
    used = {change.sha256 for change in (head.streams if head else ())}
    digests = {change.sha256 for change in held.entry.streams} - used - {""}
    forget_long_commits(context.storage, dict.fromkeys(digests, b""))
    return publication.done


def discard_job(context: TenantContext, job_id: str, author: Author) -> bool:
    """Delete what a held job has staged, and return whether it was held.

    Raises:
        InvalidOption: the job is committed.
    """

    def require_open(state: TenantState) -> None:
        if context.log.known_job(state, job_id) is not None:
            raise InvalidOption(
                f"The job {job_id!r} cannot be discarded: it is published.",
                remedy="Restore the tenant's version of before.",
            )

    held = {commit.entry.write_id for commit in _held_commits(context, job_id)}
    require_open(context.log.current_state())  # read last: none is held where it was published at once
    if not held:
        return False
    change = TenantChange(revoked=tuple(sorted(held)))  # first: no publication can commit after it
    with Transaction(context, author.for_action(f"discard {job_id}"), is_single=True) as transaction:
        transaction.stage_tenant(change, "revoke", require_open)
    with suppress(CorruptLog, VersionNotFound):  # gc deletes versions at this moment, and so does the rest
        state = context.log.current_state()
        sweep(context, state.floor_before, held, later=state.floor, durable=True)
    return True


class _Publication(Transaction):
    """The transaction of a held job once more, with what it had staged; it stays held if this fails."""

    def __init__(self, context: TenantContext, held: HeldCommit) -> None:
        entry = held.entry
        author = Author(entry.author, entry.message)
        super().__init__(context, author, job_id=entry.job_id, token=held.token)
        self._held = held
        self._is_announced = self.is_held = True
        self.identity = replace(self.identity, write_id=entry.write_id)
        self.lease = Lease(context.storage, entry.write_id, entry.job_id, 0)
        self.lease.is_written = True
        self.checks.append(self._require_unchanged)
        if self.is_repeated:
            return
        self._require_unchanged(self.base)
        for change in entry.streams:
            table = StagedTable(
                change.stream,
                stream_base(context.log, self.base, change.stream),
                self.identity,
                context.engine,
                context.settings,
                changes=[_no_change],
                content=change_content(context.log, change),
                depends_on_rows_read=True,
            )
            table.set_counts(change.counts)
            self.tables[str(change.stream)] = table
        for file in entry.files:
            if file.blob is not None:
                self.files.require_path(FilePath(file.path))
            self.files.add(file)
        if entry.tenant.dropped:
            self.stage_tenant(TenantChange(dropped=entry.tenant.dropped), "commit")

    def _require_unchanged(self, state: TenantState) -> None:
        """Refuse to publish after a state in which anything differs that the job read or changes."""
        held, log = self._held, self.context.log
        if state.erased != held.erased:
            raise JobRevoked(
                f"The job {held.entry.job_id!r} cannot be published.",
                cause="Rows of the tenant were erased after it was held, and it may bring them back.",
                remedy="Run it again.",
                code="NOT_HELD",
            )
        changed = [
            f"stream {name!r}"
            for name, identity in held.streams.items()
            if identity
            != (table_snapshot(log, state, StreamName(name)).identity if name in state.streams else "")
        ]
        changed += [
            f"stream {str(change.stream)!r}"
            for change in held.entry.streams
            if change.table_version != state.base_version(change.stream) + 1
        ]
        changed += [f"file {path!r}" for path, blob in held.files.items() if blob != blob_of(state, path)]
        if changed:
            raise ConflictError(
                f"The job {held.entry.job_id!r} cannot be published: the {changed[0]} was changed meanwhile.",
                cause="What the job would change was worked out from what was there before.",
                remedy="Run it again, or discard it; until then it stays held.",
                changed=list(dict.fromkeys(changed)),
            )

    def _job_receipt(self, version: int, *, committed: bool) -> JobReceipt:
        kept = parse_job_receipt(dict(self._held.entry.receipt or {}))
        streams = {name: replace(receipt, version=version) for name, receipt in kept.streams.items()}
        return replace(
            kept,
            tenant_version=version,
            committed=committed,
            repeated=False,
            streams=MappingProxyType(streams),
        )


def _no_change(*_: Any) -> Any:
    """Stand for the changes of a held job: what they made is staged, and is not made anew."""
    raise AssertionError("a held job is committed as it is, or not at all")
