"""Claims: the queries that select a worker's next job, and its lease.

First come jobs whose worker is silent: their lane waits for them. Then the queued ones, by priority and by
the order of submission; a lane that is full is passed over. On PostgreSQL rows that another worker
is just claiming are passed over as well (``SKIP LOCKED``); on SQLite there is one writer at a time.
"""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import Connection, exists, literal_column, or_, select, update

from freezeframe.control.database.database import Clock
from freezeframe.control.jobs.job import QueuedJob
from freezeframe.control.jobs.job_rows import job_at, job_of
from freezeframe.control.tables import jobs, lanes


def claim_silent(connection: Connection, worker: str, clock: Clock, lease_ms: int) -> QueuedJob | None:
    """The running job whose lease ran out first, now this worker's; None where all are alive."""
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
    """The queued job that is next, now this worker's; None where none is due and free."""
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
    """The job of that place, locked and not running, as one that runs and is this worker's."""
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
    """One job fewer runs in the lane."""
    connection.execute(update(lanes).where(lanes.c.name == lane).values(running=lanes.c.running - 1))


def _lease(worker: str, now_ms: int, lease_ms: int) -> dict[str, Any]:
    return {"worker": worker, "lease_id": uuid.uuid4().hex, "lease_until_ms": now_ms + lease_ms}


def _store_lease(connection: Connection, sequence: int, values: dict[str, Any]) -> QueuedJob:
    connection.execute(update(jobs).where(jobs.c.sequence == sequence).values(values))
    return job_at(connection, sequence)
