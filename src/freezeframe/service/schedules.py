"""Schedules of tenants: scripts of the service's folder that run whenever they are due."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from freezeframe.control.job import JobStatus, QueuedJob, script_name
from freezeframe.control.queue import JobQueue, scheduled_jobs
from freezeframe.control.schedules import Missed, ScheduleRequest, Schedules, Timing
from freezeframe.control.schedules import Schedule as StoredSchedule
from freezeframe.errors import NotFound
from freezeframe.identifiers import EnvironmentName
from freezeframe.service.access.access import Stores
from freezeframe.service.jobs import JobRequest, TenantJob, TenantJobs

_NEXT_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """The job that a schedule submitted last."""

    job_id: str
    status: JobStatus
    created: datetime
    finished: datetime | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule at this moment; `next_due` is null while it is paused."""

    name: str
    environment: str
    tenant: str
    script: str
    cron: str
    zone: str
    missed: str
    priority: int
    attempts_max: int
    enabled: bool
    created: datetime
    next_due: datetime | None
    last_due: datetime | None
    next_runs: Annotated[tuple[datetime, ...], Field(description="The next three times.")]
    last_job: Annotated[ScheduledJob | None, Field(description="In a list: what came of its last run.")]


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Some schedules, and the tenant and name after which the next page begins (None: there is none)."""

    schedules: tuple[StoredSchedule, ...]
    next_after: tuple[str, str] | None
    jobs: Mapping[tuple[str, str], QueuedJob]

    def last_job(self, schedule: StoredSchedule) -> QueuedJob | None:
        """Return the job that a schedule of the page submitted last."""
        found = self.jobs.get((schedule.definition.tenant, schedule.definition.name))
        return found if found is not None and found.incarnation == schedule.definition.incarnation else None


class TenantSchedules:
    """The schedules of one service; the caller checks permissions.

    A schedule is named by a ``TenantJob`` whose ``job_id`` is the schedule's name.
    """

    def __init__(self, schedules: Schedules, queue: JobQueue, jobs: TenantJobs, stores: Stores) -> None:
        self._schedules = schedules
        self._queue = queue
        self._jobs = jobs
        self._stores = stores

    def page(
        self,
        environment: EnvironmentName,
        tenants: Collection[str] | None,
        limit: int,
        after: tuple[str, str] = ("", ""),
    ) -> SchedulePage:
        """Return the schedules of an environment's tenants (None: of all), by tenant and name."""
        found = self._schedules.list(environment=environment, tenants=tenants, after=after, limit=limit + 1)
        last = found[limit - 1].definition if len(found) > limit else None
        folder = self._stores.environment(environment).folder
        shown = tuple(
            item
            for item in found[:limit]
            if item.definition.incarnation in {"", folder(item.definition.tenant)}
        )
        names = {item.definition.tenant for item in shown}
        newest = scheduled_jobs(self._queue.database, environment, names)
        return SchedulePage(shown, None if last is None else (last.tenant, last.name), newest)

    def create(
        self, named: TenantJob, order: JobRequest, timing: Timing, missed: Missed, who: str
    ) -> StoredSchedule:
        """Keep a new schedule of a script; its first run is at the next due time.

        One that was made of the same order before stays as it is, and is given.
        """
        request = self._jobs.run_request(named, order, who)
        definition = ScheduleRequest(
            named.job_id,
            named.environment,
            named.tenant,
            timing,
            json.dumps(request.to_json()),
            missed=missed,
            attempts_max=order.attempts_max,
            running_max=self._jobs.running_max,
            incarnation=named.folder,
        )
        return self._schedules.create(definition)[0]

    def get(self, named: TenantJob) -> StoredSchedule:
        """Return the schedule."""
        found = self._schedules.get(named.environment, named.tenant, named.job_id)
        if found.definition.incarnation not in {"", named.folder}:
            raise NotFound(
                f"The tenant has no schedule {named.job_id!r}.",
                cause="It belonged to a deleted tenant with the same id.",
                remedy="Make one.",
                code="SCHEDULE_NOT_FOUND",
            )
        return found

    def enable(self, named: TenantJob, *, is_enabled: bool) -> StoredSchedule:
        """Let the schedule come due again from now on, or rest; errors as of ``get``."""
        self.get(named)
        change = self._schedules.enable if is_enabled else self._schedules.disable
        return change(named.environment, named.tenant, named.job_id)

    def delete(self, named: TenantJob) -> None:
        """Remove the schedule; its jobs stay. Errors as of ``get``."""
        self.get(named)
        self._schedules.delete(named.environment, named.tenant, named.job_id)

    def run_now(self, named: TenantJob, job_id: str) -> QueuedJob:
        """Put one run of the schedule into the queue, whatever its times; errors as of ``get``."""
        submission = self.get(named).definition.submission(job_id, datetime.now(UTC))
        return self._queue.submit(replace(submission, queued_max=self._jobs.queued_max))


def describe_schedule(schedule: StoredSchedule, last: QueuedJob | None = None) -> Schedule:
    """Return a schedule as callers see it, with its script's name and next due times."""
    definition, due = schedule.definition, [] if schedule.next_due is None else [schedule.next_due]
    while due and len(due) < _NEXT_SHOWN and (later := definition.timing.next_after(due[-1])):
        due.append(later)
    names = ("name", "environment", "tenant", "missed", "priority", "attempts_max")
    return Schedule(
        **{name: getattr(definition, name) for name in names},
        script=script_name(json.loads(definition.request)),
        cron=definition.timing.cron,
        zone=definition.timing.zone,
        enabled=schedule.is_enabled,
        created=schedule.created,
        next_due=schedule.next_due,
        last_due=schedule.last_due,
        next_runs=tuple(due),
        last_job=None
        if last is None
        else ScheduledJob(last.job_id, last.status, last.created, last.finished),
    )
