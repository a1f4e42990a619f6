"""Status of a job from outside, and revoking it before it commits.

For supervisors of job processes: a process may die between its commit and its report, or continue after
it was given up. The tenant's log has the outcome and decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from freezeframe.store.model.receipt import JobReceipt, parse_job_receipt
from freezeframe.store.model.update_options import Author
from freezeframe.store.tenant_log.entry import TenantChange
from freezeframe.store.tenant_log.lease import live_leases
from freezeframe.store.transaction.scope import commit_at_end
from freezeframe.store.transaction.transaction import TenantPlace
from freezeframe.store.transaction.unit_of_work import UnitOfWork


def find_committed_job(place: TenantPlace, job_id: str) -> JobReceipt | None:
    """The receipt of the job of that id, marked as repeated; None if it is not committed."""
    record = place.log.known_job(place.log.current_state(), job_id)
    if record is None:
        return None
    kept = place.log.receipt(record)
    if kept is None:
        return JobReceipt(record.version, job_id, committed=True, seconds=0.0, repeated=True)
    return parse_job_receipt(kept)


def revoke_job(
    place: TenantPlace, job_id: str, reason: str = "", who: str = "", *, tokens: Iterable[str] = ()
) -> tuple[str, ...]:
    """Revoke every open run of that job, so that it cannot commit; returns the revoked tokens.

    Runs that have announced themselves are found by their leases, and revoked as transactions. One that
    was started and is not heard of yet is revoked by its token, if that is among ``tokens``. A run that
    committed before stays committed: ``find_committed_job`` tells. Nothing is written where there is nothing
    to revoke, or the job is committed.
    """
    leases = live_leases(place.storage)
    state = place.log.current_state()  # read last: a run that registers later finds the tokens revoked
    if place.log.known_job(state, job_id) is not None:
        return ()
    found = {lease.write_id for lease in leases if lease.job_id == job_id} - state.revoked.keys()
    change = TenantChange(
        revoked=tuple(sorted(found)), revoked_tokens=tuple(sorted(set(tokens) - state.revoked_tokens.keys()))
    )
    revoked = (*change.revoked, *change.revoked_tokens)
    if revoked:
        message = reason or f"The job {job_id!r} was taken over."
        with commit_at_end(UnitOfWork(place, Author(who, message))) as work:
            work.change_tenant(change, "revoke")
    return revoked
