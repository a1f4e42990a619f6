"""Streams: description, rows, changes, versions, import and export."""

import json
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, Field, ValidationError

from freezeframe.asgi.bodies import Received, ReceivedBody
from freezeframe.asgi.caller import CONDITIONAL, TenantCalling
from freezeframe.asgi.problems import media_type, to_openapi
from freezeframe.asgi.routes.parameters import (
    BINARY,
    ROWS_CONTENT,
    Columns,
    CsvQuery,
    CursorText,
    KeyColumns,
    Limit,
    Message,
    RowsKind,
    StreamPath,
    UpdateQuery,
    When,
    Where,
    request_content,
    rows_kind,
)
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, ResponseModel, api_router, example
from freezeframe.control.job import QueuedJob
from freezeframe.service.exports import export
from freezeframe.service.jobs import ImportRequest, Job
from freezeframe.service.operations.caller import TenantCaller
from freezeframe.service.operations.jobs import shown
from freezeframe.service.operations.operation import VERSION_MAX
from freezeframe.service.rows import streams
from freezeframe.service.rows.row_previews import (
    ChangesCursor,
    Preview,
    PreviewCursor,
    RowsRequest,
    change_preview,
    feed_preview,
    preview,
)
from freezeframe.service.rows.streams import ARROW_TYPE, EXPORT_TYPES, StreamDetail
from freezeframe.service.staged_blobs import ImportContent
from freezeframe.store.change_feed import FeedCursor, require_range
from freezeframe.store.transaction.conditions import stream_subject


class Rows(ResponseModel):
    """Some rows of a stream; what JSON has no value for (dates, decimals) is text."""

    model_config = ConfigDict(
        json_schema_extra=example(
            total=2,
            is_total_exact=True,
            version=12,
            stream_version=4,
            next_cursor=None,
            columns=["Id", "City"],
            rows=[{"Id": "007", "City": "Bern"}],
        )
    )

    total: int = Field(description="How many rows there are without the limit, or at least.")
    is_total_exact: bool = Field(description="False: there are at least `total` rows; `count=true` counts.")
    version: int = Field(description="The version of the tenant that made the rows.")
    stream_version: int = Field(description="The stream's own version that the rows are of.")
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")
    columns: list[str]
    rows: list[dict[str, Any]]


class ImportSource(RequestModel):
    """Rows that lie in a staged blob, and of what kind they are."""

    model_config = ConfigDict(
        json_schema_extra=example(blob="0123456789abcdef0123456789abcdef", kind="parquet")
    )

    blob: str = Field(min_length=1, max_length=64)
    kind: Literal["csv", "parquet", "jsonl", "arrow"]


router = api_router("streams")
_RAW = request_content({**ROWS_CONTENT, "application/json": {"schema": ImportSource.model_json_schema()}})
_ROWS_TOO: dict[int | str, dict[str, Any]] = {200: {"content": {ARROW_TYPE: BINARY}, "model": Rows}}


def _version(description: str) -> Any:
    return Query(ge=0, le=VERSION_MAX, description=description)


_FROM = _version("The first version whose changes are listed.")
_TO = _version("The last version whose changes are listed; the newest without it.")
_SINCE = _version("Until the next minor version: net changes after this version; all without it.")
_UNTIL = _version("Until the next minor version: net changes up to this version; the newest without it.")


@router.get(
    TENANT_PATH + "/streams/{stream}",
    responses={200: {"model": StreamDetail}, **to_openapi(304)},
    dependencies=CONDITIONAL,
)
def show_stream(caller: TenantCalling, stream: StreamPath, response: Response) -> Any:
    """Show a stream: its versions, key, columns and how many rows it has."""
    tenant = caller.tenant("snapshots:read")
    found = streams.require_stream(tenant, stream)
    # The tag comes first: of a commit in between it is the older one, with which nothing can be changed.
    etag = stream_subject(stream).tag(tenant.context, tenant.context.log.current_state()) or ""
    if caller.conditions.is_fresh(etag):
        return Response(status_code=304, headers={"ETag": etag})
    response.headers["ETag"] = etag
    return streams.stream_detail(found)


