"""Streams: description, rows, changes, versions, import and export."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from freezeframe.asgi.bodies.received_body import Received, ReceivedBody
from freezeframe.asgi.dependencies.caller import CONDITIONAL, TenantCaller, TenantCalling
from freezeframe.asgi.media_type import media_type
from freezeframe.asgi.models.jobs import Job
from freezeframe.asgi.models.streams import (
    Dropped,
    HistoryPage,
    ImportSource,
    Restoration,
    RestorationOrder,
    Rows,
    StreamDetail,
    StreamList,
    StreamRestoration,
)
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.history import history_page, restore
from freezeframe.asgi.routes.routing import (
    ROWS_CONTENT,
    VERSION_MAX,
    CursorText,
    GivenCsv,
    GivenUpdate,
    Limit,
    Message,
    RowsKind,
    StreamPath,
    TenantVersion,
    When,
    rows_kind,
    tenant_router,
)
from freezeframe.service.exports.exports import export
from freezeframe.service.jobs.jobs import ImportRequest
from freezeframe.service.jobs.staged_blobs import ImportContent
from freezeframe.service.rows import streams
from freezeframe.service.rows.row_previews import (
    ChangesPlace,
    ChangesWanted,
    Preview,
    PreviewPlace,
    RowsWanted,
    change_preview,
    preview,
)
from freezeframe.service.rows.streams import ARROW_TYPE, EXPORT_TYPES
from freezeframe.store.transaction.conditions import stream_subject

router = tenant_router("streams")
_RAW: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            **ROWS_CONTENT,
            "application/json": {"schema": ImportSource.model_json_schema()},
        },
    }
}
_ROWS_TOO: dict[int | str, dict[str, Any]] = {
    200: {"content": {ARROW_TYPE: {"schema": {"type": "string", "format": "binary"}}}, "model": Rows}
}
Version = Annotated[int | None, Query(ge=0, le=VERSION_MAX)]


@router.get("/streams")
def list_streams(caller: TenantCalling, version: TenantVersion) -> StreamList:
    """List a tenant's streams, now or at a version of the tenant."""
    tenant = caller.tenant("snapshots:read")
    seen = tenant.version if version is None else version
    return StreamList(version=seen, streams=list(tenant.streams(version)))


@router.get(
    "/streams/{stream}", responses={200: {"model": StreamDetail}, **to_openapi(304)}, dependencies=CONDITIONAL
)
def show_stream(caller: TenantCalling, stream: StreamPath, response: Response) -> Any:
    """Show a stream: its versions, key, columns and how many rows it has."""
    detail = streams.stream_detail(streams.require_stream(caller.tenant("snapshots:read"), stream))
    etag = f'"{detail.stream_version}"'
    if caller.conditions.is_fresh(etag):
        return Response(status_code=304, headers={"ETag": etag})
    response.headers["ETag"] = etag
    return StreamDetail.of(detail)


@router.delete("/streams/{stream}", dependencies=CONDITIONAL)
def drop_stream(caller: TenantCalling, stream: StreamPath, message: Message = "") -> Dropped:
    """Remove a stream in a new version; its past can be read and restored."""
    tenant = caller.tenant("snapshots:delete", stream_subject(stream))
    with caller.audit_change("stream.drop", stream):
        version = tenant.drop_stream(stream, message=message, who=caller.who)
    return Dropped(tenant_version=version)


