"""Job groups: the jobs of one script for many tenants, which one command submits in one transaction.

The jobs of a group share their job id, which is the group's id; each is a job of its own tenant, with a lane,
attempts and an outcome of its own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BindParameter, Connection, Row, and_, bindparam, func, select, update

from freezeframe.clock import moment
from freezeframe.control.database import ControlDatabase, insert_absent, milliseconds
from freezeframe.control.job import (
    FAILURES,
    FINAL_STATUSES,
    STATUSES,
    JobStatus,
    QueuedJob,
    job_of,
    script_name,
)
from freezeframe.control.submission import Submission, forget_job, full_queue, row_of
from freezeframe.control.tables import jobs, lanes
from freezeframe.errors import IdempotencyConflict, InvalidOption, NotFound

GROUP_TENANTS_MAX = 10_000
_AFTER_OTHERS = datetime(9999, 12, 31, tzinfo=UTC)
"""When the jobs of a group run that wait for its first ones: ``begin_rest`` lets them."""
_NAMED_MAX = 5
_PAGE = 500


@dataclass(frozen=True, slots=True)
class JobGroup:
    """A group at one moment: how many of its jobs have each status; ``request`` is that of one of them."""

    group: str
    environment: str
    created: datetime
    counts: Mapping[JobStatus, int]
    request: Mapping[str, Any] = field(repr=False)

    @property
    def jobs(self) -> int:
        """The number of jobs, one for each tenant."""
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        """The number of jobs that failed, ran too long or died."""
        return sum(self.counts.get(status, 0) for status in FAILURES)

    @property
    def is_final(self) -> bool:
        """Whether all jobs have ended."""
        return self.jobs == sum(self.counts.get(status, 0) for status in FINAL_STATUSES)

    @property
    def is_dry_run(self) -> bool:
        """Whether its jobs are dry runs, which commit nothing."""
        return bool(self.request.get("dry_run"))

    @property
    def script(self) -> str:
        """The name of the script's file."""
        return script_name(self.request)

    @property
    def text(self) -> str:
        """The group in one line: ``etl.py for 220 tenants: 214 succeeded, 4 running, 2 failed``."""
        word = "tenant" if self.jobs == 1 else "tenants"
        parts = [f"{self.counts[s]:,} {s.replace('_', ' ')}" for s in _SHOWN if self.counts.get(s)]
        script = f"dry run of {self.script}" if self.is_dry_run else self.script
        return f"{script} for {self.jobs:,} {word}: {', '.join(parts)}"


_SHOWN: tuple[JobStatus, ...] = ("succeeded", "held", "running", "queued", "cancelled", *FAILURES)


def submit_group(database: ControlDatabase, submissions: Sequence[Submission], canary: int = 0) -> int:
    """Put one job for each tenant into the queue, all or none, and return the number of new jobs.

    All submissions have the same environment, job id and group. With ``canary`` those behind the first so
    many wait until these have succeeded (``begin_rest``). Jobs that were submitted before by the same
    request stay as they are, so that the same call again adds the tenants that are new.
    """
    if not 0 < len(submissions) <= GROUP_TENANTS_MAX:
        raise InvalidOption(
            f"A job group has 1 to {GROUP_TENANTS_MAX:,} tenants, not {len(submissions):,}.",
            remedy="Select other tenants, for example by a prefix of their ids.",
        )
    first = canary or len(submissions)
    submissions = [
        *submissions[:first],
        *(replace(item, run_at=_AFTER_OTHERS) for item in submissions[first:]),
    ]
    ordered = sorted(submissions, key=lambda item: item.tenant)  # all lock lanes in the same order
    with database.begin() as connection:
        known = _jobs_by_tenant(connection, ordered[0])
        for item in ordered:
            row = known.get(item.tenant)
            if row is not None and item.incarnation and row.incarnation not in {"", item.incarnation}:
                forget_job(connection, known.pop(item.tenant))
        new = [item for item in ordered if item.tenant not in known]
        queued_max = max((item.queued_max for item in new), default=0)
        if queued_max:
            counts = select(jobs.c.lane).where(jobs.c.status == "queued").group_by(jobs.c.lane)
            full = set(connection.execute(counts.having(func.count() >= queued_max)).scalars())
            if tenants := [item.tenant for item in new if item.lane in full]:
                raise full_queue(queued_max, f"{_names(tenants)}: nothing was queued")
        now_ms = database.now_ms(connection)
        if new:
            insert_absent(
                connection, lanes, [{"name": i.lane, "running": 0, "running_max": i.running_max} for i in new]
            )
            limits = [{"lane_name": item.lane, "most": item.running_max} for item in new]
            most: BindParameter[int] = bindparam("most")
            connection.execute(
                update(lanes)
                .where(and_(lanes.c.name == bindparam("lane_name"), lanes.c.running_max != most))
                .values(running_max=most),
                limits,
            )
            insert_absent(connection, jobs, [row_of(item, now_ms) for item in new])
        stored = _jobs_by_tenant(connection, ordered[0])
        other = [item.tenant for item in ordered if stored[item.tenant].request != item.request]
        if other:
            raise IdempotencyConflict(
                f"Job {ordered[0].job_id} of {_names(other)} was submitted with another request.",
                cause="A job id names one run of each tenant. Nothing was queued.",
                remedy="Submit other work by an id of its own.",
            )
    return len(new)


