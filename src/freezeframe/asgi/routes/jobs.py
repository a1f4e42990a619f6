"""Jobs: run, listed, cancelled, and their logs as they are written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from freezeframe.asgi.caller import TenantCaller, TenantCalling
from freezeframe.asgi.closing import UNBUFFERED, Closing
from freezeframe.asgi.models.jobs import Job, JobPage, JobStatus, NewJob
from freezeframe.asgi.problems import declared
from freezeframe.asgi.routes.parameters import CursorText, Limit
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.asgi.routes.streams import job_location
from freezeframe.service.jobs import JobOrder, LogPlace, TenantJob, parse_log_place

router = tenant_router("jobs")
JobId = Annotated[str, Path(min_length=1, max_length=500, description="The job's id.")]
_LOOKED_EVERY_SECONDS = 0.5
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
    listing = caller.listing("jobs", status)
    place = None if cursor is None else str(caller.service.cursors.read(listing, cursor))
    page = caller.service.jobs.page(
        caller.environment,
        caller.tenant_id,
        folder=caller.folder(),
        status=status,
        limit=limit,
        cursor=place,
    )
    following = None if page.next_cursor is None else caller.service.cursors.made(listing, page.next_cursor)
    return JobPage(jobs=[Job(**caller.service.jobs.told(one)) for one in page.jobs], next_cursor=following)


@router.post("/jobs", status_code=202)
def run_job(caller: TenantCalling, order: NewJob, response: Response) -> Job:
    """Run one of the service's scripts for the tenant; a worker does it, `Location` shows how far it is."""
    caller.tenant("jobs:run")
    given = JobOrder(
        order.script,
        order.flow,
        order.parameters,
        order.timeout_seconds,
        order.message,
        order.attempts_max,
    )
    job = caller.job(order.job_id or caller.new_id())
    with caller.noting("job.run", job.job_id, script=order.script):
        queued = caller.service.jobs.submit(job, given, caller.who)
    response.headers["Location"] = job_location(caller, queued.job_id)
    return Job(**caller.service.jobs.told(queued))


@router.get("/jobs/{job_id}")
def show_job(caller: TenantCalling, job_id: JobId) -> Job:
    """Show a job, and what became of it."""
    return Job(**caller.service.jobs.told(_found(caller, job_id)))


@router.post("/jobs/{job_id}/cancel", status_code=202)
def cancel_job(caller: TenantCalling, job_id: JobId) -> Job:
    """Ask for a job's end; one that has ended stays as it is."""
    caller.tenant("jobs:run")
    job = caller.job(job_id)
    caller.service.jobs.get(job)
    with caller.noting("job.cancel", job_id):
        cancelled = caller.service.jobs.cancel(job)
    return Job(**caller.service.jobs.told(cancelled))


@router.get(
    "/jobs/{job_id}/logs",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **declared(404)},
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
    _found(caller, job_id)
    place = parse_log_place(last_event_id) if last_event_id else LogPlace()
    job = caller.job(job_id)
    events = _events(caller, job, place, request.app.state.closing)
    return StreamingResponse(events, media_type="text/event-stream", headers=UNBUFFERED)


async def _events(
    caller: TenantCaller, job: TenantJob, place: LogPlace, closing: Closing
) -> AsyncIterator[bytes]:
    """The log from a place on, until the job has ended and all of it is told."""
    told, looks = "", 0
    while True:
        found = await run_in_threadpool(caller.service.jobs.get, job)
        lines, place = await run_in_threadpool(caller.service.jobs.log_lines, found, place)
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


def _found(caller: TenantCaller, job_id: str) -> Any:
    caller.tenant("jobs:read")
    return caller.service.jobs.get(caller.job(job_id))
