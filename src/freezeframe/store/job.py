"""A job: one run of a script for a tenant, committed atomically; its status seen from outside."""

from __future__ import annotations

from collections.abc import Iterable

from freezeframe.store.model.receipt import JobReceipt, parse_job_receipt
from freezeframe.store.model.update_options import Author
from freezeframe.store.tenant_log.entry import TenantChange
from freezeframe.store.tenant_log.lease import live_leases
from freezeframe.store.transaction.changes import TenantContext
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
    that has committed stays committed (``find_committed_job``). Nothing is written if there is nothing
    to revoke, or the job is committed.
    """
    leases = live_leases(context.storage)
    state = context.log.current_state()  # read last: a run that registers later finds the tokens revoked
    if context.log.known_job(state, job_id) is not None:
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
