"""Submissions and claims of jobs: the statements that insert a job, and that lease one to a worker.

A claim takes jobs of silent workers first, because their lane waits for them; then queued jobs, by priority
and order of submission, and none of a full lane. On PostgreSQL a claim skips rows that another worker has
locked (``SKIP LOCKED``); SQLite has one writer at a time.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, exists, func, literal_column, or_, select, update

from freezeframe.control.database import Clock, insert_if_absent, milliseconds
from freezeframe.control.job import (
    ATTEMPTS_MAX,
    PRIORITY_MAX,
    QueuedJob,
    canonical_request,
    check_job_id,
    find_job,
    job_at,
    job_of,
    require_between,
)
from freezeframe.control.tables import jobs, lanes
from freezeframe.errors import IdempotencyConflict, InvalidOption, NotFound, RateLimited
from freezeframe.identifiers import EnvironmentName, TenantId


def claim_silent(connection: Connection, worker: str, clock: Clock, lease_ms: int) -> QueuedJob | None:
    """Lease the running job whose lease expired first to this worker; None if no lease has expired."""
    row = connection.execute(
        select(jobs)
        .where(jobs.c.status == "running", jobs.c.lease_until_ms <= clock(connection))
        .order_by(jobs.c.lease_until_ms, jobs.c.sequence)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).one_or_none()
    if row is None:
        return None
    silent = job_of(row)
    now_ms = clock(connection)
    only_close = silent.cancel_requested or silent.attempts >= silent.attempts_max
    return _store_lease(
        connection,
        silent.sequence,
        {
            **_lease(worker, now_ms, lease_ms),
            "attempts": silent.attempts + (0 if only_close else 1),
            "taken_over_from": silent.worker,
            "only_close": only_close,
        },
    )


def claim_queued(connection: Connection, worker: str, clock: Clock, lease_ms: int) -> QueuedJob | None:
    """Lease the next queued job to this worker; None if no job is due in a lane with a free slot."""
    earlier = jobs.alias("earlier")
    # A job that has begun keeps its place: what was submitted for a tenant later must not overtake it
    # while it waits for its next attempt.
    begun_before = exists().where(
        earlier.c.lane == jobs.c.lane,
        # Written out: with parameters neither database would take the index of just these rows.
        earlier.c.status == literal_column("'queued'"),
        earlier.c.attempts > literal_column("0"),
        earlier.c.sequence < jobs.c.sequence,
    )
    row = connection.execute(
        select(jobs.c.sequence)
        .join(lanes, lanes.c.name == jobs.c.lane)
        .where(
            jobs.c.status == "queued",
            jobs.c.run_at_ms <= clock(connection),
            lanes.c.running < lanes.c.running_max,
            or_(lanes.c.running_max > 1, ~begun_before),
        )
        .order_by(jobs.c.priority.desc(), jobs.c.sequence)
        .limit(1)
        # PostgreSQL looks again at rows that changed since it read them: a lane that filled up is no hit.
        .with_for_update(skip_locked=True, of=[jobs, lanes])
    ).one_or_none()
    return None if row is None else start_job(connection, row.sequence, worker, clock, lease_ms)


def start_job(connection: Connection, sequence: int, worker: str, clock: Clock, lease_ms: int) -> QueuedJob:
    """Mark a locked job as running, leased to this worker, and return it."""
    lane = select(jobs.c.lane).where(jobs.c.sequence == sequence).scalar_subquery()
    connection.execute(update(lanes).where(lanes.c.name == lane).values(running=lanes.c.running + 1))
    # A slow search must not use up the lease.
    now_ms = clock(connection)
    return _store_lease(
        connection,
        sequence,
        {
            **_lease(worker, now_ms, lease_ms),
            "status": "running",
            "started_ms": now_ms,
            "attempts": jobs.c.attempts + 1,
            "taken_over_from": "",
            "only_close": False,
        },
    )


def leave_lane(connection: Connection, lane: str) -> None:
    """Decrement the number of running jobs of the lane."""
    connection.execute(update(lanes).where(lanes.c.name == lane).values(running=lanes.c.running - 1))


def _lease(worker: str, now_ms: int, lease_ms: int) -> dict[str, Any]:
    return {"worker": worker, "lease_id": uuid.uuid4().hex, "lease_until_ms": now_ms + lease_ms}


def _store_lease(connection: Connection, sequence: int, values: dict[str, Any]) -> QueuedJob:
    connection.execute(update(jobs).where(jobs.c.sequence == sequence).values(values))
    return job_at(connection, sequence)


LANE_LENGTH_MAX = 500
RUNNING_MAX = 1000
_AGAIN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Submission:
    """A job to be run; the constructor refuses what cannot be one.

    ``request`` is JSON text. The job runs at ``run_at`` (now without one) or later. At most ``running_max``
    jobs of one ``lane`` run at once; without a lane it is the tenant's own, and the newest number
    given for a lane holds for all its jobs. It is refused where more than ``queued_max`` jobs of the lane
    would wait; 0 is no limit. ``schedule`` made it, where one did; ``group`` is the id of its group.
    Jobs of one ``incarnation`` of a tenant are not those of a later one with the same id.
    """

    request: str = field(repr=False)
    environment: str
    tenant: str
    job_id: str
    attempts_max: int = 3
    run_at: datetime | None = None
    priority: int = 0
    lane: str = ""
    running_max: int = 1
    schedule: str = ""
    incarnation: str = ""
    queued_max: int = 0
    group: str = ""

    def __post_init__(self) -> None:
        for name, value in (
            ("request", canonical_request(self.request)),
            ("environment", str(EnvironmentName(self.environment))),
            ("tenant", str(TenantId(self.tenant))),
            ("job_id", check_job_id(self.job_id)),
        ):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "lane", self.lane or lane_of(self.environment, self.tenant))
        require_between("attempts_max", self.attempts_max, 1, ATTEMPTS_MAX)
        require_between("priority", self.priority, -PRIORITY_MAX, PRIORITY_MAX)
        require_between("The number of jobs at once", self.running_max, 1, RUNNING_MAX)
        if len(self.lane) > LANE_LENGTH_MAX or "\0" in self.lane:
            raise InvalidOption(
                f"A concurrency key has at most {LANE_LENGTH_MAX} characters.", remedy="Pass a shorter one."
            )
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise InvalidOption(
                f"{self.run_at} has no time zone.", remedy="Pass a moment with a zone, UTC for example."
            )


def insert_job(connection: Connection, submission: Submission, now_ms: int) -> QueuedJob:
    """Insert the job, or find the job that was submitted by that name before, and return it."""
    is_new = _insert(connection, submission, now_ms)
    found = find_job(connection, submission.environment, submission.tenant, submission.job_id)
    if found.request != submission.request:
        raise IdempotencyConflict(
            f"Job {submission.job_id} of tenant {submission.tenant} was submitted with another request.",
            cause="A job id names one run; the one that is there keeps its request.",
            remedy="Submit other work by an id of its own.",
        )
    if is_new and submission.queued_max:
        # PostgreSQL: those that insert at the same time count one after the other, and see each other.
        connection.execute(select(lanes.c.name).where(lanes.c.name == submission.lane).with_for_update())
        if _queued(connection, submission.lane) > submission.queued_max:
            raise full_queue(submission.queued_max)
    return found


def begin_job(
    connection: Connection, submission: Submission, worker: str, clock: Clock, lease_ms: int
) -> QueuedJob | None:
    """Lease the submitted job to this worker at once, whatever else runs in its lane, and return it.

    A job with the same id that ended without success runs again, with the new request. If it waits, runs, is
    held or has succeeded, nothing changes and None is returned.
    """
    is_new = _insert(connection, submission, clock(connection))
    found = find_job(connection, submission.environment, submission.tenant, submission.job_id, lock=True)
    if not is_new:
        if not found.is_final or found.status in {"succeeded", "held"}:
            return None
        connection.execute(
            update(jobs)
            .where(jobs.c.sequence == found.sequence)
            .values(
                request=submission.request,
                lane=submission.lane,
                attempts_max=found.attempts + 1,
                cancel_requested=False,
                finished_ms=None,
                outcome=None,
            )
        )
    return start_job(connection, found.sequence, worker, clock, lease_ms)


def _insert(connection: Connection, submission: Submission, now_ms: int) -> bool:
    """Return whether the job was not there before."""
    made = insert_if_absent(
        connection, lanes, {"name": submission.lane, "running": 0, "running_max": submission.running_max}
    )
    if not made:
        connection.execute(
            update(lanes)
            .where(lanes.c.name == submission.lane, lanes.c.running_max != submission.running_max)
            .values(running_max=submission.running_max)
        )
    if submission.incarnation:
        former = (
            jobs.c.environment == submission.environment,
            jobs.c.tenant == submission.tenant,
            jobs.c.job_id == submission.job_id,
            jobs.c.incarnation.not_in(("", submission.incarnation)),
        )
        row = connection.execute(select(jobs).where(*former).with_for_update()).one_or_none()
        if row is not None:
            forget_job(connection, row)
    return insert_if_absent(connection, jobs, row_of(submission, now_ms))


_STORED = ("environment", "tenant", "job_id", "request", "priority", "lane", "schedule", "attempts_max")


def row_of(submission: Submission, now_ms: int) -> dict[str, Any]:
    """Return the row of a queued job."""
    return {
        **{name: getattr(submission, name) for name in (*_STORED, "incarnation", "group")},
        "status": "queued",
        "run_at_ms": now_ms if submission.run_at is None else milliseconds(submission.run_at),
        "created_ms": now_ms,
        "attempts": 0,
    }


def lane_of(environment: str, tenant: str) -> str:
    """Return the tenant's own lane; names contain no slash, so no two tenants share a lane."""
    return f"{environment}/{tenant}"


