"""Changes of the job queue for followers; a poll costs three small queries.

No trigger and no column tells of a change. What may change is little: jobs that are new, jobs that run, and
jobs that were seen open before; all else has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, or_, select

from freezeframe.control.database.database import ControlDatabase, milliseconds
from freezeframe.control.jobs.job import JobStatus, QueuedJob
from freezeframe.control.jobs.job_rows import job_of
from freezeframe.control.tables import jobs

_OPEN = ("queued", "running")
_FAILED = ("failed", "timed_out", "dead")
_NEWEST_LOOKED_AT = 10_000
_LOOKED_MAX = 2000
_COLUMNS = (
    jobs.c.sequence,
    jobs.c.environment,
    jobs.c.tenant,
    jobs.c.job_id,
    jobs.c.status,
    jobs.c.attempts,
    jobs.c.cancel_requested,
)


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job's new status."""

    environment: str
    tenant: str
    job_id: str
    status: JobStatus


class JobFeed:
    """Changes of jobs since the previous poll; for one thread at a time.

    Of more than 2,000 open jobs those that were submitted last are watched, and all that run.
    """

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database
        self._newest: int | None = None
        self._open: dict[int, tuple[str, int, bool]] = {}

    def look(self) -> tuple[JobChange, ...]:
        """What has changed; nothing at the first look, which only remembers."""
        with self._database.read() as connection:
            is_first = self._newest is None
            if self._newest is None:
                self._newest = connection.execute(select(func.max(jobs.c.sequence))).scalar() or 0
                rows = _rows(connection, jobs.c.status.in_(_OPEN))
            else:
                mine = jobs.c.sequence.in_(self._open)
                rows = _rows(
                    connection, or_(jobs.c.sequence > self._newest, jobs.c.status == "running", mine)
                )
        found = []
        for row in rows:
            now = (row.status, row.attempts, row.cancel_requested)
            if self._open.get(row.sequence) != now:
                found.append(JobChange(row.environment, row.tenant, row.job_id, row.status))
            self._newest = max(self._newest, row.sequence)
        self._open = {
            row.sequence: (row.status, row.attempts, row.cancel_requested)
            for row in rows
            if row.status in _OPEN
        }
        return () if is_first else tuple(found)


def newest_jobs(
    database: ControlDatabase, environment: str, tenants: Collection[str]
) -> Mapping[str, QueuedJob]:
    """Of each of the tenants the job that was submitted last; those that never had one are left out."""
    newest = (
        select(func.max(jobs.c.sequence))
        .where(jobs.c.environment == environment, jobs.c.tenant.in_(tenants))
        .group_by(jobs.c.tenant)
    )
    with database.read() as connection:
        found = connection.execute(select(jobs).where(jobs.c.sequence.in_(newest))).all()
    return {row.tenant: job_of(row) for row in found}


def failed_jobs(
    database: ControlDatabase,
    environment: str,
    tenants: Collection[str] | None,
    since: datetime,
    limit: int = 50,
) -> tuple[QueuedJob, ...]:
    """Return the jobs of some tenants (None: all) that failed since a moment, among the newest 10,000."""
    newest = select(func.max(jobs.c.sequence)).scalar_subquery()
    query = select(jobs).where(
        jobs.c.sequence > newest - _NEWEST_LOOKED_AT,
        jobs.c.environment == environment,
        jobs.c.status.in_(_FAILED),
        jobs.c.finished_ms >= milliseconds(since),
    )
    if tenants is not None:
        query = query.where(jobs.c.tenant.in_(tenants))
    with database.read() as connection:
        found = connection.execute(query.order_by(jobs.c.sequence.desc()).limit(limit))
        return tuple(map(job_of, found))


def _rows(connection: Connection, wanted: ColumnElement[bool]) -> list[Row[Any]]:
    query = select(*_COLUMNS).where(wanted).order_by(jobs.c.sequence.desc()).limit(_LOOKED_MAX)
    return list(reversed(connection.execute(query).all()))
