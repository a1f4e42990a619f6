"""Resumable uploads for large files, by tus 1.0: core, creation, termination, expiration.

Bytes wait outside of the tenant. The last of them makes the file appear, as one new version; where that
fails, a request without bytes at the end of the upload tries it again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from email.utils import format_datetime
from functools import partial
from typing import Annotated, Any, cast, get_args
from urllib.parse import quote

from fastapi import Depends, Header, Path, Request, Response
from fastapi.concurrency import contextmanager_in_threadpool, run_in_threadpool
from starlette.requests import ClientDisconnect

from freezeframe.asgi.dependencies.caller import TenantCaller, TenantCalling
from freezeframe.asgi.media_type import media_type
from freezeframe.asgi.models.files import File, FileBatch, FilesWritten, UploadState
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.clock import moment
from freezeframe.errors import InvalidOption, NotFound, PreconditionFailed, TooLarge, UnreadableRequest
from freezeframe.identifiers import FilePath
from freezeframe.service.base.conditions import Conditions
from freezeframe.service.base.idempotency import JOB_PREFIX
from freezeframe.service.files.files import (
    FileWrite,
    etag_of,
    require_all_conditions,
    write_file,
    write_files,
)
from freezeframe.service.jobs.uploads import AnnouncedUpload, Purpose, Upload
from freezeframe.store import Tenant
from freezeframe.store.model.author import Author
from freezeframe.store.transaction.job_status import find_committed_job

router = tenant_router("uploads")
TUS_VERSION = "1.0.0"
_TUS = {"Tus-Resumable": TUS_VERSION}
_CONTENT_TYPE = "application/offset+octet-stream"
_ANY_BODY_BYTES = 2**53  # an upload has its own limit, which its length was held to
_SHA256_LENGTH = 64
_RAW: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {_CONTENT_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}
UploadId = Annotated[str, Path(min_length=1, max_length=64, description="The upload's id.")]
Length = Annotated[int, Header(alias="upload-length", ge=0, le=2**53, description="All bytes together.")]
Offset = Annotated[int, Header(alias="upload-offset", ge=0, le=2**53, description="Where it stands.")]


def require_tus(
    tus_resumable: Annotated[
        str, Header(description="The version of tus that the client speaks.")
    ] = TUS_VERSION,
) -> None:
    """Refuse another version of tus.

    Raises:
        PreconditionFailed: the client speaks another one.
    """
    if tus_resumable != TUS_VERSION:
        raise PreconditionFailed(
            f"This service speaks tus {TUS_VERSION}, not {tus_resumable}.", remedy="Use that version."
        )


_TUS_ONLY = [Depends(require_tus)]


@router.options("/uploads", status_code=204, response_class=Response)
def tus_options(caller: TenantCalling) -> Response:
    """What of tus the service speaks, and the largest upload."""
    caller.tenant("snapshots:write")
    told = {
        "Tus-Version": TUS_VERSION,
        "Tus-Extension": "creation,termination,expiration",
        "Tus-Max-Size": str(caller.service.settings.service_upload_bytes_max),
    }
    return Response(status_code=204, headers={**_TUS, **told})


@router.post("/uploads", status_code=201, responses=to_openapi(412), dependencies=_TUS_ONLY)
def begin_upload(
    caller: TenantCalling,
    response: Response,
    upload_length: Length,
    upload_metadata: Annotated[
        str,
        Header(
            max_length=4000,
            description="`path`, and if wanted `sha256` (hexadecimal), `sealed` and `purpose`: `file`, "
            "`batch`, or `import`, which has no path.",
        ),
    ],
) -> UploadState:
    """Begin an upload; `Location` takes its bytes.

    It becomes a file with its last byte. One for a batch or an import waits for the request that names it.
    """
    tenant = caller.tenant("snapshots:write")
    told = _metadata(upload_metadata)
    purpose = _purpose(told)
    path = "" if purpose == "import" else str(FilePath(told["path"]))
    sha256 = _sha256(told.get("sha256", ""))
    upload_id, stored_bytes = caller.new_id().removeprefix(JOB_PREFIX), caller.service.stored_bytes
    caller.service.uploads.require_place(caller.folder(), upload_id)
    stored_bytes.limit_tenant(tenant, upload_length, path)
    with caller.audit_change("upload.begin", path, size=upload_length):
        sealed = {"": None, "true": True, "false": False}.get(told.get("sealed", ""))
        upload = caller.service.uploads.create(
            caller.folder(),
            f"{caller.principal.kind}:{caller.principal.id}",
            AnnouncedUpload(path, upload_length, sha256, sealed, purpose),
            upload_id=upload_id,
        )
        try:
            stored_bytes.require_room_for_waiting(tenant, caller.folder())
        except TooLarge:
            caller.service.uploads.remove(upload)
            raise
    if upload.is_complete and purpose == "file":
        _publish(caller, upload)
    response.headers.update({**_TUS, "Location": _location(caller, upload), **_expires(upload)})
    return UploadState(**upload.to_json())


@router.head(
    "/uploads/{upload_id}", response_class=Response, responses=to_openapi(412), dependencies=_TUS_ONLY
)
def upload_offset(caller: TenantCalling, upload_id: UploadId) -> Response:
    """How far an upload has come."""
    upload = _find_upload(caller, upload_id)
    told = {"Upload-Offset": str(upload.offset), "Upload-Length": str(upload.length)}
    return Response(headers={**_TUS, **told, **_expires(upload), "Cache-Control": "no-store"})


@router.patch(
    "/uploads/{upload_id}",
    status_code=204,
    response_class=Response,
    openapi_extra=_RAW,
    responses=to_openapi(412, 415),
    dependencies=_TUS_ONLY,
    max_body_size=_ANY_BODY_BYTES,
)
async def continue_upload(
    caller: TenantCalling, request: Request, upload_id: UploadId, upload_offset: Offset
) -> Response:
    """Add bytes to an upload; with the last of them the file appears, and `ETag` is its own.

    One for a batch or an import is then complete, and waits.
    """
    kind = media_type(request)
    if kind != _CONTENT_TYPE:
        raise UnreadableRequest(
            "This is not a part of an upload.",
            cause=f"Its Content-Type is {kind or 'missing'}.",
            remedy=f"Send it as {_CONTENT_TYPE}.",
        )
    upload = await run_in_threadpool(_find_upload, caller, upload_id)
    uploads = caller.service.uploads
    # Opened, written and synced in threads, so that a slow disk blocks no other request.
    async with contextmanager_in_threadpool(uploads.open_append(upload, upload_offset)) as writer:
        try:
            async for chunk in request.stream():
                await run_in_threadpool(writer.write, chunk)
        except ClientDisconnect:
            raise UnreadableRequest(
                "The connection broke.", remedy="Ask for the upload's offset (HEAD) and go on from there."
            ) from None
    headers = {**_TUS, "Upload-Offset": str(writer.offset)}
    if writer.offset == upload.length and upload.purpose == "file":
        headers["ETag"] = await run_in_threadpool(_publish, caller, upload)
    return Response(status_code=204, headers=headers)


@router.delete(
    "/uploads/{upload_id}",
    status_code=204,
    response_class=Response,
    responses=to_openapi(412),
    dependencies=_TUS_ONLY,
)
def give_up_upload(caller: TenantCalling, upload_id: UploadId) -> Response:
    """Give an upload up; its bytes are removed."""
    upload = _find_upload(caller, upload_id)
    with caller.audit_change("upload.remove", upload.path):
        caller.service.uploads.remove(upload)
    return Response(status_code=204, headers=_TUS)


@router.post("/file-batches", responses=to_openapi(409, 412, 428))
def write_batch(caller: TenantCalling, order: FileBatch) -> FilesWritten:
    """Make finished uploads of the purpose `batch` files, in one version of the tenant, all of them or none.

    Where conditions do not hold `paths` of the problem names the files. The uploads are then gone.
    """
    tenant = caller.tenant("snapshots:write")
    done = None if caller.identity is None else find_committed_job(tenant.place, caller.identity.job_id)
    version = _write_batch(caller, tenant, order) if done is None else done.tenant_version
    for one in order.files:
        with suppress(NotFound):
            caller.service.uploads.remove(caller.service.uploads.get(caller.folder(), one.upload))
    written = tenant.at(version).files
    return FilesWritten(
        tenant_version=version, files=[File.of(written.entry(FilePath(one.path))) for one in order.files]
    )


def _write_batch(caller: TenantCaller, tenant: Tenant, order: FileBatch) -> int:
    """The new version; all refusals come before the audit entry."""
    uploads, folder = caller.service.uploads, caller.folder()
    writes, size = [], 0
    for one in order.files:
        upload = uploads.complete(folder, one.upload, "batch")
        sealed = upload.sealed if one.sealed is None else one.sealed
        conditions = Conditions(one.if_match, one.if_none_match)
        writes.append(FileWrite(FilePath(one.path), partial(uploads.content, upload), conditions, sealed))
        size += upload.length
    paths = [str(one.path) for one in writes]
    if len(set(paths)) < len(paths):
        raise InvalidOption("A path is named twice.", remedy="Name each file of the batch once.")
    tenant = caller.service.stored_bytes.limit_tenant(tenant, size, *paths)
    strict = caller.service.settings.service_requires_conditions
    require_all_conditions(tenant.files, writes, strict=strict)
    with caller.audit_change("file.write", *paths, batch=len(paths)):
        return write_files(tenant, writes, Author(caller.who, order.message), strict=strict)


def _publish(caller: TenantCaller, upload: Upload) -> str:
    tenant = caller.tenant("snapshots:write")
    tenant = caller.service.stored_bytes.limit_tenant(tenant, upload.length, upload.path)
    uploads = caller.service.uploads
    with caller.audit_change("file.write", upload.path, size=upload.length):
        entry, _ = write_file(
            tenant, upload.path, lambda: uploads.content(upload), Author(caller.who), sealed=upload.sealed
        )
    uploads.remove(upload)
    return etag_of(entry)


def _find_upload(caller: TenantCaller, upload_id: str) -> Upload:
    caller.tenant("snapshots:write")
    return caller.service.uploads.get(caller.folder(), upload_id)


def _metadata(header: str) -> dict[str, str]:
    found = {}
    for pair in header.split(","):
        name, _, value = pair.strip().partition(" ")
        try:
            found[name] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError):
            raise UnreadableRequest(
                "Upload-Metadata cannot be read.",
                cause="The value of a name is not the base64 of a text.",
                remedy="Send names, each with its value in base64.",
            ) from None
    return found


def _purpose(told: Mapping[str, str]) -> Purpose:
    found = told.get("purpose", "file")
    if found not in get_args(Purpose):
        raise UnreadableRequest(
            f"An upload has no purpose {found!r}.", remedy="Send file, batch or import, or leave it out."
        )
    if found != "import" and "path" not in told:
        raise UnreadableRequest(
            "Upload-Metadata has no path.",
            cause="An upload becomes a file, unless its purpose is import.",
            remedy="Send path and its value in base64.",
        )
    return cast("Purpose", found)


def _sha256(text: str) -> str:
    is_one = len(text) == _SHA256_LENGTH and all(letter in "0123456789abcdef" for letter in text.lower())
    if text and not is_one:
        raise UnreadableRequest(f"{text!r} is not a SHA-256.", remedy="Send 64 hexadecimal digits.")
    return text.lower()


def _location(caller: TenantCaller, upload: Upload) -> str:
    place = (quote(part, safe="") for part in (caller.environment, caller.tenant_id, upload.id))
    return "/api/v1/environments/{}/tenants/{}/uploads/{}".format(*place)


def _expires(upload: Upload) -> dict[str, str]:
    return {"Upload-Expires": format_datetime(moment(upload.expires_ms), usegmt=True)}
