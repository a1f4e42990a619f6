"""Several files, folders and streams of a tenant as one download."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.routes.parameters import TenantVersion
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.asgi.routes.streams import attachment
from freezeframe.service.bundle import Selection, bundled, selected_files

router = tenant_router("files")
_ZIP = "application/zip"
_NAMES_MAX = 1000


@router.get(
    "/bundle",
    response_class=StreamingResponse,
    responses={200: {"content": {_ZIP: {"schema": {"type": "string", "format": "binary"}}}}},
)
def download_bundle(
    caller: TenantCalling,
    version: TenantVersion,
    file: Annotated[list[str] | None, Query(max_length=_NAMES_MAX, description="Paths of files.")] = None,
    folder: Annotated[list[str] | None, Query(max_length=_NAMES_MAX, description="Paths of folders.")] = None,
    stream: Annotated[list[str] | None, Query(max_length=_NAMES_MAX, description="Streams, as CSV.")] = None,
) -> StreamingResponse:
    """Download files, folders and streams as one zip; each sealed file leaves an entry in the audit."""
    tenant = caller.tenant("snapshots:read")
    chosen = Selection(tuple(file or ()), tuple(folder or ()), tuple(stream or ()))
    view = tenant.at(tenant.version if version is None else version)
    entries = selected_files(view, chosen)
    for entry in entries:
        if entry.sealed:
            caller.note("file.unseal", entry.path, version=entry.version)
    name = f"{caller.tenant_id}-version-{view.version}.zip"
    headers = {"Content-Disposition": attachment(name)}
    return StreamingResponse(bundled(view, entries, chosen.streams), media_type=_ZIP, headers=headers)
