"""Jobs: run, list, cancel, and their logs while they are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from freezeframe.asgi.authentication import identify
from freezeframe.asgi.dependencies.caller import TenantCaller, TenantCalling
from freezeframe.asgi.event_response import event_response, events_to_openapi
from freezeframe.asgi.middleware.closing import Closing
from freezeframe.asgi.models.jobs import Job, JobPage, NewJob
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.routing import CursorText, Limit, tenant_router
from freezeframe.asgi.routes.streams import attachment, job_location
from freezeframe.control.job import JobFilter, JobStatus
from freezeframe.errors import FreezeframeError, NotFound
from freezeframe.service.jobs.jobs import (
    JobRequest,
    LogPlace,
    TenantJob,
    executed_notebook,
    parse_log_place,
    repeated_order,
)

router = tenant_router("jobs")
JobId = Annotated[str, Path(min_length=1, max_length=500, description="The job's id.")]
_LOOKED_EVERY_SECONDS = 0.5
_CHECKED_EVERY_SECONDS = 5.0
_COMMENT_EVERY_LOOKS = 30


@router.get("/jobs")
def list_jobs(
    caller: TenantCalling,
    status: Annotated[JobStatus | None, Query(description="Only jobs of this status.")] = None,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> JobPage:
    """List a tenant's jobs, the newest first."""
    caller.tenant("jobs:read")
    listing = caller.list_name("jobs", status)
    place = None if cursor is None else str(caller.service.cursors.read(listing, cursor))
    wanted = JobFilter(
        environment=caller.environment, tenant=caller.tenant_id, status=status, incarnation=caller.folder()
    )
    page = caller.service.jobs.page(wanted, limit=limit, cursor=place)
    following = None if page.next_cursor is None else caller.service.cursors.encode(listing, page.next_cursor)
    return JobPage(
        jobs=[Job(**caller.service.jobs.describe_job(job)) for job in page.jobs], next_cursor=following
    )


@router.post("/jobs", status_code=202)
def run_job(caller: TenantCalling, order: NewJob, response: Response) -> Job:
    """Run one of the service's scripts for the tenant; a worker does it, `Location` shows how far it is."""
    caller.tenant("jobs:run")
    given = job_request(order)
    job = caller.job(order.job_id or caller.new_job_id())
    caller.service.jobs.require_place(job)
    with caller.audit_change("job.run", job.job_id, script=order.script):
        queued = caller.service.jobs.submit(job, given, caller.who)
    response.headers["Location"] = job_location(caller, queued.job_id)
    return Job(**caller.service.jobs.describe_job(queued))


def job_request(order: NewJob) -> JobRequest:
    """The run that a request or a schedule describes."""
    return JobRequest(
        order.script,
        order.flow,
        order.parameters,
        order.timeout_seconds,
        order.message,
        order.attempts_max,
    )


@router.get("/jobs/{job_id}")
def show_job(caller: TenantCalling, job_id: JobId) -> Job:
    """Show a job, and what became of it."""
    return Job(**caller.service.jobs.describe_job(_find_job(caller, job_id)))


@router.post("/jobs/{job_id}/cancel", status_code=202)
def cancel_job(caller: TenantCalling, job_id: JobId) -> Job:
    """Ask for a job's end; one that has ended stays as it is."""
    caller.tenant("jobs:run")
    job = caller.job(job_id)
    caller.service.jobs.get(job)
    with caller.audit_change("job.cancel", job_id):
        cancelled = caller.service.jobs.cancel(job)
    return Job(**caller.service.jobs.describe_job(cancelled))


@router.get(
    "/jobs/{job_id}/logs",
    response_class=StreamingResponse,
    responses={200: events_to_openapi(line=None, status=None), **to_openapi(404)},
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
    place = parse_log_place(last_event_id) if last_event_id else LogPlace()
    events = _events(request, caller, caller.job(job_id), place)
    return event_response(caller.service.streams, caller.principal, events)


async def _events(
    request: Request, caller: TenantCaller, job: TenantJob, place: LogPlace
) -> AsyncIterator[bytes]:
    """The log from a position on, until the job has ended and all is sent, or the key has ended."""
    closing: Closing = request.app.state.closing
    now = asyncio.get_running_loop().time
    told, looks, checked = "", 0, now()
    while True:
        if now() - checked >= _CHECKED_EVERY_SECONDS:
            if not await run_in_threadpool(_may_still_read, request, caller):
                return
            checked = now()
        try:
            found = await run_in_threadpool(caller.service.jobs.get, job)
            lines, place = await run_in_threadpool(caller.service.jobs.log_lines, found, place)
        except FreezeframeError:
            return  # deleted with its tenant, or unreadable for now: followers reconnect
        for line, behind in lines:
            yield format_sse_event(event="line", data_str=line, id=str(behind))
        if found.status != told:
            told = found.status
            yield format_sse_event(event="status", data_str=told)
        if found.is_final and not lines:
            return
        looks += 1
        if looks % _COMMENT_EVERY_LOOKS == 0:
            yield format_sse_event(comment="still here")
        if not lines and await closing.wait(_LOOKED_EVERY_SECONDS):
            return


def _may_still_read(request: Request, caller: TenantCaller) -> bool:
    """Whether the key or session is still good, and may still read the tenant's jobs."""
    try:
        access = caller.service.access(identify(request))
        access.require(caller.environment, caller.tenant_id, "jobs:read")
    except FreezeframeError:
        return False
    return True


def _find_job(caller: TenantCaller, job_id: str) -> Any:
    caller.tenant("jobs:read")
    return caller.service.jobs.get(caller.job(job_id))


_NOTEBOOK = "application/x-ipynb+json"


@router.post("/jobs/{job_id}/repetitions", status_code=202)
def repeat_job(caller: TenantCalling, job_id: JobId, response: Response) -> Job:
    """Run a job again that has ended: the same script and parameters, under an id of its own."""
    caller.tenant("jobs:run")
    past = caller.service.jobs.get(caller.job(job_id))
    order = repeated_order(past, caller.service.settings)
    job = caller.job(caller.new_job_id())
    caller.service.jobs.require_place(job)
    with caller.audit_change("job.run", job.job_id, script=order.script, repeats=job_id):
        queued = caller.service.jobs.submit(job, order, caller.who)
    response.headers["Location"] = job_location(caller, queued.job_id)
    return Job(**caller.service.jobs.describe_job(queued))


@router.get(
    "/jobs/{job_id}/notebook",
    response_class=Response,
    responses={
        200: {"content": {_NOTEBOOK: {"schema": {"type": "string", "format": "binary"}}}},
        **to_openapi(404),
    },
)
def download_notebook(caller: TenantCalling, job_id: JobId) -> Any:
    """Download a job's notebook as it was executed, with what its cells showed."""
    caller.tenant("jobs:read")
    job = caller.service.jobs.get(caller.job(job_id))
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
