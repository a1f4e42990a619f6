"""Search of rows over the tenants of an environment, told as it finds them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from freezeframe.asgi.dependencies.caller import Caller, Calling, Environment
from freezeframe.asgi.event_response import event_response, events_to_openapi
from freezeframe.asgi.middleware.closing import Closing
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.routing import api_router
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.rows.found_rows import FoundRow, RowSearch, SearchBounds, SearchProgress

router = api_router("streams")
_TENANTS_MAX = 100
_SECONDS_MAX = 30


@router.get(
    "/environments/{environment}/found-rows",
    response_class=StreamingResponse,
    responses={
        200: events_to_openapi(row=FoundRow, progress=SearchProgress, end=SearchProgress),
        **to_openapi(404),
    },
)
def find_rows(
    caller: Calling,
    request: Request,
    environment: Environment,
    text: Annotated[str, Query(min_length=1, max_length=200, description="What is looked for.")],
    tenant: Annotated[
        list[str] | None,
        Query(max_length=_TENANTS_MAX, description="Only these tenants; without it all of the caller."),
    ] = None,
    seconds: Annotated[int, Query(ge=1, le=_SECONDS_MAX, description="How long at most.")] = 10,
) -> Any:
    """Find rows by a value of their key, or by a part of a text of three letters and more, as events.

    `row` tells one that was found: `tenant`, `stream`, its `key`, and the `column` and `value` that hold the
    text. `progress` tells how many tenants and bytes were read, `end` is the last. Rows that have the text
    as a key come first. At most 5 rows of a stream are told, and 100 in all; 1 GiB of columns is read.
    `is_whole` is false where there may be more, or tenants (`unreadable`) are damaged.
    """
    caller.principal.require("snapshots:read")
    wanted = None if tenant is None else list(dict.fromkeys(map(TenantId, tenant)))
    if wanted is None:
        caller.principal.require("tenants:read")
    for item in wanted or ():
        caller.access.require(environment, item, "snapshots:read")
    search = RowSearch(text, SearchBounds(seconds=seconds))
    found = search.run(
        lambda: _all_tenants(caller, environment) if wanted is None else iter(wanted),
        lambda name: caller.access.tenant(environment, TenantId(name), "snapshots:read"),
    )
    return event_response(caller.service.streams, caller.principal, _events(request, search, found))


async def _events(
    request: Request, search: RowSearch, found: Iterator[FoundRow | SearchProgress]
) -> AsyncIterator[bytes]:
    """Each step on a thread; between two of them the client's leaving or the service's end is seen."""
    closing = request.app.state.closing
    assert isinstance(closing, Closing)  # noqa: S101 - set by create_application
    while (one := await run_in_threadpool(next, found, None)) is not None:
        if await closing.wait(0):
            return
        yield _event_bytes("row" if isinstance(one, FoundRow) else "progress", one)
    yield _event_bytes("end", search.progress)


def _event_bytes(event: str, told: FoundRow | SearchProgress) -> bytes:
    return format_sse_event(event=event, data_str=json.dumps(asdict(told), ensure_ascii=False))


def _all_tenants(caller: Caller, environment: EnvironmentName) -> Iterator[str]:
    after: str | None = None
    while True:
        page = caller.access.page(environment, "", after, _TENANTS_MAX)
        yield from page.tenants
        if (after := page.next_after) is None:
            return
