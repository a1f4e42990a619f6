"""API keys: create, list, rotate and revoke, for administrators."""

from typing import Annotated

from fastapi import Path, Response
from pydantic import ConfigDict, Field

from freezeframe.asgi.caller import Caller, Calling
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.parameters import CursorText, Limit
from freezeframe.asgi.routing import RequestModel, ResponseModel, api_router, example
from freezeframe.service.access.keys import Key, KeyWithSecret, Scope


class NewKey(RequestModel):
    """A key that is to be made; without scopes it has all but `admin`, without tenants it is for all."""

    model_config = ConfigDict(
        json_schema_extra=example(name="sync", scopes=["snapshots:read"], environments=["dev"], days=90)
    )

    name: str = Field(default="", max_length=200)
    scopes: list[Scope] = Field(default_factory=list)
    environments: list[str] | None = Field(default=None, max_length=1000)
    tenants: list[str] | None = Field(default=None, max_length=1000)
    days: float | None = Field(default=None, gt=0, le=36_499)


class KeyPage(ResponseModel):
    """Keys by id."""

    keys: list[Key]
    next_cursor: str | None


class Rotation(RequestModel):
    """How long the secret from before stays good."""

    overlap_hours: float = Field(default=24.0, ge=0, le=8_760)


router = api_router("keys")
KeyId = Annotated[str, Path(min_length=1, max_length=40, description="The key's id.")]
_LISTING = "keys"
# Neither by the caller nor by the service, since a repeated request has the same effect.
_NOT_KEPT = {"Cache-Control": "no-store"}


@router.get("/keys")
def list_keys(caller: Calling, limit: Limit = 100, cursor: CursorText = None) -> KeyPage:
    """List the service's keys by id, without their secrets."""
    caller.principal.require_everywhere()
    cursors = caller.service.cursors
    keys = caller.service.keys.list(cursors.read(_LISTING, cursor) or "", limit + 1)
    return KeyPage(
        keys=list(keys[:limit]),
        next_cursor=cursors.encode(_LISTING, keys[limit - 1].id if len(keys) > limit else None),
    )


@router.post("/keys", status_code=201)
def create_key(caller: Calling, order: NewKey, response: Response) -> KeyWithSecret:
    """Make a key; its secret is shown only once."""
    caller.principal.require_everywhere()
    key_id = caller.service.keys.new_id(_identity(caller))
    with caller.audit_service_change("key.create", key_id, details=order.model_dump()):
        made = caller.service.keys.create(**order.model_dump(), created_by=caller.who, key_id=key_id)
    response.headers.update(_NOT_KEPT)
    return made


@router.post("/keys/{key_id}/rotate", responses=to_openapi(404))
def rotate_key(caller: Calling, key_id: KeyId, order: Rotation, response: Response) -> KeyWithSecret:
    """Give a key a new secret; the one from before is good for some hours more."""
    caller.principal.require_everywhere()
    caller.service.keys.get(key_id)
    with caller.audit_service_change("key.rotate", key_id, details={"overlap_hours": order.overlap_hours}):
        made = caller.service.keys.rotate(key_id, order.overlap_hours, _identity(caller))
    response.headers.update(_NOT_KEPT)
    return made


@router.delete("/keys/{key_id}", responses=to_openapi(404))
def revoke_key(caller: Calling, key_id: KeyId) -> Key:
    """Revoke a key: it is good for nothing from the next second on."""
    caller.principal.require_everywhere()
    caller.service.keys.get(key_id)
    with caller.audit_service_change("key.revoke", key_id):
        return caller.service.keys.revoke(key_id)


def _identity(caller: Caller) -> str:
    return "" if caller.identity is None else caller.identity.job_id
