"""Principals and API keys.

A key is ``id.secret``: the secret is 256 random bits, of which the control database keeps the SHA-256. A hash
that is quick to compute suffices for a random secret. Authentication makes the principal,
and every layer below the routes gets it from there.
"""

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar, get_args

from sqlalchemy import select, update

from freezeframe.clock import moment, rfc3339
from freezeframe.control.database import ControlDatabase, insert_if_absent
from freezeframe.control.tables import keys
from freezeframe.errors import AlreadyExists, InvalidOption, NotAllowed, NotAuthenticated, NotFound
from freezeframe.identifiers import EnvironmentName, TenantId

Scope = Literal[
    "tenants:read",
    "snapshots:read",
    "snapshots:write",
    "snapshots:delete",
    "secrets:read",
    "jobs:read",
    "jobs:run",
    "admin",
]
SCOPES: tuple[Scope, ...] = get_args(Scope)
DEFAULT_SCOPES: tuple[Scope, ...] = tuple(item for item in SCOPES if item != "admin")

Role = Literal["admin", "editor", "viewer"]
ROLES: dict[Role, frozenset[Scope]] = {
    "admin": frozenset(SCOPES),
    "editor": frozenset(DEFAULT_SCOPES),
    "viewer": frozenset({"tenants:read", "snapshots:read", "jobs:read"}),
}

_Name = TypeVar("_Name", EnvironmentName, TenantId)


@dataclass(frozen=True, slots=True)
class Principal:
    """A key or a person with scopes, in some environments, for some tenants.

    ``tenants`` and ``environments`` None means all of them. ``id`` is stable and names the principal in
    the audit, ``name`` is what the history shows.
    """

    kind: Literal["key", "person"]
    id: str
    name: str
    scopes: frozenset[Scope]
    environments: frozenset[EnvironmentName] | None = None
    tenants: frozenset[TenantId] | None = None

    def may(self, scope: Scope) -> bool:
        """Return whether the scope, or ``admin``, is among the principal's."""
        return scope in self.scopes or "admin" in self.scopes

    def sees_environment(self, environment: EnvironmentName) -> bool:
        """Return whether the principal may see anything in the environment."""
        return self.environments is None or environment in self.environments

    def sees(self, environment: EnvironmentName, tenant: TenantId) -> bool:
        """Return whether the principal may see the tenant; if not, it must look as if it did not exist."""
        return self.sees_environment(environment) and (self.tenants is None or tenant in self.tenants)

    def require(self, scope: Scope) -> None:
        """Refuse a principal without the scope."""
        if not self.may(scope):
            raise NotAllowed(
                f"This needs the scope {scope!r}.",
                cause=f"The {self.kind} has {', '.join(sorted(self.scopes)) or 'none'}.",
                remedy="Use another key, or have its scopes changed.",
                scope=scope,
            )

    def require_everywhere(self) -> None:
        """Refuse a principal that is bound to some tenants, for what concerns all of them."""
        self.require("admin")
        if self.tenants is not None or self.environments is not None:
            raise NotAllowed(
                "This concerns the whole service.",
                cause=f"The {self.kind} is bound to some tenants or environments.",
                remedy="Use one that is bound to none.",
            )


def bounds(kind: type[_Name], kept: str | None) -> tuple[_Name, ...] | None:
    """Return the names in a JSON list of the control database; None, which is not a list, means all."""
    return None if kept is None else tuple(map(kind, json.loads(kept)))


def scopes_from(names: tuple[str, ...]) -> frozenset[Scope]:
    """Return the scopes of those names; all but ``admin`` where none is named."""
    odd = [name for name in names if name not in SCOPES]
    if odd:
        raise InvalidOption(f"There is no scope {odd[0]!r}.", remedy=f"Use some of {', '.join(SCOPES)}.")
    return frozenset(item for item in SCOPES if item in names) or frozenset(DEFAULT_SCOPES)


