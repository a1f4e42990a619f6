"""API keys: ``id.secret``; the secret is 256 random bits, of which the control database keeps the SHA-256.

A hash that is quick to compute is enough for a secret that nobody can guess.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update

from freezeframe.control.database import ControlDatabase, insert_if_absent
from freezeframe.control.tables import keys
from freezeframe.errors import AlreadyExists, InvalidOption, NotAuthenticated, NotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.base.json_values import rfc3339
from freezeframe.service.identity.principal import Principal, Scope, bounds, scopes_from

_ID_BYTES = 9
_SECRET_BYTES = 32
_USE_NOTED_EVERY_MS = 60_000
_REMEMBERED_SECONDS = 1.0
_REMEMBERED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret; ``environments`` and ``tenants`` None means all."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    environments: tuple[EnvironmentName, ...] | None
    tenants: tuple[TenantId, ...] | None
    created_ms: int
    created_by: str
    expires_ms: int | None
    revoked_ms: int | None
    last_used_ms: int | None

    def to_json(self) -> dict[str, Any]:
        """All fields by name; moments are RFC 3339."""
        return {
            "id": self.id,
            "name": self.name,
            "scopes": list(self.scopes),
            "environments": None if self.environments is None else list(self.environments),
            "tenants": None if self.tenants is None else list(self.tenants),
            "created": rfc3339(self.created_ms),
            "created_by": self.created_by,
            "expires": rfc3339(self.expires_ms),
            "revoked": rfc3339(self.revoked_ms),
            "last_used": rfc3339(self.last_used_ms),
        }

    def principal(self) -> Principal:
        """The principal of this key."""
        return Principal(
            "key",
            self.id,
            f"key {self.name or self.id}",
            frozenset(self.scopes),
            None if self.environments is None else frozenset(self.environments),
            None if self.tenants is None else frozenset(self.tenants),
        )


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new API key with its secret, which is returned once."""

    key: Key
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The text of the key that a client sends."""
        return f"{self.key.id}.{self.secret}"

    def to_json(self) -> dict[str, Any]:
        """The key's fields, and ``key``: the text that a client sends."""
        return {"key": self.text, **self.key.to_json()}


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
        """The id of a new key; the same again for a request that is repeated."""
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
    ) -> NewKey:
        """A new key; without scopes it has all but ``admin``, without tenants it is for all of them."""
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
        return NewKey(self.get(chosen), secret)

    def get(self, key_id: str) -> Key:
        """The key of that id."""
        with self._database.read() as connection:
            row = connection.execute(select(keys).where(keys.c.id == key_id)).mappings().one_or_none()
        if row is None:
            raise NotFound(
                f"There is no key {key_id!r}.",
                cause="A key is named by its id: what stands before the dot in its text.",
                remedy="Check the id in the list of the keys.",
            )
        return _key(row)

    def list(self, after: str = "", limit: int = 1000) -> tuple[Key, ...]:
        """The keys by id, those that are revoked or expired too."""
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

    def rotate(self, key_id: str, overlap_hours: float = 24.0, request: str = "") -> NewKey:
        """Give the key a new secret; the old one stays valid for some hours."""
        known = self.get(key_id)
        if overlap_hours < 0 or known.revoked_ms is not None:
            raise InvalidOption(
                f"The key {key_id!r} cannot be rotated.",
                cause="It is revoked." if known.revoked_ms is not None else "The overlap is negative.",
                remedy="Make a new key." if known.revoked_ms is not None else "Pass at least 0 hours.",
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
        return NewKey(self.get(key_id), secret)

    def authenticate(self, text: str, *, anew: bool = False) -> Principal:
        """The principal of that key; ``anew`` asks the database even if the key was good a moment ago."""
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
        """The principal, if the key was valid a moment ago; without a query."""
        fingerprint = _hash(text)
        with self._lock:
            found = self._remembered.get(fingerprint)
        return found[1] if found is not None and found[0] > time.monotonic() else None

    def secret_hash(self, text: str) -> str:
        """The stored hash of the secret in a key's text."""
        return _hash(text.partition(".")[2])

    def with_hash(self, key_id: str, given: str) -> Principal:
        """The principal of the key whose secret has, or had a moment ago, this hash."""
        with self._database.read() as connection:
            now = self._database.now_ms(connection)
            row = connection.execute(select(keys).where(keys.c.id == key_id)).mappings().one_or_none()
        # An unknown id is compared as well, with a hash that no secret has.
        is_good = hmac.compare_digest(given, row["secret_hash"] if row else "0" * 64)
        was_good = hmac.compare_digest(given, (row["previous_hash"] if row else "") or "0" * 64)
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
        cause="A secret is given once, in the first answer, and is not kept.",
        remedy="If that answer was lost, rotate the key by a new request, or revoke it.",
        code="KEY_GIVEN_ONCE",
    )


def _ended_key(how: str, moment_ms: int) -> NotAuthenticated:
    return NotAuthenticated(
        "This key is no longer valid.",
        cause=f"It {how} at {rfc3339(moment_ms)}.",
        remedy="Ask an administrator for another one (freezeframe key create).",
    )


def unknown_caller() -> NotAuthenticated:
    """The one error for an unknown caller, whatever the reason."""
    return NotAuthenticated(
        "The service does not know who asks.",
        cause="There is no key or session with the request, or it is not valid (any more).",
        remedy="Send a valid key as `Authorization: Bearer id.secret`, or as `x-api-key`.",
    )


def _key(row: Any) -> Key:
    return Key(
        id=row["id"],
        name=row["name"],
        scopes=tuple(json.loads(row["scopes"])),
        environments=bounds(EnvironmentName, row["environments"]),
        tenants=bounds(TenantId, row["tenants"]),
        created_ms=row["created_ms"],
        created_by=row["created_by"],
        expires_ms=row["expires_ms"],
        revoked_ms=row["revoked_ms"],
        last_used_ms=row["last_used_ms"],
    )