def begin_rest(database: ControlDatabase, environment: str, group: str) -> int:
    """Let the jobs of a group begin that wait for its first ones, if all of these have succeeded."""
    own = (jobs.c.environment == environment, jobs.c.group == group)
    waits = jobs.c.run_at_ms == milliseconds(_AFTER_OTHERS)
    with database.begin() as connection:
        first = select(func.count()).where(*own, ~waits, jobs.c.status != "succeeded")
        if connection.execute(first).scalar_one():
            return 0
        change = update(jobs).where(*own, waits).values(run_at_ms=database.now_ms(connection))
        return connection.execute(change, execution_options={"preserve_rowcount": True}).rowcount


def _jobs_by_tenant(connection: Connection, like: Submission) -> dict[str, Row[Any]]:
    query = select(jobs).where(jobs.c.environment == like.environment, jobs.c.job_id == like.job_id)
    return {row.tenant: row for row in connection.execute(query)}


def _names(tenants: Sequence[str]) -> str:
    more = len(tenants) - _NAMED_MAX
    return ", ".join(tenants[:_NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def job_groups(
    database: ControlDatabase,
    environment: str,
    tenants: Collection[str] | None = None,
    *,
    since: datetime | None = None,
    group: str | None = None,
    limit: int = 50,
) -> tuple[JobGroup, ...]:
    """Return groups of an environment, the newest first; of each the jobs of some tenants (None: all).

    Groups without such jobs are left out. ``since`` selects groups submitted at that moment or later.
    """
    conditions = [jobs.c.environment == environment, jobs.c.group == group if group else jobs.c.group > ""]
    if tenants is not None:
        conditions.append(jobs.c.tenant.in_(tenants))
    newest = select(jobs.c.group, func.min(jobs.c.created_ms), func.min(jobs.c.sequence).label("first"))
    newest = newest.where(*conditions).group_by(jobs.c.group)
    if since is not None:
        newest = newest.having(func.min(jobs.c.created_ms) >= milliseconds(since))
    newest = newest.order_by(func.min(jobs.c.sequence).desc()).limit(limit)
    with database.read() as connection:
        found = connection.execute(newest).all()
        names, firsts = [row[0] for row in found], [row.first for row in found]
        totals = select(jobs.c.group, jobs.c.status, func.count()).group_by(jobs.c.group, jobs.c.status)
        counts: dict[str, dict[JobStatus, int]] = {name: {} for name in names}
        for name, status, count in connection.execute(totals.where(*conditions, jobs.c.group.in_(names))):
            counts[name][status] = count
        texts = select(jobs.c.sequence, jobs.c.request).where(jobs.c.sequence.in_(firsts))
        requests = {row.sequence: json.loads(row.request) for row in connection.execute(texts)}
    return tuple(
        JobGroup(name, environment, moment(created_ms), counts[name], requests[first])
        for name, created_ms, first in found
    )


def find_group(
    database: ControlDatabase, environment: str, group: str, tenants: Collection[str] | None = None
) -> JobGroup:
    """Return the group of that id."""
    for found in job_groups(database, environment, tenants, group=group, limit=1):
        return found
    raise NotFound(
        f"There is no job group {group!r} in the environment {environment!r}.",
        cause="No jobs were submitted for several tenants under that id, or they were deleted.",
        remedy="See freezeframe job list.",
        code="JOB_GROUP_NOT_FOUND",
    )


def jobs_of_group(
    database: ControlDatabase,
    environment: str,
    group: str,
    tenants: Collection[str] | None = None,
    statuses: Collection[JobStatus] = STATUSES,
) -> tuple[QueuedJob, ...]:
    """Return the group's jobs of some statuses, by tenant; only those of ``tenants`` (None: all)."""
    query = select(jobs).where(
        jobs.c.environment == environment, jobs.c.group == group, jobs.c.status.in_(statuses)
    )
    if tenants is not None:
        query = query.where(jobs.c.tenant.in_(tenants))
    with database.read() as connection:
        found = connection.execute(query.order_by(jobs.c.tenant).execution_options(yield_per=_PAGE))
        return tuple(map(job_of, found))
