"""API keys: create, list, rotate and revoke, for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from freezeframe.asgi.dependencies.caller import Caller, Calling
from freezeframe.asgi.models.keys import Key, KeyPage, KeyWithSecret, NewKey, Rotation
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.routing import CursorText, Limit, api_router

router = api_router("keys")
KeyId = Annotated[str, Path(min_length=1, max_length=40, description="The key's id.")]
_LISTING = "keys"
# Neither by the caller nor by the service, since a repeated request has the same effect.
_NOT_KEPT = {"Cache-Control": "no-store"}


@router.get("/keys")
def list_keys(caller: Calling, limit: Limit = 100, cursor: CursorText = None) -> KeyPage:
    """List the service's keys by id, without their secrets."""
    caller.principal.require_everywhere()
    after = "" if cursor is None else str(caller.service.cursors.read(_LISTING, cursor))
    found = caller.service.keys.list(after, limit + 1)
    following = caller.service.cursors.encode(_LISTING, found[limit - 1].id) if len(found) > limit else None
    return KeyPage(keys=[Key(**item.to_json()) for item in found[:limit]], next_cursor=following)


@router.post("/keys", status_code=201)
def create_key(caller: Calling, order: NewKey, response: Response) -> KeyWithSecret:
    """Make a key; its secret is told this once."""
    caller.principal.require_everywhere()
    key_id = caller.service.keys.new_id(_identity(caller))
    with caller.audit_service_change("key.create", key_id, details=order.model_dump()):
        made = caller.service.keys.create(
            order.name,
            scopes=order.scopes,
            environments=order.environments,
            tenants=order.tenants,
            days=order.days,
            created_by=caller.who,
            key_id=key_id,
        )
    response.headers.update(_NOT_KEPT)
    return KeyWithSecret(**made.to_json())


@router.post("/keys/{key_id}/rotate", responses=to_openapi(404))
def rotate_key(caller: Calling, key_id: KeyId, order: Rotation, response: Response) -> KeyWithSecret:
    """Give a key a new secret; the one from before is good for some hours more."""
    caller.principal.require_everywhere()
    caller.service.keys.get(key_id)
    with caller.audit_service_change("key.rotate", key_id, details={"overlap_hours": order.overlap_hours}):
        made = caller.service.keys.rotate(key_id, order.overlap_hours, _identity(caller))
    response.headers.update(_NOT_KEPT)
    return KeyWithSecret(**made.to_json())


@router.delete("/keys/{key_id}", responses=to_openapi(404))
def revoke_key(caller: Calling, key_id: KeyId) -> Key:
    """Revoke a key: it is good for nothing from the next second on."""
    caller.principal.require_everywhere()
    caller.service.keys.get(key_id)
    with caller.audit_service_change("key.revoke", key_id):
        return Key(**caller.service.keys.revoke(key_id).to_json())


def _identity(caller: Caller) -> str:
    return "" if caller.identity is None else caller.identity.job_id
