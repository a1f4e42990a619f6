"""Jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example
from freezeframe.control.job import JobStatus


class NewJob(RequestModel):
    """A script that is to be run for the tenant; the same `job_id` again is answered and not run again."""

    model_config = ConfigDict(
        json_schema_extra=example(script="etl.py", flow="FZev7QqK-", parameters={"full": False})
    )

    script: str = Field(
        min_length=1, max_length=800, description="A file in the service's folder of scripts."
    )
    job_id: str | None = Field(default=None, min_length=1, max_length=200)
    flow: str = Field(default="", max_length=200)
    parameters: dict[str, str | int | float | bool | None] = Field(default_factory=dict, max_length=100)
    timeout_seconds: float | None = Field(default=None, gt=0, le=604_800)
    attempts_max: int = Field(default=3, ge=1, le=10)
    message: str = Field(default="", max_length=1000)


class NewSchedule(NewJob):
    """A script that is to be run for the tenant whenever it is due."""

    model_config = ConfigDict(json_schema_extra=example(name="nightly", script="etl.py", cron="0 6 * * 1-5"))

    name: str = Field(min_length=1, max_length=200)
    cron: str = Field(min_length=1, max_length=200, description="Five fields as in cron, or `@daily`.")
    zone: str = Field(default="UTC", min_length=1, max_length=100, description="An IANA time zone.")
    missed: Literal["latest", "all"] = Field(
        default="latest", description="What is run of the times at which no worker was there."
    )


class ScriptParameter(ResponseModel):
    """A parameter that a script declares; without `choices` any value of the type may be given."""

    name: str
    type: Literal["text", "integer", "number", "boolean"]
    default: str | int | float | bool | None
    description: str
    choices: list[str | int | float | bool]
    is_required: bool


class Script(ResponseModel):
    """A script that jobs may run; `parameters` is null where it declares none, and takes any."""

    script: str
    description: str
    parameters: list[ScriptParameter] | None
    problem: str | None = Field(description="Why its header cannot be read, if it cannot.")


class ScriptList(ResponseModel):
    """The scripts in the service's folder."""

    scripts: list[Script]


class ScheduleChange(RequestModel):
    """Whether the schedule comes due."""

    enabled: bool


class Schedule(ResponseModel):
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
    next_runs: list[datetime] = Field(description="The next three times.")


class SchedulePage(ResponseModel):
    """Schedules by tenant and name."""

    schedules: list[Schedule]
    next_cursor: str | None


class Job(ResponseModel):
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
    is_repeatable: bool = Field(description="Whether the service can run it again under another id.")
    worker: str | None
    created: datetime
    run_at: datetime | None
    started: datetime | None
    finished: datetime | None
    outcome: dict[str, Any] | None


class JobPage(ResponseModel):
    """Jobs, the newest first."""

    jobs: list[Job]
    next_cursor: str | None
