"""Rows of a stream: sorted, restored, previewed before an import, and column statistics."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import ConfigDict, Field

from freezeframe.asgi.bodies import Received
from freezeframe.asgi.caller import Calling, Environment, TenantCalling
from freezeframe.asgi.event_streams import event_response, events_to_openapi
from freezeframe.asgi.middleware import Closing
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.parameters import (
    ROWS_CONTENT,
    Columns,
    CsvQuery,
    KeyColumns,
    Limit,
    RowsKind,
    StreamPath,
    UpdateQuery,
    When,
    Where,
    request_content,
    rows_kind,
)
from freezeframe.asgi.routing import TENANT_PATH, ResponseModel, api_router, example
from freezeframe.errors import TooLarge
from freezeframe.identifiers import TenantId
from freezeframe.service.rows.column_statistics import (
    StatisticsCache,
    StreamStatistics,
    logged_statistics,
    stream_statistics,
)
from freezeframe.service.rows.import_preview import (
    PREVIEW_BYTES_MAX,
    ImportFile,
    ImportPreview,
    import_preview,
)
from freezeframe.service.rows.search import (
    ROWS_MAX,
    FoundRow,
    RowSearch,
    SearchBounds,
    SearchProgress,
    SortOrder,
    Window,
    sorted_rows,
)
from freezeframe.store.table.written_rows import json_lines


class SortedRows(ResponseModel):
    """Some rows in order; what JSON has no value for (dates, decimals) is text."""

    model_config = ConfigDict(
        json_schema_extra=example(total=2, columns=["Id", "City"], rows=[{"Id": "1", "City": "Basel"}])
    )

    total: int = Field(description="How many rows meet the conditions.")
    columns: list[str]
    rows: list[dict[str, Any]]


router = api_router("streams")


@router.get(TENANT_PATH + "/streams/{stream}/sorted-rows", responses={200: {"model": SortedRows}})
def list_sorted_rows(
    caller: TenantCalling,
    stream: StreamPath,
    when: When,
    by: Annotated[str, Query(min_length=1, max_length=300, description="The column.")],
    descending: Annotated[bool, Query(description="The greatest first.")] = False,  # noqa: FBT002 - a query
    columns: Columns = None,
    where: Where = None,
    offset: Annotated[int, Query(ge=0, le=ROWS_MAX, description="How many to leave out first.")] = 0,
    limit: Limit = 100,
) -> Any:
    """Read the first rows by a column, down to row 10,000; missing values come last either way.

    A stream that is too large to be sorted at once is refused (413): choose fewer columns, or filter.
    """
    tenant = caller.tenant("snapshots:read")
    seen = tenant.stream(stream).scope.reading(
        lambda: sorted_rows(
            tenant,
            stream,
            when,
            SortOrder(by, is_down=descending),
            columns=columns or (),
            where=where or (),
            window=Window(offset, limit),
        )
    )
    head = json.dumps({"total": seen.total, "columns": seen.rows.column_names}, ensure_ascii=False)
    lines = b"".join(json_lines(seen.rows, len(seen.rows) or 1)).splitlines()
    body = head.encode()[:-1] + b', "rows": [' + b",".join(lines) + b"]}"
    return Response(body, media_type="application/json")


_RAW = request_content(ROWS_CONTENT)


@router.post(TENANT_PATH + "/streams/{stream}/import-preview", openapi_extra=_RAW)
def preview_import(
    caller: TenantCalling,
    request: Request,
    stream: StreamPath,
    body: Received,
    update: UpdateQuery,
    csv: CsvQuery,
    kind: RowsKind = None,
    key: KeyColumns = None,
    beginning: Annotated[bool, Query(description="The body is only the beginning of a longer file.")] = False,  # noqa: FBT002 - a query
) -> ImportPreview:
    """Tell what importing a file would do: its columns, how many rows are new or change, and examples.

    Nothing is kept. Of a CSV or JSON Lines file of more than 16 MiB send the beginning, with
    `beginning=true`: its columns and types are returned, and rows are not counted. It needs the scopes
    `snapshots:write` and `snapshots:read`: counts and examples tell what the stream holds.
    """
    caller.access.require(caller.environment, caller.tenant_id, "snapshots:read")
    tenant = caller.tenant("snapshots:write")
    form = rows_kind(request, kind)
    if body.size > PREVIEW_BYTES_MAX:
        raise TooLarge(
            f"A preview takes at most {PREVIEW_BYTES_MAX:,} bytes.",
            remedy="Send the file's beginning with beginning=true, or import it without a preview.",
        )
    file = ImportFile(form, body.content, is_beginning=beginning)
    return import_preview(tenant, stream, file, key or (), update, csv)


_CACHE = StatisticsCache()


@router.get(TENANT_PATH + "/streams/{stream}/statistics")
def show_statistics(
    caller: TenantCalling,
    stream: StreamPath,
    when: When,
    columns: Columns = None,
    read: Annotated[bool, Query(description="False: only what the log knows, without reading a row.")] = True,  # noqa: FBT002 - a query
) -> StreamStatistics:
    """Show what the columns hold: nulls, distinct values, smallest and greatest, and their shape.

    Of a stream of more than a million rows the first million are read; `rows_read` says so. Columns that
    were not read within some seconds have `rows_read` 0: ask for them by name.
    """
    tenant = caller.tenant("snapshots:read")
    reading = tenant.stream(stream).scope.reading
    if not read:
        return reading(lambda: logged_statistics(tenant, stream, when, columns or ()))
    return reading(lambda: stream_statistics(tenant, stream, when, _CACHE, columns=columns or ()))


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
    as a key come first. At most 5 rows of a stream are returned, and 100 in all; 1 GiB of columns is read.
    `is_whole` is false where there may be more, or tenants (`unreadable`) are damaged.
    """
    caller.principal.require("snapshots:read")
    tenants = None if tenant is None else list(dict.fromkeys(map(TenantId, tenant)))
    if tenants is None:
        caller.principal.require("tenants:read")
    for tenant_id in tenants or ():
        caller.access.require(environment, tenant_id, "snapshots:read")
    search = RowSearch(text, SearchBounds(seconds=seconds))
    found = search.run(
        lambda: caller.access.all_tenants(environment) if tenants is None else iter(tenants),
        lambda name: caller.access.tenant(environment, TenantId(name), "snapshots:read"),
    )
    return event_response(caller.service.streams, caller.principal, _events(request, search, found))


async def _events(
    request: Request, search: RowSearch, steps: Iterator[FoundRow | SearchProgress]
) -> AsyncIterator[bytes]:
    """Send each step; a client that leaves, or the end of the process, stops the search between two steps."""
    closing = request.app.state.closing
    assert isinstance(closing, Closing)  # noqa: S101 - set by create_application
    while (step := await run_in_threadpool(next, steps, None)) is not None:
        if await closing.wait(0):
            return
        yield _event_bytes("row" if isinstance(step, FoundRow) else "progress", step)
    yield _event_bytes("end", search.progress)


def _event_bytes(event: str, step: FoundRow | SearchProgress) -> bytes:
    return format_sse_event(event=event, data_str=json.dumps(asdict(step), ensure_ascii=False))
