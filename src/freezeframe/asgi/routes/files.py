"""Files and folders: list, upload, download, move, delete, restore."""

import re
from datetime import datetime
from typing import Annotated

from fastapi import Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import ConfigDict, Field

from freezeframe.asgi.bodies import Received
from freezeframe.asgi.caller import CONDITIONAL, TenantCaller, TenantCalling
from freezeframe.asgi.problems import problem_response, to_openapi
from freezeframe.asgi.routes.history import RestorationOrder, restore
from freezeframe.asgi.routes.parameters import (
    BINARY,
    OCTETS,
    AsOf,
    CursorText,
    FilePathText,
    Limit,
    Message,
    TenantVersion,
    request_content,
)
from freezeframe.asgi.routes.streams import attachment
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, ResponseModel, api_router, example
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import FilePath
from freezeframe.service import files
from freezeframe.service.exports import Selection, bundle, selected_files
from freezeframe.service.files import delete_files, select_paths
from freezeframe.service.operations.catalogue import File
from freezeframe.store import Tenant
from freezeframe.store.maintenance.restore import Restoration
from freezeframe.store.model.json_fields import FileEntry
from freezeframe.store.tenant_log.history import require_one_version
from freezeframe.store.transaction.conditions import etag_of, file_subject


class FilePage(ResponseModel):
    """What a folder holds, at one version of the tenant; the folders come with the first page."""

    version: int
    folder: str
    folders: list[str]
    files: list[File]
    next_cursor: str | None


_Path = Annotated[str, Field(min_length=1, max_length=800)]
_NamedPath = Annotated[_Path, Field(description="A path such as `mappings/a.csv`.")]


class FileReturn(RequestModel):
    """A file that is to be brought back as it was at a version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(path="mappings/a.csv", version=9))

    path: _NamedPath
    version: int = Field(ge=0, le=2**53)
    message: str = Field(default="", max_length=1000)


_NAMES_MAX = 10_000


class FileDeletion(RequestModel):
    """Files, and folders with all below them, that are to go in one version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(paths=["a.csv"], folders=["exports"]))

    paths: list[_Path] = Field(default_factory=list, max_length=_NAMES_MAX)
    folders: list[_Path] = Field(default_factory=list, max_length=_NAMES_MAX)
    message: str = Field(default="", max_length=1000)


class FilesDeleted(ResponseModel):
    """The version without them, and every path that went."""

    tenant_version: int
    paths: list[str]


router = api_router("files")
_RAW = request_content({OCTETS: BINARY})
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_WHOLE_BYTES_MAX = 1024 * 1024
FolderText = Annotated[str, Query(max_length=800, description="A folder; the tenant's own without it.")]


@router.get(TENANT_PATH + "/files")
def list_files(
    caller: TenantCalling,
    version: TenantVersion,
    folder: FolderText = "",
    recursive: Annotated[bool, Query(description="Those below it as well.")] = False,  # noqa: FBT002 - a query
    as_of: AsOf = None,
    limit: Limit = 1000,
    cursor: CursorText = None,
) -> FilePage:
    """List what a folder holds, now or earlier."""
    tenant = caller.tenant("snapshots:read")
    listing = caller.list_name("files", folder, recursive)
    # All pages are of the same version.
    position = caller.service.cursors.read(listing, cursor)
    seen, after = position or (_version(tenant, version, as_of), "")
    if seen < 0:
        return FilePage(version=seen, folder=folder, folders=[], files=[], next_cursor=None)
    page = files.folder_page(tenant.files, folder, after, limit, recursive=recursive, tenant_version=seen)
    return FilePage(
        version=seen,
        folder=folder,
        folders=list(page.folders),
        files=list(map(File.of, page.files)),
        next_cursor=caller.service.cursors.encode(
            listing, [seen, page.files[-1].path] if page.has_more else None
        ),
    )


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
        version, as_of = _version(tenant, version, as_of), None
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


@router.post(TENANT_PATH + "/file-returns", dependencies=CONDITIONAL)
def return_file(caller: TenantCalling, order: FileReturn) -> Restoration:
    """Bring a file back as it was at a version of the tenant, deleted or changed since.

    With `If-None-Match: *` a newer file of that path is left as it is, and the request refused.
    """
    known = str(FilePath(order.path))
    whole = RestorationOrder(version=order.version, streams=[], files=[known], message=order.message)
    return restore(caller, whole, "file.return", file_subject(known), known)


def _version(tenant: Tenant, version: int | None, as_of: datetime | None) -> int:
    """Return the requested version: by number, by moment, or the newest."""
    require_one_version({"version": version, "as_of": as_of})
    newest = tenant.version
    if newest < 0 or version is not None:
        return newest if version is None else version
    return newest if as_of is None else tenant.at(as_of).version


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


@router.post(TENANT_PATH + "/file-deletions", dependencies=CONDITIONAL)
def delete_many(caller: TenantCalling, order: FileDeletion) -> FilesDeleted:
    """Remove files and folders in one version of the tenant, all of them or none; the past stays.

    `If-Match` is the tenant's `ETag`.
    """
    tenant = caller.tenant("snapshots:delete")
    named = select_paths(tenant.files, order.paths, order.folders)
    with caller.audit_change("file.delete", *named, **({"folders": order.folders} if order.folders else {})):
        version, gone = delete_files(tenant, order.paths, order.folders, caller.author(order.message))
    return FilesDeleted(tenant_version=version, paths=gone)


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