_ID_BYTES = 9
_SECRET_BYTES = 32
_USE_NOTED_EVERY_MS = 60_000
_REMEMBERED_SECONDS = 1.0
_REMEMBERED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    environments: tuple[str, ...] | None
    tenants: tuple[str, ...] | None
    created: datetime
    created_by: str
    expires: datetime | None
    revoked: datetime | None
    last_used: datetime | None

    def principal(self) -> Principal:
        """Return the principal of this key."""
        return Principal(
            "key",
            self.id,
            f"key {self.name or self.id}",
            frozenset(self.scopes),
            None if self.environments is None else frozenset(map(EnvironmentName, self.environments)),
            None if self.tenants is None else frozenset(map(TenantId, self.tenants)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWithSecret(Key):
    """A key with what a client sends, `id.secret`; it is shown only once."""

    key: str = field(repr=False)


class Keys:
    """The keys of one service.

    A key that was good is believed for one second without asking the database again, so a revocation
    reaches every worker within that time.
    """

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._remembered: dict[str, tuple[float, Principal]] = {}

    def new_id(self, request: str = "") -> str:
        """Return the id of a new key; the same again for a request that is repeated."""
        if request:
            return hashlib.sha256(request.encode()).hexdigest()[: 2 * _ID_BYTES]
        return secrets.token_hex(_ID_BYTES)

    def create(
        self,
        name: str = "",
        *,
        scopes: Iterable[str] = (),
        environments: Iterable[str] | None = None,
        tenants: Iterable[str] | None = None,
        days: float | None = None,
        created_by: str = "",
        key_id: str = "",
    ) -> KeyWithSecret:
        """Create a key; without scopes it has all but ``admin``, without tenants it is for all of them."""
        if days is not None and not 0 < days < 36_500:  # noqa: PLR2004 - a hundred years
            raise InvalidOption(f"A key cannot live for {days} days.", remedy="Pass a number above 0.")
        secret, chosen = secrets.token_urlsafe(_SECRET_BYTES), key_id or self.new_id()
        seen = (
            None
            if environments is None
            else sorted({str(EnvironmentName(environment)) for environment in environments})
        )
        bound = None if tenants is None else sorted({str(TenantId(tenant)) for tenant in tenants})
        known = sorted(scopes_from(tuple(scopes)))
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            values = {
                "id": chosen,
                "name": name,
                "secret_hash": _hash(secret),
                "scopes": json.dumps(known),
                "environments": None if seen is None else json.dumps(seen),
                "tenants": None if bound is None else json.dumps(bound),
                "created_ms": now,
                "created_by": created_by,
                "expires_ms": None if days is None else now + int(days * 86_400_000),
            }
            if not insert_if_absent(connection, keys, values):
                raise _repeated(chosen, "made")
        return self._with_secret(chosen, secret)

    def get(self, key_id: str) -> Key:
        """Return the key of that id."""
        with self._database.read() as connection:
            row = connection.execute(select(keys).where(keys.c.id == key_id)).mappings().one_or_none()
        if row is None:
            raise NotFound(
                f"There is no key {key_id!r}.",
                cause="A key's id is the part before the dot.",
                remedy="Check the id in the list of the keys.",
            )
        return _key(row)

    def list(self, after: str = "", limit: int = 1000) -> tuple[Key, ...]:
        """Return the keys by id, those that are revoked or expired too."""
        query = select(keys).where(keys.c.id > after).order_by(keys.c.id).limit(limit)
        with self._database.read() as connection:
            return tuple(_key(row) for row in connection.execute(query).mappings())

    def revoke(self, key_id: str) -> Key:
        """Revoke the key; revoking it again changes nothing."""
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            active = (keys.c.id == key_id) & keys.c.revoked_ms.is_(None)
            connection.execute(update(keys).where(active).values(revoked_ms=now))
        self._forget()
        return self.get(key_id)

    def rotate(self, key_id: str, overlap_hours: float = 24.0, request: str = "") -> KeyWithSecret:
        """Give the key a new secret; the old one stays valid for some hours."""
        known = self.get(key_id)
        if overlap_hours < 0 or known.revoked is not None:
            raise InvalidOption(
                f"The key {key_id!r} cannot be rotated.",
                cause="It is revoked." if known.revoked is not None else "The overlap is negative.",
                remedy="Make a new key." if known.revoked is not None else "Pass at least 0 hours.",
            )
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            values = {
                "previous_hash": keys.c.secret_hash,
                "previous_until_ms": now + int(overlap_hours * 3_600_000),
                "secret_hash": _hash(secret),
                "rotation": request,
            }
            rotated = update(keys).where(keys.c.id == key_id)
            if request:
                rotated = rotated.where(keys.c.rotation != request)
            if not connection.execute(rotated.values(values)).rowcount:
                raise _repeated(key_id, "rotated")
        self._forget()
        return self._with_secret(key_id, secret)

    def authenticate(self, text: str, *, anew: bool = False) -> Principal:
        """Return the principal of that key; ``anew`` queries the database even if the key is cached."""
        known = None if anew else self.from_cache(text)
        if known is not None:
            return known
        fingerprint = _hash(text)
        principal = self.with_hash(text.partition(".")[0], self.secret_hash(text))
        with self._lock:
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[fingerprint] = (time.monotonic() + _REMEMBERED_SECONDS, principal)
        return principal

    def from_cache(self, text: str) -> Principal | None:
        """Return the principal, if the key was valid a moment ago; without a query."""
        fingerprint = _hash(text)
        with self._lock:
            found = self._remembered.get(fingerprint)
        return found[1] if found is not None and found[0] > time.monotonic() else None

    def secret_hash(self, text: str) -> str:
        """Return the stored hash of the secret in a key's text."""
        return _hash(text.partition(".")[2])

    def with_hash(self, key_id: str, secret_hash: str) -> Principal:
        """Return the principal of the key whose secret has, or had a moment ago, this hash."""
        with self._database.read() as connection:
            now = self._database.now_ms(connection)
            row = connection.execute(select(keys).where(keys.c.id == key_id)).mappings().one_or_none()
        # An unknown id is compared as well, with a hash that no secret has.
        is_good = hmac.compare_digest(secret_hash, row["secret_hash"] if row else "0" * 64)
        was_good = hmac.compare_digest(secret_hash, (row["previous_hash"] if row else "") or "0" * 64)
        if row is not None and was_good and (row["previous_until_ms"] or 0) > now:
            is_good = True
        if row is None or not is_good:
            raise unknown_caller()
        if row["revoked_ms"] is not None:
            raise _ended_key("was revoked", row["revoked_ms"])
        if row["expires_ms"] is not None and row["expires_ms"] <= now:
            raise _ended_key("expired", row["expires_ms"])
        self._note_use(key_id, row["last_used_ms"], now)
        return _key(row).principal()

    def _with_secret(self, key_id: str, secret: str) -> KeyWithSecret:
        known = self.get(key_id)
        fields = {name: getattr(known, name) for name in known.__dataclass_fields__}
        return KeyWithSecret(**fields, key=f"{key_id}.{secret}")

    def _note_use(self, key_id: str, last_used_ms: int | None, now_ms: int) -> None:
        if last_used_ms is not None and last_used_ms > now_ms - _USE_NOTED_EVERY_MS:
            return
        with self._database.begin() as connection:
            connection.execute(update(keys).where(keys.c.id == key_id).values(last_used_ms=now_ms))

    def _forget(self) -> None:
        with self._lock:
            self._remembered.clear()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _repeated(key_id: str, how: str) -> AlreadyExists:
    return AlreadyExists(
        f"This request {how} the key {key_id} before.",
        cause="A secret is only in the first response, and is not stored.",
        remedy="If that response was lost, rotate the key by a new request, or revoke it.",
        code="KEY_GIVEN_ONCE",
    )


def _ended_key(how: str, moment_ms: int) -> NotAuthenticated:
    return NotAuthenticated(
        "This key is no longer valid.",
        cause=f"It {how} at {rfc3339(moment(moment_ms), 'milliseconds')}.",
        remedy="Ask an administrator for another one (freezeframe key create).",
    )


def unknown_caller() -> NotAuthenticated:
    """Return the error for an unknown caller, which is the same for every reason."""
    return NotAuthenticated(
        "The caller is not authenticated.",
        cause="The request has no key or session, or it is not valid.",
        remedy="Send a valid key as `Authorization: Bearer id.secret`, or as `x-api-key`.",
    )


def _key(row: Any) -> Key:
    stored = {name: row[f"{name}_ms"] for name in ("created", "expires", "revoked", "last_used")}
    moments: dict[str, Any] = {
        name: None if value is None else moment(value) for name, value in stored.items()
    }
    return Key(
        id=row["id"],
        name=row["name"],
        scopes=tuple(json.loads(row["scopes"])),
        environments=bounds(EnvironmentName, row["environments"]),
        tenants=bounds(TenantId, row["tenants"]),
        created_by=row["created_by"],
        **moments,
    )
