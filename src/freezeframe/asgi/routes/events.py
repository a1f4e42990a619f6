"""Server-sent events: jobs, tenants and their new versions, a job's log; and executed notebooks."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from freezeframe.asgi.caller import Calling, TenantCalling, identify
from freezeframe.asgi.event_streams import (
    Event,
    EventHub,
    Follower,
    JobEvent,
    TenantsEvent,
    event_response,
    events_to_openapi,
)
from freezeframe.asgi.middleware import Closing
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.parameters import BINARY
from freezeframe.asgi.routes.streams import attachment
from freezeframe.asgi.routing import TENANT_PATH, ResponseModel, api_router
from freezeframe.control.job import JobStatus, QueuedJob
from freezeframe.errors import FreezeframeError, NotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.jobs import LogCursor, TenantJob, executed_notebook, parse_log_cursor
from freezeframe.service.operations.caller import TenantCaller

router = api_router("tenants")
jobs = api_router("jobs")
_FOLLOWED_SECONDS = 600
_WATCHED_MAX = 20
_CHECKED_EVERY_SECONDS = 5.0
_COMMENT_EVERY_CHECKS = 3


class _Nothing(ResponseModel):
    """An event without data."""


class _JobStep(ResponseModel):
    """What a job has become."""

    tenant: str
    job_id: str
    status: JobStatus


class _NewVersion(ResponseModel):
    """The newest version of a watched tenant."""

    tenant: str
    version: int


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={
        200: events_to_openapi(
            anew=_Nothing, lost=_Nothing, tenants=_Nothing, job=_JobStep, version=_NewVersion
        ),
        **to_openapi(404),
    },
)
async def follow_events(
    request: Request,
    caller: Calling,
    environment: Annotated[str, Query(min_length=1, max_length=200, description="Of which environment.")],
    tenant: Annotated[
        list[str] | None, Query(max_length=_WATCHED_MAX, description="Tenants to watch for new versions.")
    ] = None,
    seconds: Annotated[
        int, Query(ge=0, le=_FOLLOWED_SECONDS, description="How long; ask again afterwards.")
    ] = _FOLLOWED_SECONDS,
) -> Any:
    """Follow what happens in an environment, as server-sent events, as far as it is the caller's business.

    `anew` comes first: from now on every event is sent. `lost`: events were lost, read everything again.
    `job` tells what a job has become, `version` what a watched tenant's newest version is.
    `tenants`: some of the environment came or went.
    """
    caller.principal.require("tenants:read")
    name, watched = EnvironmentName(environment), frozenset(map(TenantId, tenant or ()))
    for item in watched:
        await run_in_threadpool(caller.access.require, name, item, "snapshots:read")
    follower = Follower(caller.principal, name, watched)
    events = _events(request, follower, seconds)
    return await run_in_threadpool(event_response, caller.service.streams, caller.principal, events)


async def _events(request: Request, follower: Follower, seconds: int) -> AsyncIterator[bytes]:
    hub, closing = request.app.state.events, request.app.state.closing
    assert isinstance(hub, EventHub)  # noqa: S101 - set by create_application
    assert isinstance(closing, Closing)  # noqa: S101 - set by create_application
    now = asyncio.get_running_loop().time
    end, checks = now() + seconds, 0
    ending = asyncio.create_task(closing.wait(seconds))
    try:
        async with hub.follow(follower):
            yield format_sse_event(event="anew", data_str="{}")
            while (left := end - now()) > 0 and not ending.done():
                pending = await follower.next_event(ending, min(left, _CHECKED_EVERY_SECONDS))
                # Asked before each event: the key may have ended, or see less, since it came.
                if not await _is_known_still(request, follower):
                    return
                if pending:
                    event = pending[0]
                    if event is None or event.is_for(follower.principal):
                        yield _to_event_bytes(event)
                    continue
                checks += 1
                if checks % _COMMENT_EVERY_CHECKS == 0:
                    yield format_sse_event(comment="still here")
    finally:
        ending.cancel()


async def _is_known_still(request: Request, follower: Follower) -> bool:
    """Return whether the key or session is still valid; its rights are looked up again too."""
    try:
        follower.principal = await run_in_threadpool(identify, request)
    except FreezeframeError:
        return False
    return True


def _to_event_bytes(event: Event | None) -> bytes:
    if event is None:
        return format_sse_event(event="lost", data_str="{}")
    if isinstance(event, JobEvent):
        return format_sse_event(event="job", data_str=_JobStep.of(event).model_dump_json())
    if isinstance(event, TenantsEvent):
        return format_sse_event(event="tenants", data_str="{}")
    return format_sse_event(event="version", data_str=_NewVersion.of(event).model_dump_json())


JobId = Annotated[str, Path(min_length=1, max_length=500, description="The job's id.")]
_LOOKED_EVERY_SECONDS = 0.5
_COMMENT_EVERY_LOOKS = 30


@jobs.get(
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
    events = _log_events(request, caller, caller.job(job_id), cursor)
    return event_response(caller.service.streams, caller.principal, events)


async def _log_events(
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


@jobs.get(
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
