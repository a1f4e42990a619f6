"""Staged blobs: a file of any size is sent first, and published by a request of its own.

The bytes wait outside of the tenant. ``file-batches`` makes one or several of them files, in one version.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.concurrency import contextmanager_in_threadpool, run_in_threadpool
from pydantic import ConfigDict, Field
from starlette.requests import ClientDisconnect

from freezeframe.asgi.bodies import announced_size, require_digest, truncated_body
from freezeframe.asgi.caller import CONDITIONAL, JOB_PREFIX, TenantCaller, TenantCalling
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.parameters import BINARY, OCTETS, request_content
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, ResponseModel, api_router, example
from freezeframe.errors import InvalidOption, TooLarge
from freezeframe.identifiers import FilePath
from freezeframe.service.files import FileWrite, require_all_conditions, write_files
from freezeframe.service.operations.catalogue import File
from freezeframe.service.staged_blobs import too_large
from freezeframe.store import Tenant
from freezeframe.store.files import Content
from freezeframe.store.job import find_committed_job
from freezeframe.store.model.json_fields import FileEntry
from freezeframe.store.transaction.conditions import TENANT, Conditions, file_subject


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


router = api_router("uploads")
_ANY_BODY_BYTES = 2**53  # a blob has its own limit
_RAW = request_content({OCTETS: BINARY})
BlobId = Annotated[str, Path(min_length=1, max_length=64, description="The blob's id.")]
PathText = Annotated[
    str,
    Query(
        max_length=800,
        description="The file that it will be: its conditions are checked before any byte is read.",
    ),
]


@router.post(
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


@router.delete(TENANT_PATH + "/blobs/{blob_id}", status_code=204, response_class=Response)
def remove_blob(caller: TenantCalling, blob_id: BlobId) -> Response:
    """Give up a staged blob."""
    caller.tenant("snapshots:write")
    caller.service.blobs.remove(caller.service.blobs.get(caller.folder(), blob_id))
    return Response(status_code=204)


@router.post(TENANT_PATH + "/file-batches", responses=to_openapi(409), dependencies=CONDITIONAL)
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
