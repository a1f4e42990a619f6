"""Jobs: run, list, cancel, and their logs while they are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import ConfigDict, Field

from freezeframe.asgi.caller import Caller, Calling, Environment, TenantCaller, TenantCalling, identify
from freezeframe.asgi.event_streams import event_response, events_to_openapi
from freezeframe.asgi.middleware import Closing
from freezeframe.asgi.routes.parameters import BINARY, CursorText, Limit, MomentText
from freezeframe.asgi.routes.streams import accepted_job, attachment, described_job
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, ResponseModel, api_router, example
from freezeframe.control.job import JobFilter, JobStatus, QueuedJob
from freezeframe.control.schedules import Timing
from freezeframe.errors import FreezeframeError, NotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.group_effects import DryRunChanges, dry_run_changes
from freezeframe.service.jobs import (
    Job,
    JobRequest,
    LogCursor,
    TenantJob,
    executed_notebook,
    parse_log_cursor,
    repeated_order,
)
from freezeframe.service.jobs import list_scripts as found_scripts
from freezeframe.service.schedules import Schedule, describe_schedule


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
    dry_run: bool = Field(default=False, description="Commit nothing, and say what would change.")


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


class SchedulePage(ResponseModel):
    """Schedules by tenant and name."""

    schedules: list[Schedule]
    next_cursor: str | None


class JobPage(ResponseModel):
    """Jobs, the newest first."""

    jobs: list[Job]
    next_cursor: str | None


router = api_router("jobs")
JobId = Annotated[str, Path(min_length=1, max_length=500, description="The job's id.")]
_LOOKED_EVERY_SECONDS = 0.5
_CHECKED_EVERY_SECONDS = 5.0
_OF_RUN = {"script", "flow", "parameters", "timeout_seconds", "message", "attempts_max", "dry_run"}
_COMMENT_EVERY_LOOKS = 30


@router.get(TENANT_PATH + "/jobs")
def list_jobs(
    caller: TenantCalling,
    status: Annotated[JobStatus | None, Query(description="Only jobs of this status.")] = None,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> JobPage:
    """List a tenant's jobs, the newest first."""
    caller.tenant("jobs:read")
    listing = caller.list_name("jobs", status)
    requested = JobFilter(
        environment=caller.environment, tenant=caller.tenant_id, status=status, incarnation=caller.folder()
    )
    return _job_page(caller, listing, requested, limit, cursor)


@router.post(TENANT_PATH + "/jobs", status_code=202)
def run_job(caller: TenantCalling, order: NewJob, response: Response) -> Job:
    """Run one of the service's scripts for the tenant; a worker does it, `Location` shows how far it is."""
    caller.tenant("jobs:run")
    requested = job_request(order)
    job = caller.job(caller.new_job_id(order.job_id))
    caller.service.jobs.require_place(job)
    with caller.audit_change("job.run", job.job_id, script=order.script):
        queued = caller.service.jobs.submit(job, requested, caller.who)
    return accepted_job(caller, response, queued)


def job_request(order: NewJob) -> JobRequest:
    """Return the run that the body of a request describes."""
    return JobRequest(**order.model_dump(include=_OF_RUN))


@router.get(TENANT_PATH + "/jobs/{job_id}")
def show_job(caller: TenantCalling, job_id: JobId) -> Job:
    """Show a job, and what became of it."""
    return caller.service.jobs.describe_job(_find_job(caller, job_id))


@router.post(TENANT_PATH + "/jobs/{job_id}/cancel", status_code=202)
def cancel_job(caller: TenantCalling, job_id: JobId) -> Job:
    """Ask for a job's end; one that has ended stays as it is."""
    caller.tenant("jobs:run")
    job = caller.job(job_id)
    caller.service.jobs.get(job)
    with caller.audit_change("job.cancel", job_id):
        cancelled = caller.service.jobs.cancel(job)
    return described_job(caller, cancelled)


@router.get(
    TENANT_PATH + "/jobs/{job_id}/logs",
    response_class=StreamingResponse,
    responses={200: events_to_openapi(line=None, status=None)},
)
def follow_logs(
    request: Request,
    caller: TenantCalling,
    job_id: JobId,
    last_event_id: Annotated[str | None, Header(description="Go on after this event.")] = None,
) -> Any:
    """Follow a job's log as server-sent events, to its end.

    Each `line` has the place behind it in the log as its id; `status` tells what the job has become, and
    the one that is final is the last event.
    """
    _find_job(caller, job_id)
    cursor = parse_log_cursor(last_event_id) if last_event_id else LogCursor()
    events = _events(request, caller, caller.job(job_id), cursor)
    return event_response(caller.service.streams, caller.principal, events)


