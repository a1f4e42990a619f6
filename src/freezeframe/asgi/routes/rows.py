"""Rows of a stream: sorted, restored, previewed before an import, and column statistics."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from freezeframe.asgi.bodies.received_body import Received
from freezeframe.asgi.dependencies.caller import CONDITIONAL, TenantCalling
from freezeframe.asgi.models.streams import (
    ImportPreview,
    RowHistory,
    RowRestoration,
    RowRestorationOrder,
    SortedRows,
    StreamStatistics,
)
from freezeframe.asgi.routes.routing import (
    ROWS_CONTENT,
    VERSION_MAX,
    GivenCsv,
    GivenUpdate,
    Limit,
    RowsKind,
    StreamPath,
    When,
    rows_kind,
    tenant_router,
)
from freezeframe.errors import TooLarge
from freezeframe.script.formats.written_rows import json_lines
from freezeframe.service.access.audit import UNCHANGED
from freezeframe.service.rows import sorted_rows
from freezeframe.service.rows.column_statistics import (
    StatisticsCache,
    logged_statistics,
    stream_statistics,
)
from freezeframe.service.rows.import_preview import PREVIEW_BYTES_MAX, ImportFile, import_preview
from freezeframe.service.rows.row_history import RestoredRows, restored_rows, row_history, select_rows
from freezeframe.service.rows.sorted_rows import ROWS_MAX, SortOrder, Window
from freezeframe.store.model.update_options import Author
from freezeframe.store.transaction.conditions import TENANT

router = tenant_router("streams")


@router.get("/streams/{stream}/sorted-rows", responses={200: {"model": SortedRows}})
def list_sorted_rows(
    caller: TenantCalling,
    stream: StreamPath,
    when: When,
    by: Annotated[str, Query(min_length=1, max_length=300, description="The column.")],
    descending: Annotated[bool, Query(description="The greatest first.")] = False,  # noqa: FBT002 - a query
    columns: Annotated[list[str] | None, Query(description="Only these columns.", max_length=1000)] = None,
    where: Annotated[
        list[str] | None,
        Query(description="Conditions such as `City = Bern`; all must hold.", max_length=20),
    ] = None,
    offset: Annotated[int, Query(ge=0, le=ROWS_MAX, description="How many to leave out first.")] = 0,
    limit: Limit = 100,
) -> Any:
    """Read the first rows by a column, down to row 10,000; missing values come last either way.

    A stream that is too large to be sorted at once is refused (413): choose fewer columns, or filter.
    """
    tenant = caller.tenant("snapshots:read")
    seen = sorted_rows.sorted_rows(
        tenant,
        stream,
        when,
        SortOrder(by, is_down=descending),
        columns=columns or (),
        where=where or (),
        window=Window(offset, limit),
    )
    head = json.dumps({"total": seen.total, "columns": seen.rows.column_names}, ensure_ascii=False)
    lines = b"".join(json_lines(seen.rows, len(seen.rows) or 1)).splitlines()
    body = head.encode()[:-1] + b', "rows": [' + b",".join(lines) + b"]}"
    return Response(body, media_type="application/json")


@router.get("/streams/{stream}/rows/{key:path}/history")
def show_row_history(
    caller: TenantCalling,
    stream: StreamPath,
    key: Annotated[
        str,
        Path(
            max_length=8000,
            description="The key's value as text; of several columns, or where the text begins with `[`, "
            "a JSON array of the values.",
            examples=["007"],
        ),
    ],
    until: Annotated[
        int | None, Query(ge=0, le=VERSION_MAX, description="The newest version that is looked at.")
    ] = None,
    limit: Limit = 100,
) -> RowHistory:
    """Show a row and the versions that inserted, updated or deleted it, the newest first.

    `following` is where the next page begins (`until`). `is_whole` is false where older versions are not
    kept any more, or knew the stream by another key; the last page knows.
    """
    return RowHistory.of(row_history(caller.tenant("snapshots:read"), stream, key, until, limit))


@router.post("/streams/{stream}/row-restorations", dependencies=CONDITIONAL)
def restore_rows(caller: TenantCalling, stream: StreamPath, order: RowRestorationOrder) -> RowRestoration:
    """Bring rows back by their keys, as one new version; rows that were not there then are removed.

    With `dry_run` the effect is told and nothing is done. `If-Match` is the tenant's version in quotes.
    """
    tenant = caller.tenant("snapshots:read" if order.dry_run else "snapshots:write")

    def restore() -> RestoredRows:
        return restored_rows(
            tenant,
            select_rows(tenant, stream, order.version, order.keys, order.columns),
            dry_run=order.dry_run,
            author=Author(caller.who, order.message),
        )

    if order.dry_run:
        caller.conditions.require_now(TENANT, tenant.context)
        done = restore()
    else:
        noted = {"version": order.version, "rows": len(order.keys)}
        with caller.audit_change("rows.restore", stream, **noted) as undertaking:
            done = restore()
            undertaking.outcome = "" if done.committed else UNCHANGED
    return RowRestoration.of(done)


_RAW: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": ROWS_CONTENT,
    }
}


@router.post("/streams/{stream}/import-preview", openapi_extra=_RAW)
def preview_import(
    caller: TenantCalling,
    request: Request,
    stream: StreamPath,
    body: Received,
    update: GivenUpdate,
    csv: GivenCsv,
    kind: RowsKind = None,
    key: Annotated[list[str] | None, Query(description="The key's columns.", max_length=50)] = None,
    beginning: Annotated[bool, Query(description="The body is only the beginning of a longer file.")] = False,  # noqa: FBT002 - a query
) -> ImportPreview:
    """Tell what importing a file would do: its columns, how many rows are new or change, and examples.

    Nothing is kept. Of a CSV or JSON Lines file of more than 16 MiB send the beginning, with
    `beginning=true`: its columns and types are told, and rows are not counted. It needs the scopes
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
    return ImportPreview.of(import_preview(tenant, stream, file, key or (), update, csv))


_CACHE = StatisticsCache()


@router.get("/streams/{stream}/statistics")
def show_statistics(
    caller: TenantCalling,
    stream: StreamPath,
    when: When,
    columns: Annotated[list[str] | None, Query(description="Only these columns.", max_length=1000)] = None,
    read: Annotated[bool, Query(description="False: only what the log knows, without reading a row.")] = True,  # noqa: FBT002 - a query
) -> StreamStatistics:
    """Show what the columns hold: nulls, distinct values, smallest and greatest, and their shape.

    Of a stream of more than a million rows the first million are read; `rows_read` says so. Columns that
    were not read within some seconds have `rows_read` 0: ask for them by name.
    """
    tenant = caller.tenant("snapshots:read")
    if not read:
        return StreamStatistics.of(logged_statistics(tenant, stream, when, columns or ()))
    return StreamStatistics.of(stream_statistics(tenant, stream, when, _CACHE, columns=columns or ()))
