"""Operations on the service's keys, sessions, master key and audit."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from freezeframe.clock import moment
from freezeframe.service.access.audit import AuditFilter, AuditProof, AuditScope
from freezeframe.service.access.keys import Key, KeyWithSecret
from freezeframe.service.access.keys import Scope as KeyScope
from freezeframe.service.operations.operation import Cursor, Limit, about, operation

if TYPE_CHECKING:
    from freezeframe.service.operations.caller import Caller

of_keys = partial(operation, scope="everywhere", place="service", tag="keys")
KeyId = Annotated[str, about("The key's id.", flag="KEY", min_length=1, max_length=40)]
_COLUMNS = ("id", "name", "scopes", "environments", "tenants", "expires", "revoked", "last_used")
# Neither by the caller nor by the service, since a repeated request has the same effect.
_NOT_KEPT = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Keys by id."""

    keys: list[Key]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done; `hash` is of all the rest, with the hash of the entry before."""

    number: int
    moment: datetime
    principal: str
    action: str
    subject: str
    request_id: str
    details: dict[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


def audit_page(
    caller: Any, scope: AuditScope, listing: str, requested: AuditFilter, limit: int, cursor: str | None
) -> AuditPage:
    """Return a page of the audit of a tenant or of the service."""
    before = caller.cursors.read_as(int, listing, cursor)
    entries = caller.service.audit.entries(scope, requested, before=before, limit=limit + 1)
    following = entries[limit - 1].number if len(entries) > limit else None
    shown = [AuditEntry(**{**item.to_json(), "moment": moment(item.moment_ms)}) for item in entries[:limit]]
    return AuditPage(shown, caller.cursors.encode(listing, following))


@dataclass(frozen=True, slots=True)
class EndedSessions:
    """How many sessions of the console were ended."""

    sessions_ended: int


def _require_key(caller: "Caller", key_id: str) -> None:
    caller.service.keys.get(key_id)


@of_keys(
    "GET /keys",
    command="key list",
    columns=_COLUMNS,
    empty="There are no keys: freezeframe key create makes one.",
)
def list_keys(caller: "Caller", limit: Limit = 100, cursor: Cursor = None) -> KeyPage:
    """List the service's keys by id, without their secrets; those that are revoked or expired too."""
    keys = caller.service.keys.list(caller.cursors.read("keys", cursor) or "", limit + 1)
    return KeyPage(
        list(keys[:limit]), caller.cursors.encode("keys", keys[limit - 1].id if len(keys) > limit else None)
    )


@of_keys(
    "POST /keys",
    action="key.create",
    command="key create",
    status=201,
    body="NewKey",
    example={"name": "sync", "scopes": ["snapshots:read"], "environments": ["dev"], "days": 90},
    headers=_NOT_KEPT,
    audits_itself=True,
)
def create_key(
    caller: "Caller",
    name: Annotated[str, about("A name for the key, shown in lists.", max_length=200)] = "",
    scopes: Annotated[
        list[KeyScope], about("tenants:read, snapshots:write ...; none: all but admin.", flag="--scope")
    ] = [],  # noqa: B006 - never changed
    environments: Annotated[
        list[str] | None, about("Only these environments; none: all.", flag="--env", max_length=1000)
    ] = None,
    tenants: Annotated[
        list[str] | None,
        about("Only these tenants, in these environments; none: all.", flag="--tenant", max_length=1000),
    ] = None,
    days: Annotated[float | None, about("Days until it expires; none: never.", gt=0, le=36_499)] = None,
) -> KeyWithSecret:
    """Make a key; its secret is shown only once, and only a hash of it is kept."""
    order: dict[str, Any] = {
        "name": name,
        "scopes": scopes,
        "environments": environments,
        "tenants": tenants,
        "days": days,
    }
    key_id = caller.service.keys.new_id(caller.repetition)
    with caller.audit_change("key.create", key_id, **order):
        return caller.service.keys.create(**order, created_by=caller.who, key_id=key_id)


@of_keys(
    "POST /keys/{key_id}/rotate",
    action="key.rotate",
    command="key rotate",
    body="Rotation",
    headers=_NOT_KEPT,
    check=_require_key,
    details=("overlap_hours",),
)
def rotate_key(
    caller: "Caller",
    key_id: KeyId,
    overlap_hours: Annotated[float, about("Hours that the old secret stays good.", ge=0, le=8_760)] = 24.0,
) -> KeyWithSecret:
    """Give a key a new secret, which is shown only once; the one from before is good for some hours more."""
    return caller.service.keys.rotate(key_id, overlap_hours, caller.repetition)


@of_keys("DELETE /keys/{key_id}", action="key.revoke", command="key revoke", check=_require_key)
def revoke_key(caller: "Caller", key_id: KeyId) -> Key:
    """Revoke a key: it is good for nothing from the next second on."""
    return caller.service.keys.revoke(key_id)


@of_keys("", action="session.end", command="key sign-out")
def end_sessions(
    caller: "Caller",
    principal: Annotated[
        str | None, about("Id of a key or person, as in the audit; none: all.", is_argument=True, flag="ID")
    ] = None,
) -> EndedSessions:
    """End sessions of the console. Keys stay valid; revoke one to end it too."""
    return EndedSessions(caller.service.sessions.end_all(principal))


@operation("GET /audit/proof", "everywhere", place="service", tag="audit")
def prove_audit(caller: "Caller") -> AuditProof:
    """Say whether any entry of the audit, of all tenants and the service, was changed or taken out.

    Only the log can show that its newest entries were cut off: `freezeframe audit verify --log`.
    """
    return caller.service.audit.verify()


OPERATIONS = (list_keys, create_key, rotate_key, revoke_key, end_sessions, prove_audit)
