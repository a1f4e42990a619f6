"""The audit, of a tenant and of the service: list, export, verification."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Response
from fastapi.responses import StreamingResponse

from freezeframe.asgi.dependencies.caller import Caller, Calling, TenantCalling
from freezeframe.asgi.models.keys import AuditEntry, AuditPage, AuditProof
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.routing import TENANT, CursorText, Limit, MomentText, api_router
from freezeframe.service.access.audit import EXPORT_TYPES, AuditFilter, AuditPlace, export_lines

router = api_router("audit")
_OWN = AuditPlace()
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


def wanted_entries(
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
    """The filter of audit entries that a request asks for."""
    return AuditFilter(action, subject, principal, _milliseconds(since), _milliseconds(until))


Wanted = Annotated[AuditFilter, Depends(wanted_entries)]


@router.get(f"{TENANT}/audit", responses=to_openapi(404))
def list_audit(
    caller: TenantCalling, wanted: Wanted, limit: Limit = 100, cursor: CursorText = None
) -> AuditPage:
    """List who did what to a tenant, the newest first."""
    caller.tenant("admin")
    return _page(caller, caller.audit_place(), caller.list_name("audit", wanted), wanted, limit, cursor)


@router.get(
    f"{TENANT}/audit/export", response_class=StreamingResponse, responses={**_FILE, **to_openapi(404)}
)
def export_audit(caller: TenantCalling, wanted: Wanted, format: Format = "jsonl") -> Response:  # noqa: A002 - as of streams
    """Export who did what to a tenant, the oldest first."""
    caller.tenant("admin")
    return _export(caller, caller.audit_place(), wanted, format)


@router.get("/audit")
def list_service_audit(
    caller: Calling, wanted: Wanted, limit: Limit = 100, cursor: CursorText = None
) -> AuditPage:
    """List what concerns no one tenant: keys, sign-ins, deleted tenants."""
    caller.principal.require_everywhere()
    return _page(caller, _OWN, f"audit\n{wanted}", wanted, limit, cursor)


@router.get("/audit/export", response_class=StreamingResponse, responses=_FILE)
def export_service_audit(caller: Calling, wanted: Wanted, format: Format = "jsonl") -> Response:  # noqa: A002 - as of streams
    """Export what concerns no one tenant, the oldest first."""
    caller.principal.require_everywhere()
    return _export(caller, _OWN, wanted, format)


@router.get("/audit/proof")
def prove_audit(caller: Calling) -> AuditProof:
    """Say whether any entry of the audit, of all tenants and the service, was changed or taken out.

    Only the log can show that its newest entries were cut off: `freezeframe audit verify --log`.
    """
    caller.principal.require_everywhere()
    return AuditProof.of(caller.service.audit.verify())


def _page(
    caller: Caller, place: AuditPlace, listing: str, wanted: AuditFilter, limit: int, cursor: str | None
) -> AuditPage:
    before = None if cursor is None else int(caller.service.cursors.read(listing, cursor))
    found = caller.service.audit.entries(place, wanted, before=before, limit=limit + 1)
    following = (
        caller.service.cursors.encode(listing, found[limit - 1].number) if len(found) > limit else None
    )
    return AuditPage(entries=[AuditEntry(**item.to_json()) for item in found[:limit]], next_cursor=following)


def _export(
    caller: Caller, place: AuditPlace, wanted: AuditFilter, kind: Literal["jsonl", "csv"]
) -> Response:
    lines = export_lines(caller.service.audit.all_entries(place, wanted), kind)
    headers = {"content-disposition": f'attachment; filename="audit.{kind}"'}
    return StreamingResponse(lines, media_type=EXPORT_TYPES[kind], headers=headers)


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)
