"""The service's operations on jobs.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast

from freezeframe.client.connection import TENANT, Connection, path_of
from freezeframe.client.types import (
    Job,
    JobPage,
    NewJob,
    NewSchedule,
    Schedule,
    ScheduleChange,
    SchedulePage,
    ScriptList,
)


class JobsOperations:
    """Operations on jobs; see ``Client``."""

    _connection: Connection

    def list_all_jobs(
        self,
        environment: str,
        *,
        tenant: str | None = None,
        status: Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "dead"]
        | None = None,
        job_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> JobPage:
        """List the jobs of all tenants that are the caller's business, the newest first."""
        place = path_of("/api/v1/environments/{environment}/jobs", environment)
        query = {"tenant": tenant, "status": status, "job_id": job_id, "limit": limit, "cursor": cursor}
        return cast("JobPage", self._connection.json("GET", place, query=query))

    def list_schedules(
        self,
        environment: str,
        *,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> SchedulePage:
        """List the schedules of all tenants that are the caller's business, by tenant and name."""
        place = path_of("/api/v1/environments/{environment}/schedules", environment)
        query = {"tenant": tenant, "limit": limit, "cursor": cursor}
        return cast("SchedulePage", self._connection.json("GET", place, query=query))

    def list_jobs(
        self,
        environment: str,
        tenant: str,
        *,
        status: Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "dead"]
        | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> JobPage:
        """List a tenant's jobs, the newest first."""
        place = path_of(TENANT + "/jobs", environment, tenant)
        query = {"status": status, "limit": limit, "cursor": cursor}
        return cast("JobPage", self._connection.json("GET", place, query=query))

    def run_job(
        self, environment: str, tenant: str, body: NewJob, *, idempotency_key: str | None = None
    ) -> Job:
        """Run one of the service's scripts for the tenant.

        A worker does it, `Location` shows how far it is.
        """
        place = path_of(TENANT + "/jobs", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("Job", self._connection.json("POST", place, headers=headers, body=body))

    def show_job(self, environment: str, tenant: str, job_id: str) -> Job:
        """Show a job, and what became of it."""
        place = path_of(TENANT + "/jobs/{job_id}", environment, tenant, job_id)
        return cast("Job", self._connection.json("GET", place))

    def cancel_job(
        self, environment: str, tenant: str, job_id: str, *, idempotency_key: str | None = None
    ) -> Job:
        """Ask for a job's end; one that has ended stays as it is."""
        place = path_of(TENANT + "/jobs/{job_id}/cancel", environment, tenant, job_id)
        headers = {"idempotency-key": idempotency_key}
        return cast("Job", self._connection.json("POST", place, headers=headers))

    def follow_logs(
        self, environment: str, tenant: str, job_id: str, *, last_event_id: str | None = None
    ) -> Iterator[str]:
        """Follow a job's log as server-sent events, to its end.

        Each `line` has the place behind it in the log as its id; `status` tells what the job has
        become, and the one that is final is the last event.
        """
        place = path_of(TENANT + "/jobs/{job_id}/logs", environment, tenant, job_id)
        headers = {"last-event-id": last_event_id}
        return self._connection.lines("GET", place, headers=headers)

    def download_notebook(self, environment: str, tenant: str, job_id: str) -> bytes:
        """Download a job's notebook as it was executed, with what its cells showed."""
        place = path_of(TENANT + "/jobs/{job_id}/notebook", environment, tenant, job_id)
        return self._connection.content("GET", place)

    def repeat_job(
        self, environment: str, tenant: str, job_id: str, *, idempotency_key: str | None = None
    ) -> Job:
        """Run a job again that has ended: the same script and parameters, under an id of its own."""
        place = path_of(TENANT + "/jobs/{job_id}/repetitions", environment, tenant, job_id)
        headers = {"idempotency-key": idempotency_key}
        return cast("Job", self._connection.json("POST", place, headers=headers))

    def create_schedule(
        self, environment: str, tenant: str, body: NewSchedule, *, idempotency_key: str | None = None
    ) -> Schedule:
        """Let one of the service's scripts be run for the tenant whenever it is due."""
        place = path_of(TENANT + "/schedules", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("Schedule", self._connection.json("POST", place, headers=headers, body=body))

    def change_schedule(self, environment: str, tenant: str, schedule: str, body: ScheduleChange) -> Schedule:
        """Pause a schedule, or let it come due again from now on; its jobs are not concerned."""
        place = path_of(TENANT + "/schedules/{schedule}", environment, tenant, schedule)
        return cast("Schedule", self._connection.json("PATCH", place, body=body))

    def delete_schedule(self, environment: str, tenant: str, schedule: str) -> dict[str, str]:
        """Remove a schedule; its jobs stay."""
        place = path_of(TENANT + "/schedules/{schedule}", environment, tenant, schedule)
        return self._connection.headers("DELETE", place)

    def run_schedule(
        self, environment: str, tenant: str, schedule: str, *, idempotency_key: str | None = None
    ) -> Job:
        """Run what a schedule runs once now, whether or not it is due."""
        place = path_of(TENANT + "/schedules/{schedule}/runs", environment, tenant, schedule)
        headers = {"idempotency-key": idempotency_key}
        return cast("Job", self._connection.json("POST", place, headers=headers))

    def list_scripts(self) -> ScriptList:
        """List the scripts in the service's folder by name, at most 500, with the parameters they declare."""
        place = path_of("/api/v1/scripts")
        return cast("ScriptList", self._connection.json("GET", place))
