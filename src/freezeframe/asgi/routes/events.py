"""Server-sent events: jobs, new tenant versions, tenants created and deleted."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from freezeframe.asgi.caller import Calling, identify
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
from freezeframe.asgi.routing import ResponseModel, api_router
from freezeframe.control.job import JobStatus
from freezeframe.errors import FreezeframeError
from freezeframe.identifiers import EnvironmentName, TenantId

router = api_router("tenants")
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