def require_place(
    connection: Connection, environment: str, tenant: str, job_id: str, queued_max: int
) -> None:
    """Refuse a new job if the tenant's queue is full; a ``queued_max`` of 0 is no limit."""
    if queued_max and _queued(connection, lane_of(environment, tenant)) >= queued_max:
        try:
            find_job(connection, environment, tenant, job_id)  # submitted before, and given again
        except NotFound:
            raise full_queue(queued_max) from None


def _queued(connection: Connection, lane: str) -> int:
    query = select(func.count()).where(jobs.c.lane == lane, jobs.c.status == "queued")
    return int(connection.execute(query).scalar_one())


def full_queue(queued_max: int, tenants: str = "the tenant") -> RateLimited:
    """Return the error for a submission to a full queue."""
    return RateLimited(
        f"{queued_max:,} jobs are already queued for {tenants}.",
        cause="That is the limit for a tenant (service_tenant_jobs_queued_max).",
        remedy=f"Check that a worker runs, and try again in {_AGAIN_SECONDS} seconds or later.",
        retry_after_seconds=_AGAIN_SECONDS,
    )


def forget_job(connection: Connection, row: Row[Any]) -> None:
    """Delete a job; a worker that runs it loses it."""
    if row.status == "running":
        leave_lane(connection, row.lane)
    connection.execute(delete(jobs).where(jobs.c.sequence == row.sequence))