@router.get(TENANT_PATH + "/streams/{stream}/rows", responses={**_ROWS_TOO, **to_openapi(406)})
def preview_rows(
    caller: TenantCalling,
    request: Request,
    stream: StreamPath,
    when: When,
    columns: Columns = None,
    where: Where = None,
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
    requested = RowsRequest(tuple(columns or ()), tuple(where or ()), 0 if cursor else offset, limit, count)
    listing = caller.list_name("pages of rows", found.name, when, requested.columns, requested.where)
    position = caller.service.cursors.read_as(PreviewCursor, listing, cursor)
    page = found.scope.reading(lambda: preview(found, when, requested, position))
    return _rows(request, page, caller.service.cursors.encode(listing, page.following))


@router.get(TENANT_PATH + "/streams/{stream}/changes", responses=_ROWS_TOO)
def list_changes(
    caller: TenantCalling,
    request: Request,
    stream: StreamPath,
    starting_version: Annotated[int | None, _FROM] = None,
    ending_version: Annotated[int | None, _TO] = None,
    since: Annotated[int | None, _SINCE] = None,
    until: Annotated[int | None, _UNTIL] = None,
    limit: Limit = 100,
    cursor: CursorText = None,
    count: Annotated[
        bool | None, Query(description="Whether to count all net changes; without it where that is quick.")
    ] = None,
) -> Any:
    """What the versions of the tenant from `starting_version` to `ending_version` changed, one by one.

    As in Delta's change feed, `_change_type` is insert, update_preimage, update_postimage or delete, beside
    `_commit_version` and `_commit_timestamp`; an update is two rows and counts once for `limit`. Without
    `ending_version` to now, which for all pages is the version that the first one was of.

    Without `starting_version` net changes in the order of the key, as `diff` has them: `_change_type` is
    insert, update (with the old row in `_before`) or delete.
    """
    found = caller.tenant("snapshots:read").stream(stream)
    named = (since, until, starting_version, ending_version)
    require_range(*named)
    listing, cursors = caller.list_name("pages of changes", found.name, *named), caller.service.cursors
    if starting_version is not None:
        begun = cursors.read_as(FeedCursor, listing, cursor)
        read = partial(feed_preview, found, starting_version, ending_version, limit, begun)
    else:
        position = cursors.read_as(ChangesCursor, listing, cursor)
        read = partial(change_preview, found, since, until, limit, position, counts=count)
    page = found.scope.reading(read)
    return _rows(request, page, cursors.encode(listing, page.following))


@router.get(
    TENANT_PATH + "/streams/{stream}/export",
    responses={200: {"content": {kind.partition(";")[0]: BINARY for kind in EXPORT_TYPES.values()}}},
    response_class=StreamingResponse,
)
def export_stream(
    caller: TenantCalling,
    stream: StreamPath,
    when: When,
    format: Annotated[Literal["csv", "parquet", "jsonl", "xlsx"], Query()] = "csv",  # noqa: A002 - the parameter's name
) -> StreamingResponse:
    """Download all rows as a file, in the order of the key, or if they are many in that of their files.

    It is made while it is sent, an Excel workbook (`xlsx`) before. Damage that is found on the way breaks the
    connection off.
    """
    found = caller.tenant("snapshots:read").stream(stream)
    content = export(found, format, when)
    day = "" if when.version is not None else f" {datetime.now(UTC):%Y-%m-%d}"
    name = f"{caller.tenant_id} {found.name}{day}.{format}"
    headers = {"Content-Disposition": attachment(name, when.version)}
    return StreamingResponse(content, media_type=EXPORT_TYPES[format], headers=headers)


@router.post(
    TENANT_PATH + "/streams/{stream}/import",
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
    update: UpdateQuery,
    csv: CsvQuery,
    kind: RowsKind = None,
    key: KeyColumns = None,
    job_id: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    message: Message = "",
) -> Job:
    """Bring a file's rows into a stream, as a job.

    They are CSV, Parquet, JSON Lines or Arrow, as `Content-Type` says, or `kind` of plain octets.
    A JSON body names a staged blob instead, of any size; it is then gone. Conditions are of the stream, by
    the `ETag` that showing it gives; they are checked now, and again when the job commits.
    """
    caller.access.require(caller.environment, caller.tenant_id, "jobs:run")
    job = caller.job(caller.new_job_id(job_id, "import-"))
    found = caller.access.tenant(caller.environment, caller.tenant_id, "snapshots:write")
    tenant = caller.changing(found, stream_subject(stream), job.job_id)
    form, blob_id = _import_source(request, body, kind)
    stored_bytes = caller.service.stored_bytes
    stored_bytes.require_room(tenant, body.size)
    caller.author(message)
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
    return accepted_job(caller, response, queued)


def accepted_job(caller: TenantCaller, response: Response, queued: QueuedJob) -> Job:
    """Return a job that the request put into the queue, and say in ``Location`` where it is shown."""
    names = (quote(part, safe="") for part in (caller.environment, caller.tenant_id, queued.job_id))
    response.headers["Location"] = "/api/v1/environments/{}/tenants/{}/jobs/{}".format(*names)
    job: Job = shown(caller, caller.service.jobs.describe_job(queued))
    return job


def attachment(name: str, version: int | None = None) -> str:
    """Return a ``Content-Disposition`` with a name of any letters (RFC 6266), and with the version."""
    if version is not None:
        stem, dot, kind = name.rpartition(".")
        name = f"{stem} v{version}{dot}{kind}" if stem else f"{name} v{version}"
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"


def _import_source(request: Request, body: ReceivedBody, kind: str | None) -> tuple[str, str]:
    """Return the format of the rows, and the blob that holds them; "" if the body itself does."""
    if kind is None and media_type(request) == "application/json":
        try:
            source = ImportSource.model_validate_json(body.content.read())
        except ValidationError as error:
            raise RequestValidationError(
                [{**item, "loc": ("body", *item["loc"])} for item in error.errors(include_url=False)]
            ) from error
        return source.kind, source.blob
    return rows_kind(request, kind), ""


def _rows(request: Request, page: Preview, cursor: str | None) -> Response:
    if ARROW_TYPE in request.headers.get("accept", ""):
        headers = {"X-Total-Rows": str(page.total), "X-Total-Exact": str(page.is_total_exact).lower()}
        if cursor is not None:
            headers["X-Next-Cursor"] = cursor
        return Response(page.arrow(), media_type=ARROW_TYPE, headers={**headers, "Vary": "Accept"})
    head = {
        "total": page.total,
        "is_total_exact": page.is_total_exact,
        "version": page.version,
        "stream_version": page.stream_version,
        "next_cursor": cursor,
        "columns": page.rows.column_names,
    }
    text = json.dumps(head, ensure_ascii=False).encode()
    body = text[:-1] + b', "rows": [' + b",".join(page.json_rows()) + b"]}"
    return Response(body, media_type="application/json", headers={"Vary": "Accept"})
