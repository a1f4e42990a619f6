"""Files: upload, download; staged blobs, and what makes them files."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Request, Response
from fastapi.concurrency import contextmanager_in_threadpool, run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, Field
from starlette.requests import ClientDisconnect

from freezeframe.asgi.bodies import Received, announced_size, require_digest, truncated_body
from freezeframe.asgi.caller import CONDITIONAL, TenantCalling
from freezeframe.asgi.problems import problem_response, to_openapi
from freezeframe.asgi.routes.parameters import (
    BINARY,
    OCTETS,
    AsOf,
    FilePathText,
    Message,
    TenantVersion,
    request_content,
)
from freezeframe.asgi.routes.streams import attachment
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, ResponseModel, api_router, example
from freezeframe.errors import InvalidOption, TooLarge
from freezeframe.identifiers import FilePath
from freezeframe.service import files
from freezeframe.service.exports import Selection, bundle, selected_files
from freezeframe.service.files import FileWrite, require_all_conditions, write_files
from freezeframe.service.operations.caller import JOB_PREFIX, TenantCaller
from freezeframe.service.operations.files import File
from freezeframe.service.operations.operation import seen_version
from freezeframe.service.staged_blobs import too_large
from freezeframe.store import Tenant
from freezeframe.store.files import Content
from freezeframe.store.job import find_committed_job
from freezeframe.store.model.json_fields import FileEntry
from freezeframe.store.transaction.conditions import TENANT, Conditions, etag_of, file_subject

router = api_router("files")
_RAW = request_content({OCTETS: BINARY})
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_WHOLE_BYTES_MAX = 1024 * 1024


@router.put(
    TENANT_PATH + "/files/{path:path}",
    openapi_extra=_RAW,
    responses={201: {"model": File}},
    dependencies=CONDITIONAL,
)
def write_file(
    caller: TenantCalling,
    path: FilePathText,
    body: Received,
    response: Response,
    sealed: Annotated[bool | None, Query(description="Encrypted at rest; as it is without it.")] = None,
    message: Message = "",
) -> File:
    """Upload a file, as its new version; `Content-Digest: sha-256=:…:` is checked before anything happens."""
    tenant = caller.tenant("snapshots:write", file_subject(path))
    author = caller.author(message)
    with caller.audit_change("file.write", path, size=body.size):
        entry, is_new = files.write_file(
            tenant, path, lambda: files.rewound(body.content), author, sealed=sealed
        )
    response.status_code = 201 if is_new else 200
    response.headers["ETag"] = etag_of(entry)
    return File.of(entry)


@router.get(
    TENANT_PATH + "/files/{path:path}",
    responses={
        200: {"content": {OCTETS: BINARY}},
        206: {"content": {OCTETS: BINARY}},
        **to_openapi(304, 416),
    },
    response_class=StreamingResponse,
    dependencies=CONDITIONAL,
)
def read_file(
    caller: TenantCalling,
    path: FilePathText,
    version: TenantVersion,
    as_of: AsOf = None,
    range_: Annotated[str | None, Header(alias="range")] = None,
    if_range: Annotated[str | None, Header()] = None,
) -> Response:
    """Download a file, or with `Range` a part of it; a sealed one needs `secrets:read` and is audited."""
    tenant = caller.tenant("snapshots:read")
    is_now = version is None and as_of is None
    if tenant.version >= 0:
        # One version for the entry and the bytes: the file may be sealed meanwhile.
        version, as_of = seen_version(tenant, version, as_of), None
    entry = tenant.files.entry(path, version=version, as_of=as_of)
    etag = etag_of(entry)
    headers = {"ETag": etag, "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache"}
    if caller.conditions.is_fresh(etag):
        return Response(status_code=304, headers=headers)
    _note_sealed(caller, entry)
    headers |= {
        "Last-Modified": entry.modified.strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "Content-Disposition": attachment(entry.path.rpartition("/")[2], None if is_now else version),
    }
    kind = "application/octet-stream"
    byte_range = None if range_ is None or if_range not in {None, etag} else _RANGE.fullmatch(range_.strip())
    if entry.size <= _WHOLE_BYTES_MAX or entry.sealed:
        content = tenant.files.read(path, version=version, as_of=as_of)
        size = len(content)
        chunks = iter([content])
    else:
        size, chunks = entry.size, tenant.files.chunks(path, version=version, as_of=as_of)
    if byte_range is not None:
        first, last = _bounds(byte_range, size)
        if first > last:
            return _beyond(caller, size)
        part = (
            files.slice_bytes(chunks, first, last)
            if entry.size <= _WHOLE_BYTES_MAX or entry.sealed
            else tenant.files.part(path, first, last, tenant_version=version, as_of=as_of)
        )
        part_headers = {
            "Content-Range": f"bytes {first}-{last}/{size}",
            "Content-Length": str(last - first + 1),
        }
        return StreamingResponse(part, 206, {**headers, **part_headers}, kind)
    if size <= _WHOLE_BYTES_MAX:
        return Response(b"".join(chunks), headers=headers, media_type=kind)
    return StreamingResponse(chunks, headers={**headers, "Content-Length": str(size)}, media_type=kind)


def _note_sealed(caller: TenantCaller, entry: FileEntry) -> None:
    # The audit entry comes before the bytes, so that no secret is read without a trace.
    if entry.sealed:
        caller.note_unsealing(entry.path, version=entry.version)


def _beyond(caller: TenantCaller, size: int) -> Response:
    error = InvalidOption(
        "The range begins after the file's end.",
        cause=f"The file has {size:,} bytes.",
        remedy="Request a range within the file; Content-Range has its size.",
        code="RANGE_NOT_SATISFIABLE",
    )
    answer = problem_response(error, caller.request_id, status=416)
    answer.headers["Content-Range"] = f"bytes */{size}"
    return answer


def _bounds(byte_range: re.Match[str], size: int) -> tuple[int, int]:
    """Return the first and last byte of a range; the first is behind the last if the range is empty."""
    first, last = byte_range[1], byte_range[2]
    if not first:
        return (max(0, size - int(last)), size - 1) if last and int(last) else (1, 0)
    return int(first), min(int(last), size - 1) if last else size - 1


_ZIP = "application/zip"
_SELECTED_MAX = 1000


@router.get(
    TENANT_PATH + "/bundle",
    response_class=StreamingResponse,
    responses={200: {"content": {_ZIP: BINARY}}},
)
def download_bundle(
    caller: TenantCalling,
    version: TenantVersion,
    file: Annotated[list[str] | None, Query(max_length=_SELECTED_MAX, description="Paths of files.")] = None,
    folder: Annotated[
        list[str] | None, Query(max_length=_SELECTED_MAX, description="Paths of folders.")
    ] = None,
    stream: Annotated[
        list[str] | None, Query(max_length=_SELECTED_MAX, description="Streams, as CSV.")
    ] = None,
) -> StreamingResponse:
    """Download files, folders and streams as one zip; sealed ones as by themselves."""
    tenant = caller.tenant("snapshots:read")
    chosen = Selection(tuple(file or ()), tuple(folder or ()), tuple(stream or ()))
    view = tenant.at(tenant.version if version is None else version)
    entries = selected_files(view, chosen)
    for entry in entries:
        _note_sealed(caller, entry)
    name = f"{caller.tenant_id}-version-{view.version}.zip"
    headers = {"Content-Disposition": attachment(name)}
    return StreamingResponse(bundle(view, entries, chosen.streams), media_type=_ZIP, headers=headers)


# Staged blobs: a file of any size is sent first and waits outside of the tenant; ``file-batches`` makes one
# or several of them files, in one version.


class StagedBlob(ResponseModel):
    """Bytes that wait for the request that publishes them."""

    id: str
    size: int
    sha256: str
    expires: datetime


_Path = Annotated[str, Field(min_length=1, max_length=800)]


class BatchedFile(RequestModel):
    """A staged blob, and the file that it becomes."""

    blob: str = Field(default="", max_length=64, description="The blob's id; none for `only_check`.")
    path: _Path
    sealed: bool | None = Field(default=None, description="Encrypted at rest; as it is without it.")
    if_match: str | None = Field(default=None, max_length=1000, description="As the header `If-Match`.")
    if_none_match: str | None = Field(
        default=None, max_length=1000, description="As the header `If-None-Match`."
    )


_BATCH_MAX = 1000


class FileBatch(RequestModel):
    """Staged blobs that become files together, in one version of the tenant."""

    model_config = ConfigDict(
        json_schema_extra=example(files=[{"blob": "0" * 32, "path": "mappings/a.csv", "if_none_match": "*"}])
    )

    files: list[BatchedFile] = Field(min_length=1, max_length=_BATCH_MAX)
    only_check: bool = Field(default=False, description="Check the conditions, and write nothing.")
    message: str = Field(default="", max_length=1000)


class FilesWritten(ResponseModel):
    """The version that has the files, and each of them in the order of the request."""

    tenant_version: int
    files: list[File]


uploads = api_router("uploads")
_ANY_BODY_BYTES = 2**53  # a blob has its own limit
PathText = Annotated[
    str,
    Query(
        max_length=800,
        description="The file that it will be: its conditions are checked before any byte is read.",
    ),
]


@uploads.post(
    TENANT_PATH + "/blobs",
    status_code=201,
    openapi_extra=_RAW,
    max_body_size=_ANY_BODY_BYTES,
    dependencies=CONDITIONAL,
)
async def stage_blob(caller: TenantCalling, request: Request, path: PathText = "") -> StagedBlob:
    """Send the bytes of a file; they are not visible until a request publishes them.

    `POST …/file-batches` makes it a file, `POST …/import` brings its rows into a stream. It is whole or not
    there: after an interruption it is sent again. `Content-Digest: sha-256=:…:` is checked.
    """
    blobs = caller.service.blobs
    announced = announced_size(request)
    blob_id = caller.new_id().removeprefix(JOB_PREFIX)
    known = str(FilePath(path)) if path else ""
    folder = await run_in_threadpool(_require_room, caller, known, announced, blob_id)
    # Opened, written and synced in threads, so that a slow disk blocks no other request.
    async with contextmanager_in_threadpool(blobs.stage(folder, blob_id, known)) as writer:
        try:
            async for chunk in request.stream():
                await run_in_threadpool(writer.write, chunk)
        except ClientDisconnect:
            raise truncated_body(writer.size, announced) from None
        if announced is not None and writer.size != announced:
            raise truncated_body(writer.size, announced)
        require_digest(request, writer.sha256)
        await run_in_threadpool(caller.require_unchanged)
    request.state.body_sha256 = writer.sha256
    return await run_in_threadpool(_staged, caller, blob_id)


@uploads.post(TENANT_PATH + "/file-batches", responses=to_openapi(409), dependencies=CONDITIONAL)
def write_batch(caller: TenantCalling, order: FileBatch) -> FilesWritten:
    """Make staged blobs files, in one version of the tenant, all of them or none.

    Each file has conditions of its own; where they do not hold `paths` of the problem names the files, and
    `etags` what they are now (null: not there). Blobs that were published are gone. With `only_check`
    nothing is written: the conditions are checked, before any bytes are sent.
    """
    tenant = caller.tenant("snapshots:write", None)
    done = None if caller.identity is None else find_committed_job(tenant.context, caller.identity.job_id)
    if order.only_check:
        _require_conditions(tenant, [_write_of(caller, file, bytes) for file in order.files])
        return FilesWritten(tenant_version=tenant.version, files=[])
    if done is None:
        version, written = _write_batch(caller, tenant, order)
    else:
        version, then = done.tenant_version, tenant.at(done.tenant_version).files
        written = [then.entry(FilePath(file.path)) for file in order.files]
    return FilesWritten(tenant_version=version, files=[File.of(entry) for entry in written])


def _write_batch(caller: TenantCaller, tenant: Tenant, order: FileBatch) -> tuple[int, list[FileEntry]]:
    """Return the new version and its files; all refusals come before the audit entry."""
    blobs, folder = caller.service.blobs, caller.folder()
    with blobs.publish(folder, *[file.blob for file in order.files]) as content:
        writes = [_write_of(caller, file, partial(content, file.blob)) for file in order.files]
        paths = [str(write.path) for write in writes]
        _require_conditions(tenant, writes)
        with caller.audit_change("file.write", *paths, batch=len(paths)):
            return write_files(tenant, writes, caller.author(order.message))


def _write_of(caller: TenantCaller, file: BatchedFile, content: Callable[[], Content]) -> FileWrite:
    conditions = Conditions(file.if_match, file.if_none_match, caller.conditions.strict)
    return FileWrite(FilePath(file.path), content, conditions, file.sealed)


def _require_conditions(tenant: Tenant, writes: Sequence[FileWrite]) -> None:
    if len({str(write.path) for write in writes}) < len(writes):
        raise InvalidOption("A path is named twice.", remedy="Name each file of the batch once.")
    require_all_conditions(tenant.context.log.current_state(), writes)


def _require_room(caller: TenantCaller, path: str, announced: int | None, blob_id: str) -> str:
    """Refuse a blob before its bytes are read, if that is known by then; return the tenant's folder."""
    if caller.conditions.are_given and not path:
        raise InvalidOption(
            "A condition needs the path of its file.",
            cause="If-Match and If-None-Match apply to the file that the blob becomes.",
            remedy="Name the file with path=, or send the conditions with the batch that publishes the blob.",
        )
    tenant = caller.tenant("snapshots:write", file_subject(path) if path else TENANT)
    blobs = caller.service.blobs
    if announced is not None and announced > blobs.bytes_max:
        raise too_large(blobs.bytes_max)
    folder = caller.folder()
    blobs.require_place(folder, blob_id)
    caller.service.stored_bytes.require_room(tenant, announced or 0, path)
    return folder


def _staged(caller: TenantCaller, blob_id: str) -> StagedBlob:
    blobs, folder = caller.service.blobs, caller.folder()
    blob = blobs.get(folder, blob_id)
    try:
        found = caller.access.tenant(caller.environment, caller.tenant_id, "snapshots:write")
        caller.service.stored_bytes.require_room_for_waiting(found, folder)
    except TooLarge:
        blobs.remove(blob)
        raise
    return StagedBlob.of(blob)