@router.get("/streams/{stream}/rows", responses={**_ROWS_TOO, **to_openapi(406)})
def preview_rows(
    caller: TenantCalling,
    request: Request,
    stream: StreamPath,
    when: When,
    columns: Annotated[list[str] | None, Query(description="Only these columns.", max_length=1000)] = None,
    where: Annotated[
        list[str] | None,
        Query(description="Conditions such as `City = Bern`; all must hold.", max_length=20),
    ] = None,
    offset: Annotated[int, Query(ge=0, le=VERSION_MAX, description="How many to leave out first.")] = 0,
    limit: Limit = 100,
    cursor: CursorText = None,
    count: Annotated[
        bool | None,
        Query(
            description="Whether to count all rows that meet the conditions; without it those of a "
            "stream of at most 200,000 rows are."
        ),
    ] = None,
) -> Any:
    """Read some rows, in the order of the key, as JSON or (by `Accept`) as an Arrow IPC stream.

    Of a stream of any size little more than the page is read. A cursor goes on in the version that the
    first page was of. Rows without a key are in the order of their files.
    """
    found = caller.tenant("snapshots:read").stream(stream)
    wanted = RowsWanted(tuple(columns or ()), tuple(where or ()), 0 if cursor else offset, limit, count)
    listing = caller.list_name("pages of rows", found.name, when, wanted.columns, wanted.where)
    place = None
    if cursor is not None:
        place = PreviewPlace.of_json(caller.service.cursors.read(listing, cursor))
    seen = preview(found, when, wanted, place)
    return _rows(request, seen, _cursor(caller, listing, seen))


@router.get("/streams/{stream}/changes", responses=_ROWS_TOO)
def list_changes(
    caller: TenantCalling,
    request: Request,
    stream: StreamPath,
    since: Version = None,
    until: Version = None,
    limit: Limit = 100,
    cursor: CursorText = None,
    count: Annotated[
        bool | None, Query(description="Whether to count all changes; without it where that is quick.")
    ] = None,
) -> Any:
    """What became of the rows between two versions of the tenant, in the order of the key.

    `_change_type` is insert, update (with the old row in `_before`) or delete; without `since` from the
    stream's beginning, without `until` to now, which for all pages is the version that the first one was of.
    """
    found = caller.tenant("snapshots:read").stream(stream)
    listing = caller.list_name("pages of changes", found.name, since, until)
    place = None
    if cursor is not None:
        place = ChangesPlace.of_json(caller.service.cursors.read(listing, cursor))
    seen = change_preview(found, since, until, ChangesWanted(limit, count), place)
    return _rows(request, seen, _cursor(caller, listing, seen))


@router.get("/streams/{stream}/history")
def stream_history(
    caller: TenantCalling, stream: StreamPath, limit: Limit = 100, cursor: CursorText = None
) -> HistoryPage:
    """List the tenant's versions that changed the stream, the newest first."""
    tenant = caller.tenant("snapshots:read")
    found = tenant.stream(stream).name
    return history_page(caller, tenant, limit, cursor, stream=found)


@router.post("/streams/{stream}/restore", dependencies=CONDITIONAL)
def restore_stream(caller: TenantCalling, stream: StreamPath, order: StreamRestoration) -> Restoration:
    """Bring a stream back to what it was at a version of the tenant, as a new version.

    Conditions are of the stream, by the `ETag` that showing it gives.
    """
    order_of_tenant = RestorationOrder(
        version=order.version, streams=[stream], files=[], dry_run=order.dry_run, message=order.message
    )
    return restore(caller, order_of_tenant, "stream.restore", stream_subject(stream), stream)


@router.get(
    "/streams/{stream}/export",
    responses={
        200: {
            "content": {
                kind.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
                for kind in EXPORT_TYPES.values()
            }
        }
    },
    response_class=StreamingResponse,
)
def export_stream(
    caller: TenantCalling,
    stream: StreamPath,
    when: When,
    format: Annotated[Literal["csv", "parquet", "jsonl"], Query()] = "csv",  # noqa: A002 - the parameter's name
) -> StreamingResponse:
    """Download all rows as a file, in the order of the key, or if they are many in that of their files.

    It is made while it is sent. Damage that is found on the way breaks the connection off.
    """
    found = caller.tenant("snapshots:read").stream(stream)
    content = export(found, format, when)
    headers = {"Content-Disposition": attachment(streams.snapshot_name(found.name, format))}
    return StreamingResponse(content, media_type=EXPORT_TYPES[format], headers=headers)