async def _events(
    request: Request, caller: TenantCaller, job: TenantJob, cursor: LogCursor
) -> AsyncIterator[bytes]:
    """Send the log from a position on, until the job has ended and all is sent, or the key has ended."""
    closing: Closing = request.app.state.closing
    now = asyncio.get_running_loop().time
    status, looks, checked = "", 0, now()
    while True:
        if now() - checked >= _CHECKED_EVERY_SECONDS:
            if not await run_in_threadpool(_may_still_read, request, caller):
                return
            checked = now()
        try:
            queued = await run_in_threadpool(caller.service.jobs.get, job)
            lines, cursor = await run_in_threadpool(caller.service.jobs.log_lines, queued, cursor)
        except FreezeframeError:
            return  # deleted with its tenant, or unreadable for now: followers reconnect
        for line, behind in lines:
            yield format_sse_event(event="line", data_str=line, id=str(behind))
        if queued.status != status:
            status = queued.status
            yield format_sse_event(event="status", data_str=status)
        if queued.is_final and not lines:
            return
        looks += 1
        if looks % _COMMENT_EVERY_LOOKS == 0:
            yield format_sse_event(comment="still here")
        if not lines and await closing.wait(_LOOKED_EVERY_SECONDS):
            return


def _may_still_read(request: Request, caller: TenantCaller) -> bool:
    """Return whether the key or session is still valid, and may still read the tenant's jobs."""
    try:
        access = caller.service.access(identify(request))
        access.require(caller.environment, caller.tenant_id, "jobs:read")
    except FreezeframeError:
        return False
    return True


def _find_job(caller: TenantCaller, job_id: str) -> QueuedJob:
    caller.tenant("jobs:read")
    return caller.service.jobs.get(caller.job(job_id))


_NOTEBOOK = "application/x-ipynb+json"


@router.post(TENANT_PATH + "/jobs/{job_id}/repetitions", status_code=202)
def repeat_job(caller: TenantCalling, job_id: JobId, response: Response) -> Job:
    """Run a job again that has ended: the same script and parameters, under an id of its own."""
    caller.tenant("jobs:run")
    past = caller.service.jobs.get(caller.job(job_id))
    order = repeated_order(past, caller.service.settings)
    job = caller.job(caller.new_job_id())
    caller.service.jobs.require_place(job)
    with caller.audit_change("job.run", job.job_id, script=order.script, repeats=job_id):
        queued = caller.service.jobs.submit(job, order, caller.who)
    return accepted_job(caller, response, queued)


@router.post(TENANT_PATH + "/jobs/{job_id}/dry-runs", status_code=202)
def dry_run_job(caller: TenantCalling, job_id: JobId, response: Response) -> Job:
    """Run the request of a job that has ended once more, as a dry run: it says what the job would change."""
    caller.tenant("jobs:run")
    past = caller.service.jobs.get(caller.job(job_id))
    job = caller.job(caller.new_job_id())
    caller.service.jobs.require_place(job)
    with caller.audit_change("job.run", job.job_id, dry_run=True, repeats=job_id):
        queued = caller.service.jobs.dry_run_again(job, past, caller.who)
    return accepted_job(caller, response, queued)


@router.get(TENANT_PATH + "/jobs/{job_id}/changes")
def show_changes(caller: TenantCalling, job_id: JobId) -> DryRunChanges:
    """Show rows and lines of files that a dry run would change; empty for any other job."""
    caller.tenant("snapshots:read")
    return dry_run_changes(_find_job(caller, job_id), caller.service.settings)


@router.get(
    TENANT_PATH + "/jobs/{job_id}/notebook",
    response_class=Response,
    responses={200: {"content": {_NOTEBOOK: BINARY}}},
)
def download_notebook(caller: TenantCalling, job_id: JobId) -> Any:
    """Download a job's notebook as it was executed, with what its cells showed."""
    job = _find_job(caller, job_id)
    notebook = executed_notebook(job, caller.service.settings)
    try:
        with notebook.open() as file:
            content = file.read()
    except OSError as error:
        raise NotFound(
            f"The notebook of the job {job_id!r} cannot be read.",
            cause=str(error.strerror),
            remedy="Read the job's log.",
        ) from error
    headers = {"Content-Disposition": attachment(notebook.name.rpartition("/")[2])}
    return Response(content, media_type=_NOTEBOOK, headers=headers)


