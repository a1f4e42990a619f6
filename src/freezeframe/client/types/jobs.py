"""What the service says and is told of jobs.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

JobStatus = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "dead"]


class Job(TypedDict):
    """A job at this moment."""

    job_id: str
    environment: str
    tenant: str
    status: JobStatus
    schedule: str | None
    priority: int
    attempts: int
    attempts_max: int
    cancel_requested: bool
    is_repeatable: bool
    worker: str | None
    created: str
    run_at: str | None
    started: str | None
    finished: str | None
    outcome: dict[str, Any] | None


class JobPage(TypedDict):
    """Jobs, the newest first."""

    jobs: list[Job]
    next_cursor: str | None


class NewJob(TypedDict):
    """A script that is to be run for the tenant."""

    script: str
    job_id: NotRequired[str | None]
    flow: NotRequired[str]
    parameters: NotRequired[dict[str, str | int | float | bool | None]]
    timeout_seconds: NotRequired[float | None]
    attempts_max: NotRequired[int]
    message: NotRequired[str]


class NewSchedule(NewJob):
    """A script that is to be run for the tenant whenever it is due."""

    name: str
    cron: str
    zone: NotRequired[str]
    missed: NotRequired[Literal["latest", "all"]]


class Schedule(TypedDict):
    """A schedule at this moment; ``next_due`` is null while it is paused."""

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
    created: str
    next_due: str | None
    last_due: str | None
    next_runs: list[str]


class ScheduleChange(TypedDict):
    """Whether the schedule comes due."""

    enabled: bool


class SchedulePage(TypedDict):
    """Schedules by tenant and name."""

    schedules: list[Schedule]
    next_cursor: str | None


class Script(TypedDict):
    """A script that jobs may run; ``parameters`` is null where it declares none, and takes any."""

    script: str
    description: str
    parameters: list[ScriptParameter] | None
    problem: str | None


class ScriptList(TypedDict):
    """The scripts in the service's folder."""

    scripts: list[Script]


class ScriptParameter(TypedDict):
    """A parameter that a script declares; without ``choices`` any value of the type may be given."""

    name: str
    type: Literal["text", "integer", "number", "boolean"]
    default: str | int | float | bool | None
    description: str
    choices: list[str | int | float | bool]
    is_required: bool
