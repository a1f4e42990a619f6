"""The job queue: each job is submitted once, and leased to one worker at a time, which sends heartbeats.

Only the database's clock decides whether a lease has expired. The lease's id is the fencing token: the queue
refuses a worker whose lease id is older. ``JobFeed`` tells followers which jobs changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Row, and_, case, delete, func, or_, select, update

from freezeframe.control.database import ControlDatabase, milliseconds
from freezeframe.control.job import (
    ATTEMPTS_MAX,
    FAILURES,
    STATUSES,
    FinalStatus,
    JobFilter,
    JobPage,
    JobStatus,
    QueuedJob,
    canonical_request,
    cursor_after,
    find_job,
    job_at,
    job_of,
    position_of,
    require_between,
)
from freezeframe.control.submission import (
    Submission,
    begin_job,
    claim_queued,
    claim_silent,
    insert_job,
    leave_lane,
    require_place,
)
from freezeframe.control.tables import jobs
from freezeframe.errors import InvalidOption, JobRevoked, NotFound

_DOUBLINGS_MAX = 32


@dataclass(frozen=True, slots=True)
class Backoff:
    """``first_seconds`` after the first attempt, twice as long after each further one, up to a limit."""

    first_seconds: float = 10.0
    seconds_max: float = 600.0

    def __post_init__(self) -> None:
        if not 0 <= self.first_seconds <= self.seconds_max:
            raise InvalidOption(
                f"A wait of {self.first_seconds} s cannot grow to {self.seconds_max} s.",
                remedy="Pass a first wait of at least 0 that is no longer than the longest.",
            )

    def seconds_after(self, attempts: int) -> float:
        """Return the wait after so many attempts, 1 or more."""
        return min(self.first_seconds * 2.0 ** min(attempts - 1, _DOUBLINGS_MAX), self.seconds_max)


LEASE_SECONDS = 30.0
PAGE_MAX = 1000

LeaseState = Literal["held", "cancel", "lost"]


class JobQueue:
    """The jobs of a control database; threads and processes may share them."""

    def __init__(self, database: ControlDatabase, backoff: Backoff | None = None) -> None:
        self._database = database
        self._backoff = backoff or Backoff()

    def submit(self, submission: Submission) -> QueuedJob:
        """Put a job into the queue, or find the job with the same environment, tenant and id.

        Higher priorities run first, jobs of one priority in the order of submission.

        Raises:
            IdempotencyConflict: the job is there with another request.
            RateLimited: as many jobs of the tenant wait already as the submission allows.
            TryAgain: the database cannot be reached.
        """
        with self._database.begin() as connection:
            return insert_job(connection, submission, self._database.now_ms(connection))

    @property
    def database(self) -> ControlDatabase:
        """The control database of the jobs."""
        return self._database

    def require_place(self, environment: str, tenant: str, job_id: str, queued_max: int) -> None:
        """Refuse a job that would be refused now, without waiting for other writers.

        Raises:
            RateLimited: ``queued_max`` jobs of the tenant wait, and none of that id is there.
        """
        with self._database.read() as connection:
            require_place(connection, environment, tenant, job_id, queued_max)

    def get(self, environment: str, tenant: str, job_id: str, incarnation: str = "") -> QueuedJob:
        """Return the job of that name; NotFound if there is none."""
        with self._database.read() as connection:
            return find_job(connection, environment, tenant, job_id, incarnation=incarnation)

    def list(
        self, requested: JobFilter | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> JobPage:
        """Return the jobs that ``requested`` names (None: all), newest first, a page at a time.

        Of a group those that failed come first.

        Raises:
            InvalidOption: a page of less than 1 or more than 1,000, or no cursor of a list.
        """
        require_between("A page's length", limit, 1, PAGE_MAX)
        conditions = [] if requested is None else requested.conditions()
        order: list[ColumnElement[Any]] = [jobs.c.sequence.desc()]
        is_group = requested is not None and requested.group is not None
        if is_group:
            order.insert(0, rank := case((jobs.c.status.in_(FAILURES), 0), else_=1))
        if cursor is not None:
            sequence, after = position_of(cursor)
            below = jobs.c.sequence < sequence
            conditions.append(or_(rank > after, and_(rank == after, below)) if is_group else below)
        query = select(jobs).where(*conditions).order_by(*order).limit(limit + 1)
        with self._database.read() as connection:
            found = [job_of(row) for row in connection.execute(query)]
        page = tuple(found[:limit])
        if len(found) <= limit:
            return JobPage(page, None)
        return JobPage(
            page, cursor_after(page[-1].sequence, int(is_group and page[-1].status not in FAILURES))
        )

    def counts(self) -> Mapping[JobStatus, int]:
        """Return how many jobs there are of each status, also where there are none."""
        query = select(jobs.c.status, func.count()).group_by(jobs.c.status)
        with self._database.read() as connection:
            found = {row[0]: row[1] for row in connection.execute(query)}
        return {status: found.get(status, 0) for status in STATUSES}

    def waiting_seconds(self) -> float:
        """Return the seconds that the oldest due job has waited; 0 if none waits."""
        waits = select(func.min(jobs.c.run_at_ms)).where(jobs.c.status == "queued")
        with self._database.read() as connection:
            oldest = connection.execute(waits).scalar_one()
            return 0.0 if oldest is None else max(0.0, (self._database.now_ms(connection) - oldest) / 1000)

    def has_ended(self, environment: str, tenant: str, job_id: str) -> bool | None:
        """Return whether the job has ended; None if there is no such job."""
        try:
            return self.get(environment, tenant, job_id).is_final
        except NotFound:
            return None

    def claim(self, worker: str, lease_seconds: float = LEASE_SECONDS) -> QueuedJob | None:
        """Lease the next job to this worker, mark it as running, and return it; None if no job is ready.

        A job whose worker let its lease expire comes first: ``taken_over_from`` and ``only_close`` of
        ``QueuedJob`` say what the new worker must do.
        """
        lease_ms = round(lease_seconds * 1000)
        with self._database.begin() as connection:
            clock = self._database.now_ms
            return claim_silent(connection, worker, clock, lease_ms) or claim_queued(
                connection, worker, clock, lease_ms
            )

    def begin(
        self, submission: Submission, worker: str, lease_seconds: float = LEASE_SECONDS
    ) -> QueuedJob | None:
        """Lease the submitted job to this worker at once, mark it as running, and return it.

        A job with the same id that ended without success runs again, with the new request. If it waits,
        runs, is held or has succeeded, nothing changes and None is returned.

        Raises:
            TryAgain: the database cannot be reached.
        """
        with self._database.begin() as connection:
            return begin_job(
                connection, submission, worker, self._database.now_ms, round(lease_seconds * 1000)
            )

    def heartbeat(self, job: QueuedJob, lease_seconds: float = LEASE_SECONDS) -> LeaseState:
        """Renew the lease of a claimed job.

        Return ``held``; ``cancel`` if the lease is held and the worker must cancel the job; ``lost`` if
        another worker has the job.
        """
        with self._database.begin() as connection:
            until_ms = self._database.now_ms(connection) + round(lease_seconds * 1000)
            row = connection.execute(
                update(jobs)
                .where(jobs.c.sequence == job.sequence, jobs.c.lease_id == job.lease_id)
                .values(lease_until_ms=until_ms)
                .returning(jobs.c.cancel_requested)
            ).one_or_none()
        if row is None:
            return "lost"
        return "cancel" if row.cancel_requested else "held"

    def finish(
        self,
        job: QueuedJob,
        status: FinalStatus,
        outcome_json: str | None = None,
        *,
        may_retry: bool = False,
    ) -> QueuedJob:
        """End a claimed job's attempt, and with it the job.

        With ``may_retry`` a job that failed or ran too long is queued again after a wait, unless
        its attempts are used up or it was cancelled.

        Raises:
            JobRevoked: the lease is lost; another worker decides about the job, nothing was changed.
        """
        outcome = None if outcome_json is None else canonical_request(outcome_json)
        with self._database.begin() as connection:
            held = self._lock_held_job(connection, job)
            now_ms = self._database.now_ms(connection)
            again = may_retry and not held.cancel_requested and held.attempts < held.attempts_max
            if again and status in {"failed", "timed_out"}:
                wait_ms = round(self._backoff.seconds_after(held.attempts) * 1000)
                values: dict[str, Any] = {"status": "queued", "run_at_ms": now_ms + wait_ms}
            else:
                values = {"status": status, "finished_ms": now_ms}
            return _release(connection, held, {**values, "outcome": outcome})

    def give_back(self, job: QueuedJob) -> QueuedJob:
        """Return a claimed job to its position in the queue; the attempt does not count.

        No process of the job may still run. A job that was cancelled meanwhile ends.

        Raises:
            JobRevoked: the lease is lost.
        """
        with self._database.begin() as connection:
            held = self._lock_held_job(connection, job)
            now_ms = self._database.now_ms(connection)
            if held.cancel_requested:
                values: dict[str, Any] = {"status": "cancelled", "finished_ms": now_ms}
            else:
                values = {"status": "queued", "run_at_ms": now_ms, "attempts": max(0, held.attempts - 1)}
            return _release(connection, held, values)

    def cancel(self, environment: str, tenant: str, job_id: str, incarnation: str = "") -> QueuedJob:
        """Request a job's end: a queued job ends at once, a running job at its worker's next heartbeat.

        One that has ended stays as it is.

        Raises:
            NotFound: there is no such job.
        """
        with self._database.begin() as connection:
            found = find_job(connection, environment, tenant, job_id, incarnation=incarnation, lock=True)
            if found.is_final:
                return found
            values: dict[str, Any] = {"cancel_requested": True}
            if found.status == "queued":
                now_ms = self._database.now_ms(connection)
                values |= {"status": "cancelled", "finished_ms": now_ms}
            return _change(connection, found.sequence, values)

    def settle(self, job: QueuedJob, status: FinalStatus, outcome_json: str) -> QueuedJob:
        """Give a held job its last status, and return it; one that is no longer held stays as it is."""
        with self._database.begin() as connection:
            found = job_at(connection, job.sequence, lock=True)
            if found.status != "held":
                return found
            now_ms = self._database.now_ms(connection)
            values = {"status": status, "finished_ms": now_ms, "outcome": canonical_request(outcome_json)}
            return _change(connection, found.sequence, values)

    def retry(self, environment: str, tenant: str, job_id: str, *, attempts: int = 1) -> QueuedJob:
        """Queue a job again that failed, ran too long, died or was cancelled, with so many further attempts.

        It keeps its id, so what it has committed is not committed again.

        Raises:
            NotFound: there is no such job.
            InvalidOption: it is queued, runs, is held or has succeeded.
        """
        require_between("attempts", attempts, 1, ATTEMPTS_MAX)
        with self._database.begin() as connection:
            found = find_job(connection, environment, tenant, job_id, lock=True)
            if not found.is_final or found.status in {"succeeded", "held"}:
                raise InvalidOption(
                    f"Job {job_id} cannot be tried again: it is {found.status}.",
                    remedy="Publish or discard it first."
                    if found.status == "held"
                    else "Submit a new run by an id of its own.",
                )
            return _change(
                connection,
                found.sequence,
                {
                    "status": "queued",
                    "run_at_ms": self._database.now_ms(connection),
                    "finished_ms": None,
                    "attempts_max": found.attempts + attempts,
                    "cancel_requested": False,
                },
            )

    def forget(self, environment: str, tenant: str) -> int:
        """Delete a tenant's jobs of every status, and return their number.

        A worker that runs one of them learns at its next heartbeat that it lost the job.
        """
        own = (jobs.c.environment == environment, jobs.c.tenant == tenant)
        with self._database.begin() as connection:
            for row in connection.execute(select(jobs).where(*own).with_for_update()).all():
                if row.status == "running":
                    leave_lane(connection, row.lane)
            return connection.execute(
                delete(jobs).where(*own), execution_options={"preserve_rowcount": True}
            ).rowcount

    def _lock_held_job(self, connection: Connection, job: QueuedJob) -> QueuedJob:
        """Lock the job and return it, if its lease is still the lease of the claim."""
        row = connection.execute(
            select(jobs)
            .where(jobs.c.sequence == job.sequence, jobs.c.lease_id == job.lease_id)
            .with_for_update()
        ).one_or_none()
        if row is None or job.lease_id is None:
            raise JobRevoked(
                f"Job {job.job_id} of tenant {job.tenant} is no longer leased to this worker.",
                cause="Its lease expired and another worker took it over, or the job has ended.",
                remedy="Stop this attempt; its uncommitted changes are discarded.",
            )
        return job_of(row)


def _release(connection: Connection, held: QueuedJob, values: dict[str, Any]) -> QueuedJob:
    leave_lane(connection, held.lane)
    return _change(connection, held.sequence, {**values, "lease_id": None, "lease_until_ms": None})


def _change(connection: Connection, sequence: int, values: dict[str, Any]) -> QueuedJob:
    connection.execute(update(jobs).where(jobs.c.sequence == sequence).values(values))
    return job_at(connection, sequence)


_OPEN = ("queued", "running")
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

    With more than 2,000 open jobs, only running jobs and those submitted last are watched.
    """

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database
        self._newest: int | None = None
        self._open: dict[int, tuple[str, int, bool]] = {}

    def look(self) -> tuple[JobChange, ...]:
        """Return the changes since the previous call; the first call returns none."""
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
        seen = {row.sequence: (row.status, row.attempts, row.cancel_requested) for row in rows}
        for row in rows:
            if self._open.get(row.sequence) != seen[row.sequence]:
                found.append(JobChange(row.environment, row.tenant, row.job_id, row.status))
            self._newest = max(self._newest, row.sequence)
        self._open = {sequence: now for sequence, now in seen.items() if now[0] in _OPEN}
        return () if is_first else tuple(found)


