"""The audit of a tenant, and whether it is whole."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from freezeframe.asgi.dependencies.caller import TenantCalling
from freezeframe.asgi.models.audit import AuditEntry, AuditPage, AuditProof
from freezeframe.asgi.routes.parameters import CursorText, Limit
from freezeframe.asgi.routes.routing import tenant_router

router = tenant_router("audit")


@router.get("/audit")
def list_audit(
    caller: TenantCalling,
    limit: Limit = 100,
    cursor: CursorText = None,
    action: Annotated[str | None, Query(max_length=60, description="Only this action.")] = None,
    subject: Annotated[
        str | None, Query(max_length=800, description="Only this file, stream or job.")
    ] = None,
) -> AuditPage:
    """List who did what to a tenant, the newest first."""
    caller.tenant("admin")
    listing = caller.listing("audit", action, subject)
    before = None if cursor is None else int(caller.service.cursors.read(listing, cursor))
    found = caller.service.audit.entries(
        caller.audit_place(),
        before=before,
        limit=limit + 1,
        action=action,
        subject=subject,
    )
    following = caller.service.cursors.made(listing, found[limit - 1].number) if len(found) > limit else None
    return AuditPage(entries=[AuditEntry(**one.to_json()) for one in found[:limit]], next_cursor=following)


@router.get("/audit/proof")
def prove_audit(caller: TenantCalling) -> AuditProof:
    """Go through a tenant's whole chain and say whether any entry was changed or taken out."""
    caller.tenant("admin")
    broken_at = caller.service.audit.broken_at(caller.audit_place())
    return AuditProof(is_whole=broken_at is None, broken_at=broken_at)