@router.post(
    "/streams/{stream}/import",
    status_code=202,
    openapi_extra=_RAW,
    responses=to_openapi(415),
    dependencies=CONDITIONAL,
)
def import_stream(
    caller: TenantCalling,
    request: Request,
    response: Response,
    stream: StreamPath,
    body: Received,
    update: GivenUpdate,
    csv: GivenCsv,
    kind: RowsKind = None,
    key: Annotated[list[str] | None, Query(description="The key's columns.", max_length=50)] = None,
    job_id: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    message: Message = "",
) -> Job:
    """Bring a file's rows into a stream, as a job.

    They are CSV, Parquet, JSON Lines or Arrow, as `Content-Type` says, or `kind` of plain octets.
    A JSON body names a staged blob instead, of any size; it is then gone. Conditions are of the stream, by
    the `ETag` that showing it gives; they are checked now, and again when the job commits.
    """
    caller.access.require(caller.environment, caller.tenant_id, "jobs:run")
    job = caller.job(job_id or caller.new_job_id("import-"))
    found = caller.access.tenant(caller.environment, caller.tenant_id, "snapshots:write")
    tenant = caller.changing(found, stream_subject(stream), job.job_id)
    form, blob_id = _import_source(request, body, kind)
    stored_bytes = caller.service.stored_bytes
    stored_bytes.require_room(tenant, body.size)
    order = ImportRequest(stream, form, tuple(key or ()), update, message, csv, caller.conditions)
    caller.service.jobs.require_place(job)
    source = (
        caller.service.blobs.open_import(caller.folder(), blob_id)
        if blob_id
        else nullcontext(ImportContent(body.content, body.sha256))
    )
    with source as content, caller.audit_change("stream.import", stream, job_id=job.job_id):
        queued = caller.service.jobs.submit_import(
            job,
            order,
            content,
            caller.who,
            lambda: stored_bytes.require_room_for_waiting(tenant, caller.folder()),
        )
    response.headers["Location"] = job_location(caller, queued.job_id)
    return Job(**caller.service.jobs.describe_job(queued))


def job_location(caller: TenantCaller, job_id: str) -> str:
    """Where a job is shown."""
    place = (quote(part, safe="") for part in (caller.environment, caller.tenant_id, job_id))
    return "/api/v1/environments/{}/tenants/{}/jobs/{}".format(*place)


def attachment(name: str) -> str:
    """A ``Content-Disposition`` with a name of any letters (RFC 6266)."""
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"


def _import_source(request: Request, body: ReceivedBody, kind: str | None) -> tuple[str, str]:
    """The format of the rows, and the blob that holds them; "" if the body itself does."""
    if kind is None and media_type(request) == "application/json":
        try:
            source = ImportSource.model_validate_json(body.content.read())
        except ValidationError as error:
            raise RequestValidationError(
                [{**item, "loc": ("body", *item["loc"])} for item in error.errors(include_url=False)]
            ) from error
        return source.kind, source.blob
    return rows_kind(request, kind), ""


def _cursor(caller: TenantCaller, listing: str, seen: Preview) -> str | None:
    place = seen.following
    return None if place is None else caller.service.cursors.encode(listing, place.to_json())


def _rows(request: Request, seen: Preview, cursor: str | None) -> Response:
    if ARROW_TYPE in request.headers.get("accept", ""):
        headers = {"X-Total-Rows": str(seen.total), "X-Total-Exact": str(seen.is_total_exact).lower()}
        if cursor is not None:
            headers["X-Next-Cursor"] = cursor
        return Response(seen.arrow(), media_type=ARROW_TYPE, headers={**headers, "Vary": "Accept"})
    told = {
        "total": seen.total,
        "is_total_exact": seen.is_total_exact,
        "version": seen.version,
        "stream_version": seen.stream_version,
        "next_cursor": cursor,
        "columns": seen.rows.column_names,
    }
    head = json.dumps(told, ensure_ascii=False).encode()
    body = head[:-1] + b', "rows": [' + b",".join(seen.json_rows()) + b"]}"
    return Response(body, media_type="application/json", headers={"Vary": "Accept"})
