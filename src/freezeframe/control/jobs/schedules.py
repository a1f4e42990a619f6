"""The schedules of a control database, and the jobs that they make.

Any number of workers may look for due times at once: a due time and its job are one transaction, and
the job's id is made of both, so each due time makes one job.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, delete, exists, select, tuple_, update

from freezeframe.clock import moment
from freezeframe.control.database.database import ControlDatabase, insert_if_absent, milliseconds
from freezeframe.control.jobs.job import QueuedJob
from freezeframe.control.jobs.schedule import Schedule, ScheduleRequest
from freezeframe.control.jobs.submission import insert_job
from freezeframe.control.jobs.timing import Timing
from freezeframe.control.tables import schedules
from freezeframe.errors import ConflictError, NotFound


class Schedules:
    """Schedules by environment, tenant and name."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database

    def create(self, asked: ScheduleRequest) -> Schedule:
        """Keep a new schedule, enabled; its first run is at the next due time."""
        with self._database.begin() as connection:
            now_ms = self._database.now_ms(connection)
            made = insert_if_absent(
                connection,
                schedules,
                {
                    "environment": asked.environment,
                    "tenant": asked.tenant,
                    "name": asked.name,
                    "cron": asked.timing.cron,
                    "zone": asked.timing.zone,
                    "missed": asked.missed,
                    "request": asked.request,
                    "priority": asked.priority,
                    "attempts_max": asked.attempts_max,
                    "running_max": asked.running_max,
                    "is_enabled": True,
                    "created_ms": now_ms,
                    "next_due_ms": _next_due_ms(asked.timing, now_ms),
                    "incarnation": asked.incarnation,
                },
            )
            if not made:
                raise ConflictError(
                    f"Tenant {asked.tenant} has a schedule {asked.name} already.",
                    remedy="Choose another name, or delete that one first.",
                )
            return _find(connection, asked.environment, asked.tenant, asked.name)

    def get(self, environment: str, tenant: str, name: str) -> Schedule:
        """The schedule of that name."""
        with self._database.read() as connection:
            return _find(connection, environment, tenant, name)

    def list(
        self,
        *,
        environment: str | None = None,
        tenant: str | None = None,
        tenants: Collection[str] | None = None,
        after: tuple[str, str] = ("", ""),
        limit: int | None = None,
    ) -> tuple[Schedule, ...]:
        """All schedules, or those of an environment, a tenant or some, by tenant and name.

        ``after`` is the tenant and the name that the ones before ended with.
        """
        query = select(schedules).order_by(schedules.c.environment, schedules.c.tenant, schedules.c.name)
        if environment is not None:
            query = query.where(schedules.c.environment == environment)
        if tenant is not None:
            query = query.where(schedules.c.tenant == tenant)
        if tenants is not None:
            query = query.where(schedules.c.tenant.in_(tenants))
        if any(after):
            query = query.where(tuple_(schedules.c.tenant, schedules.c.name) > tuple_(*after))
        if limit is not None:
            query = query.limit(limit)
        with self._database.read() as connection:
            return tuple(_schedule(row) for row in connection.execute(query))

    def enable(self, environment: str, tenant: str, name: str) -> Schedule:
        """Let it come due again, from now on: what it missed while it was disabled is not made up for."""
        return self._set(environment, tenant, name, is_enabled=True)

    def disable(self, environment: str, tenant: str, name: str) -> Schedule:
        """Let it rest; jobs that it has made are not concerned."""
        return self._set(environment, tenant, name, is_enabled=False)

    def delete(self, environment: str, tenant: str, name: str) -> None:
        """Remove it; jobs that it has made are not concerned."""
        with self._database.begin() as connection:
            found = _find(connection, environment, tenant, name)
            connection.execute(delete(schedules).where(schedules.c.sequence == found.sequence))

    def forget(self, environment: str, tenant: str) -> tuple[str, ...]:
        """Remove all of a tenant's, which is about to be deleted; their names."""
        own = (schedules.c.environment == environment, schedules.c.tenant == tenant)
        with self._database.begin() as connection:
            gone = connection.execute(delete(schedules).where(*own).returning(schedules.c.name))
            return tuple(sorted(gone.scalars()))

    def end_with_tenant(self, job: QueuedJob) -> bool:
        """Remove the schedule that made the job, whose tenant is gone; whether it was there still."""
        own = (
            schedules.c.environment == job.environment,
            schedules.c.tenant == job.tenant,
            schedules.c.name == job.schedule,
            # One created for a later tenant of the same id stays.
            schedules.c.incarnation == job.incarnation,
        )
        with self._database.begin() as connection:
            return bool(connection.execute(delete(schedules).where(*own)).rowcount)

    def submit_due(self) -> tuple[QueuedJob, ...]:
        """Put the jobs of all due times that have come into the queue, and return those.

        Each due time makes one job, whoever else asks at the same moment.
        """
        made: tuple[QueuedJob, ...] = ()
        # Mostly nothing is due, which a read without a lock shows.
        while self._any_due():
            found = self._submit_next()
            if found is None:
                break
            made += found
        return made

    def _any_due(self) -> bool:
        with self._database.read() as connection:
            due = exists().where(
                schedules.c.is_enabled, schedules.c.next_due_ms <= self._database.now_ms(connection)
            )
            return bool(connection.execute(select(due)).scalar_one())

    def _submit_next(self) -> tuple[QueuedJob, ...] | None:
        with self._database.begin() as connection:
            now_ms = self._database.now_ms(connection)
            row = connection.execute(
                select(schedules)
                .where(schedules.c.is_enabled, schedules.c.next_due_ms <= now_ms)
                .order_by(schedules.c.next_due_ms, schedules.c.sequence)
                .limit(1)
                .with_for_update(skip_locked=True)
            ).one_or_none()
            if row is None:
                return None
            asked = _schedule(row).asked
            due = asked.timing.due(moment(row.next_due_ms), moment(now_ms), asked.missed)
            connection.execute(
                update(schedules)
                .where(schedules.c.sequence == row.sequence)
                .values(
                    next_due_ms=_next_due_ms(asked.timing, now_ms),
                    last_due_ms=milliseconds(due[-1]) if due else row.last_due_ms,
                )
            )
            return tuple(insert_job(connection, asked.submission(row.sequence, item), now_ms) for item in due)

    def _set(self, environment: str, tenant: str, name: str, *, is_enabled: bool) -> Schedule:
        with self._database.begin() as connection:
            found = _find(connection, environment, tenant, name)
            if found.is_enabled == is_enabled:
                return found
            now_ms = self._database.now_ms(connection)
            next_due_ms = _next_due_ms(found.asked.timing, now_ms) if is_enabled else None
            connection.execute(
                update(schedules)
                .where(schedules.c.sequence == found.sequence)
                .values(is_enabled=is_enabled, next_due_ms=next_due_ms)
            )
            return _find(connection, environment, tenant, name)


def _find(connection: Connection, environment: str, tenant: str, name: str) -> Schedule:
    row = connection.execute(
        select(schedules).where(
            schedules.c.environment == environment, schedules.c.tenant == tenant, schedules.c.name == name
        )
    ).one_or_none()
    if row is None:
        raise NotFound(
            f"Tenant {tenant} has no schedule {name}.",
            remedy="See freezeframe schedule list.",
            code="SCHEDULE_NOT_FOUND",
        )
    return _schedule(row)


def _schedule(row: Row[Any]) -> Schedule:
    asked = ScheduleRequest(
        row.name,
        row.environment,
        row.tenant,
        Timing(row.cron, row.zone),
        row.request,
        missed=row.missed,
        priority=row.priority,
        attempts_max=row.attempts_max,
        running_max=row.running_max,
        incarnation=row.incarnation,
    )
    return Schedule(
        row.sequence,
        asked,
        row.is_enabled,
        moment(row.created_ms),
        None if row.next_due_ms is None else moment(row.next_due_ms),
        None if row.last_due_ms is None else moment(row.last_due_ms),
    )


def _next_due_ms(timing: Timing, now_ms: int) -> int | None:
    found = timing.next_after(moment(now_ms))
    return None if found is None else milliseconds(found)
