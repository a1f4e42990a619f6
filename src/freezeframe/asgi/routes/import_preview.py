"""What the import of a file would do, before it is a job."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.media_type import media_type
from freezeframe.asgi.models.import_preview import ImportPreview
from freezeframe.asgi.models.streams import ImportMode
from freezeframe.asgi.received_body import Received
from freezeframe.asgi.routes.parameters import StreamPath
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.errors import TooLarge, UnreadableRequest
from freezeframe.service.import_preview import PREVIEW_BYTES_MAX, ImportFile, import_preview
from freezeframe.service.jobs import IMPORT_KINDS

router = tenant_router("streams")
_RAW: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in IMPORT_KINDS},
    }
}


@router.post("/streams/{stream}/import-preview", openapi_extra=_RAW)
def preview_import(
    caller: TenantCalling,
    request: Request,
    stream: StreamPath,
    body: Received,
    key: Annotated[list[str] | None, Query(description="The key's columns.", max_length=50)] = None,
    mode: Annotated[ImportMode, Query(description="`full`: what the file lacks is deleted.")] = "upsert",
    beginning: Annotated[bool, Query(description="The body is only the beginning of a longer file.")] = False,  # noqa: FBT002 - a query
) -> ImportPreview:
    """Tell what importing a file would do: its columns, how many rows are new or change, and examples.

    Nothing is kept. Of a CSV or JSON Lines file of more than 16 MiB send the beginning, with
    `beginning=true`: its columns and types are told, and rows are not counted. It needs the scopes
    `snapshots:write` and `snapshots:read`: counts and examples tell what the stream holds.
    """
    caller.access.require(caller.environment, caller.tenant_id, "snapshots:read")
    tenant = caller.tenant("snapshots:write")
    given = media_type(request)
    if given not in IMPORT_KINDS:
        raise UnreadableRequest(
            f"Rows cannot be imported from {given or 'a body without a Content-Type'}.",
            remedy=f"Send one of {', '.join(IMPORT_KINDS)}.",
        )
    if body.size > PREVIEW_BYTES_MAX:
        raise TooLarge(
            f"A preview takes at most {PREVIEW_BYTES_MAX:,} bytes.",
            remedy="Send the file's beginning with beginning=true, or import it without a preview.",
        )
    file = ImportFile(IMPORT_KINDS[given], body.content, is_beginning=beginning)
    return ImportPreview.of(import_preview(tenant, stream, file, key or (), mode))