@router.get("/environments/{environment}/jobs")
def list_all_jobs(
    caller: Calling,
    environment: Environment,
    tenant: Annotated[str | None, Query(max_length=200, description="Only of this tenant.")] = None,
    status: Annotated[JobStatus | None, Query(description="Only jobs of this status.")] = None,
    job_id: Annotated[str | None, Query(max_length=500, description="Only jobs of this id.")] = None,
    group: Annotated[
        str | None, Query(max_length=500, description="Only jobs of this group, failed ones first.")
    ] = None,
    since: Annotated[
        MomentText | None, Query(description="Submitted from this moment on (RFC 3339).")
    ] = None,
    until: Annotated[MomentText | None, Query(description="Submitted before this moment.")] = None,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> JobPage:
    """List the jobs of all tenants that are the caller's business, the newest first."""
    caller.principal.require("jobs:read")
    listing = f"jobs\n{environment!r}\n{_id(tenant)!r}\n{status}\n{job_id!r}\n{group!r}\n{since}\n{until}"
    tenants = visible_tenants(caller, environment, tenant)
    requested = JobFilter(
        environment=environment,
        tenants=tenants,
        status=status,
        job_id=job_id,
        group=group,
        since=since,
        until=until,
    )
    return _job_page(caller, listing, requested, limit, cursor)


def _id(tenant: str | None) -> TenantId | None:
    return None if tenant is None else TenantId(tenant)


def visible_tenants(
    caller: Caller, environment: EnvironmentName, tenant: str | None = None
) -> frozenset[TenantId] | None:
    """Return the tenants whose jobs the caller may list, of them only ``tenant`` if named; None means all."""
    requested = _id(tenant)
    if not caller.principal.sees_environment(environment):
        return frozenset()
    if requested is None:
        return caller.principal.tenants
    return frozenset({requested} if caller.principal.sees(environment, requested) else ())


def _job_page(caller: Caller, listing: str, requested: JobFilter, limit: int, cursor: str | None) -> JobPage:
    cursors = caller.service.cursors
    page = caller.service.queue.list(requested, limit=limit, cursor=cursors.read(listing, cursor))
    shown = filter(caller.service.stores.is_current, page.jobs)
    return JobPage(
        jobs=list(map(caller.service.jobs.describe_job, shown)),
        next_cursor=cursors.encode(listing, page.next_cursor),
    )


@router.get("/scripts")
def list_scripts(caller: Calling) -> ScriptList:
    """List the scripts in the service's folder by name, at most 500, with the parameters they declare."""
    caller.principal.require("jobs:run")
    scripts = found_scripts(caller.service.settings.service_scripts_dir)
    return ScriptList(
        scripts=[Script.of(item.header, script=item.name, problem=item.problem or None) for item in scripts]
    )


Name = Annotated[str, Path(min_length=1, max_length=200, description="The schedule's name.")]
_ONE = f"{TENANT_PATH}/schedules/{{schedule}}"


@router.get("/environments/{environment}/schedules")
def list_schedules(
    caller: Calling,
    environment: Environment,
    tenant: Annotated[str | None, Query(max_length=200, description="Only of this tenant.")] = None,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> SchedulePage:
    """List the schedules of all tenants that are the caller's business, by tenant and name."""
    caller.principal.require("jobs:read")
    cursors, listing = caller.service.cursors, f"schedules\n{environment!r}\n{_id(tenant)!r}"
    tenants = visible_tenants(caller, environment, tenant)
    tenant_before, name_before = cursors.read(listing, cursor) or ("", "")
    page = caller.service.schedules.page(environment, tenants, limit, (tenant_before, name_before))
    return SchedulePage(
        schedules=[describe_schedule(item, page.last_job(item)) for item in page.schedules],
        next_cursor=cursors.encode(listing, page.next_after),
    )


@router.post(TENANT_PATH + "/schedules", status_code=201)
def create_schedule(caller: TenantCalling, order: NewSchedule) -> Schedule:
    """Let one of the service's scripts be run for the tenant whenever it is due."""
    caller.tenant("jobs:run")
    requested, timing = job_request(order), Timing(order.cron, order.zone)
    with caller.audit_change("schedule.create", order.name, script=order.script, cron=order.cron):
        made = caller.service.schedules.create(
            caller.job(order.name), requested, timing, order.missed, caller.who
        )
    return describe_schedule(made)


@router.patch(_ONE)
def change_schedule(caller: TenantCalling, schedule: Name, change: ScheduleChange) -> Schedule:
    """Pause a schedule, or let it come due again from now on; its jobs are not concerned."""
    caller.tenant("jobs:run")
    named = caller.job(schedule)
    caller.service.schedules.get(named)
    with caller.audit_change("schedule.change", schedule, enabled=change.enabled):
        changed = caller.service.schedules.enable(named, is_enabled=change.enabled)
    return describe_schedule(changed)


@router.delete(_ONE, status_code=204)
def delete_schedule(caller: TenantCalling, schedule: Name) -> Response:
    """Remove a schedule; its jobs stay."""
    caller.tenant("jobs:run")
    named = caller.job(schedule)
    caller.service.schedules.get(named)
    with caller.audit_change("schedule.delete", schedule):
        caller.service.schedules.delete(named)
    return Response(status_code=204)


@router.post(f"{_ONE}/runs", status_code=202)
def run_schedule(caller: TenantCalling, schedule: Name, response: Response) -> Job:
    """Run what a schedule runs once now, whether or not it is due."""
    caller.tenant("jobs:run")
    named = caller.job(schedule)
    caller.service.schedules.get(named)
    job_id = caller.new_job_id()
    with caller.audit_change("job.run", job_id, schedule=schedule):
        queued = caller.service.schedules.run_now(named, job_id)
    return accepted_job(caller, response, queued)
