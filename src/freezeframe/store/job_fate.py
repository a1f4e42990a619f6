"""What became of a job, seen from outside: whether it is committed, and how it is kept from committing.

For whoever runs jobs in processes of their own: a process may die after its commit and before it says
so, or live on after it was given up. The tenant's log knows, and decides.
"""

from __future__ import annotations

from freezeframe.store.entries import TenantChange
from freezeframe.store.job_receipt import JobReceipt, parse_job_receipt
from freezeframe.store.lease import live_leases
from freezeframe.store.scope import committed
from freezeframe.store.transaction import TenantPlace
from freezeframe.store.work import Work


def committed_job(place: TenantPlace, job_id: str) -> JobReceipt | None:
    """The receipt of the job of that id, marked as repeated; None if it is not committed."""
    record = place.log.current_state().jobs.get(job_id)
    if record is None:
        return None
    kept = record.receipt or place.log.entry(record.version).receipt
    if kept is None:
        return JobReceipt(record.version, job_id, committed=True, seconds=0.0, repeated=True)
    return parse_job_receipt(kept)


def revoke_job(place: TenantPlace, job_id: str, reason: str = "", who: str = "") -> tuple[str, ...]:
    """Keep every run of that job that is under way from committing; the transactions concerned.

    A run that committed before stays committed: ``committed_job`` tells. Nothing is written where no run
    has announced itself.

    Raises:
        TryAgain: the entry could not be written; runs that are under way may still commit.
    """
    revoked = place.log.current_state().revoked
    found = tuple(
        sorted(
            lease.write_id
            for lease in live_leases(place.storage)
            if lease.job_id == job_id and lease.write_id not in revoked
        )
    )
    if found:
        message = reason or f"The job {job_id!r} was taken over."
        with committed(Work(place, author=who, message=message)) as work:
            work.change_tenant(TenantChange(revoked=found), "revoke")
    return found