def newest_jobs(
    database: ControlDatabase, environment: str, tenants: Collection[str]
) -> Mapping[str, QueuedJob]:
    """Return the job of each tenant that was submitted last; tenants without jobs are left out."""
    newest = (
        select(func.max(jobs.c.sequence))
        .where(jobs.c.environment == environment, jobs.c.tenant.in_(tenants))
        .group_by(jobs.c.tenant)
    )
    with database.read() as connection:
        found = connection.execute(select(jobs).where(jobs.c.sequence.in_(newest))).all()
    return {row.tenant: job_of(row) for row in found}


def scheduled_jobs(
    database: ControlDatabase, environment: str, tenants: Collection[str]
) -> Mapping[tuple[str, str], QueuedJob]:
    """Return the job of each tenant's schedule that was submitted last, by tenant and schedule."""
    newest = (
        select(func.max(jobs.c.sequence))
        .where(jobs.c.environment == environment, jobs.c.tenant.in_(tenants), jobs.c.schedule != "")
        .group_by(jobs.c.tenant, jobs.c.schedule)
    )
    with database.read() as connection:
        found = connection.execute(select(jobs).where(jobs.c.sequence.in_(newest))).all()
    return {(row.tenant, row.schedule): job_of(row) for row in found}


def failed_jobs(
    database: ControlDatabase,
    environment: str,
    tenants: Collection[str] | None,
    since: datetime,
    limit: int = 1000,
) -> tuple[QueuedJob, ...]:
    """Return the jobs of some tenants (None: all) that failed since a moment, among the newest 10,000."""
    newest = select(func.max(jobs.c.sequence)).scalar_subquery()
    query = select(jobs).where(
        jobs.c.sequence > newest - _NEWEST_LOOKED_AT,
        jobs.c.environment == environment,
        jobs.c.status.in_(FAILURES),
        jobs.c.finished_ms >= milliseconds(since),
    )
    if tenants is not None:
        query = query.where(jobs.c.tenant.in_(tenants))
    with database.read() as connection:
        found = connection.execute(query.order_by(jobs.c.sequence.desc()).limit(limit))
        return tuple(map(job_of, found))


def _rows(connection: Connection, condition: ColumnElement[bool]) -> list[Row[Any]]:
    query = select(*_COLUMNS).where(condition).order_by(jobs.c.sequence.desc()).limit(_LOOKED_MAX)
    return list(reversed(connection.execute(query).all()))
