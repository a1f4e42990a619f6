"""The audit, of a tenant and of the service: list, export, verification."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Response
from fastapi.responses import StreamingResponse

from freezeframe.asgi.caller import Calling, TenantCalling
from freezeframe.asgi.routes.parameters import CursorText, Limit, MomentText
from freezeframe.asgi.routing import TENANT_PATH, api_router
from freezeframe.service.access.audit import EXPORT_TYPES, AuditFilter, AuditScope, export_lines
from freezeframe.service.operations.caller import Caller
from freezeframe.service.operations.keys import AuditPage, audit_page

router = api_router("audit")
_OWN = AuditScope()
Format = Annotated[
    Literal["jsonl", "csv"],
    Query(description="`csv` is for spreadsheets: a text that would be a formula there follows a `'`."),
]
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {kind: {"schema": {"type": "string"}} for kind in EXPORT_TYPES.values()},
        "description": "The entries.",
    }
}


def requested_entries(
    action: Annotated[str | None, Query(max_length=60, description="Only this action.")] = None,
    subject: Annotated[
        str | None, Query(max_length=800, description="Only this file, stream, job or key.")
    ] = None,
    principal: Annotated[
        str | None,
        Query(max_length=200, description="Only of whom this is a part: `key:0a1b…`, `person:…`, a name."),
    ] = None,
    since: Annotated[MomentText | None, Query(description="Only from this moment on (RFC 3339).")] = None,
    until: Annotated[MomentText | None, Query(description="Only before this moment (RFC 3339).")] = None,
) -> AuditFilter:
    """Return the filter of audit entries that the request's parameters describe."""
    return AuditFilter(action, subject, principal, _milliseconds(since), _milliseconds(until))


RequestedEntries = Annotated[AuditFilter, Depends(requested_entries)]


@router.get(f"{TENANT_PATH}/audit")
def list_audit(
    caller: TenantCalling, requested: RequestedEntries, limit: Limit = 100, cursor: CursorText = None
) -> AuditPage:
    """List who did what to a tenant, the newest first."""
    caller.tenant("admin")
    return audit_page(
        caller, caller.audit_scope(), caller.list_name("audit", requested), requested, limit, cursor
    )


@router.get(f"{TENANT_PATH}/audit/export", response_class=StreamingResponse, responses=_FILE)
def export_audit(caller: TenantCalling, requested: RequestedEntries, format: Format = "jsonl") -> Response:  # noqa: A002 - as of streams
    """Export who did what to a tenant, the oldest first."""
    caller.tenant("admin")
    return _export(caller, caller.audit_scope(), requested, format)


@router.get("/audit")
def list_service_audit(
    caller: Calling, requested: RequestedEntries, limit: Limit = 100, cursor: CursorText = None
) -> AuditPage:
    """List what concerns no one tenant: keys, sign-ins, deleted tenants."""
    caller.principal.require_everywhere()
    return audit_page(caller, _OWN, f"audit\n{requested}", requested, limit, cursor)


@router.get("/audit/export", response_class=StreamingResponse, responses=_FILE)
def export_service_audit(caller: Calling, requested: RequestedEntries, format: Format = "jsonl") -> Response:  # noqa: A002 - as of streams
    """Export what concerns no one tenant, the oldest first."""
    caller.principal.require_everywhere()
    return _export(caller, _OWN, requested, format)


def _export(
    caller: Caller, scope: AuditScope, requested: AuditFilter, kind: Literal["jsonl", "csv"]
) -> Response:
    lines = export_lines(caller.service.audit.all_entries(scope, requested), kind)
    headers = {"content-disposition": f'attachment; filename="audit.{kind}"'}
    return StreamingResponse(lines, media_type=EXPORT_TYPES[kind], headers=headers)


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)
