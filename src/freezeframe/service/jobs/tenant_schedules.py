"""Schedules as the service sees them: of scripts in its own folder, for tenants that are there."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from freezeframe.control.job import QueuedJob
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import Missed, Schedule, ScheduleRequest, Schedules, Timing
from freezeframe.control.submission import Submission
from freezeframe.errors import ConflictError, NotFound
from freezeframe.identifiers import EnvironmentName
from freezeframe.service.access.access import Stores
from freezeframe.service.jobs.jobs import JobRequest, TenantJob, TenantJobs

_NEXT_SHOWN = 3


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Some schedules, and the tenant and name after which the next page begins (None: there is none)."""

    schedules: tuple[Schedule, ...]
    next_after: tuple[str, str] | None


class TenantSchedules:
    """The schedules of one service; who may do what with them is the caller's business.

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
        """The schedules of an environment's tenants (None: of all), by tenant and name."""
        found = self._schedules.list(environment=environment, tenants=tenants, after=after, limit=limit + 1)
        last = found[limit - 1].asked if len(found) > limit else None
        folder = self._stores.environment(environment).folder
        shown = (item for item in found[:limit] if item.asked.incarnation in {"", folder(item.asked.tenant)})
        return SchedulePage(tuple(shown), None if last is None else (last.tenant, last.name))

    def create(
        self, named: TenantJob, order: JobRequest, timing: Timing, missed: Missed, who: str
    ) -> Schedule:
        """Keep a new schedule of a script; its first run is at the next due time.

        One that was made of the same order before stays as it is, and is given.
        """
        request = self._jobs.run_request(named, order, who)
        asked = ScheduleRequest(
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
        try:
            return self._schedules.create(asked)
        except ConflictError:
            found = self._schedules.get(named.environment, named.tenant, named.job_id)
            if found.asked != asked:
                raise
            return found

    def get(self, named: TenantJob) -> Schedule:
        """The schedule."""
        found = self._schedules.get(named.environment, named.tenant, named.job_id)
        if found.asked.incarnation not in {"", named.folder}:
            raise NotFound(
                f"The tenant has no schedule {named.job_id!r}.",
                cause="It is one of a tenant that had the id before.",
                remedy="Make one.",
                code="SCHEDULE_NOT_FOUND",
            )
        return found

    def enable(self, named: TenantJob, *, is_enabled: bool) -> Schedule:
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
        asked = self.get(named).asked
        job = replace(named, job_id=job_id)
        request = {**json.loads(asked.request), "job_id": job.job_id}
        return self._queue.submit(
            Submission(
                json.dumps(request),
                environment=job.environment,
                tenant=job.tenant,
                job_id=job.job_id,
                attempts_max=asked.attempts_max,
                priority=asked.priority,
                running_max=asked.running_max,
                incarnation=asked.incarnation,
                queued_max=self._jobs.queued_max,
            )
        )


def describe_schedule(schedule: Schedule) -> dict[str, Any]:
    """A schedule's fields, its script's name, and its next due times."""
    script = str(json.loads(schedule.asked.request).get("script") or "")
    due: list[datetime] = [] if schedule.next_due is None else [schedule.next_due]
    while due and len(due) < _NEXT_SHOWN and (later := schedule.asked.timing.next_after(due[-1])):
        due.append(later)
    return {**schedule.to_json(), "script": script.rpartition("/")[2], "next_runs": due}
