"""API keys: ``id.secret``, of which the control database keeps a keyed hash and never the secret."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update

from freezeframe.control.database.database import ControlDatabase, insert_if_absent
from freezeframe.control.tables import keys, sessions
from freezeframe.errors import InvalidOption, NotAuthenticated, NotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.base.pepper import Pepper
from freezeframe.service.base.timestamps import rfc3339
from freezeframe.service.identity.principal import Principal, Scope, bounds, scopes_from

_LABEL = b"freezeframe keys"
_DRAFTS = b"freezeframe drafts of keys"
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


@dataclass(frozen=True, slots=True)
class KeyDraft:
    """Id and secret of a key that is to be made."""

    id: str
    secret: str = field(repr=False)


class Keys:
    """The keys of one service.

    A key that was good is believed for one second without asking the database again, so a revocation
    reaches every worker within that time.
    """

    def __init__(self, database: ControlDatabase, pepper: Pepper) -> None:
        self._database = database
        self._pepper = pepper
        self._lock = threading.Lock()
        self._remembered: dict[str, tuple[float, Principal]] = {}

    def draft(self, request: str | None = None) -> KeyDraft:
        """Id and secret of a new key, derived from the request, so that a repeat gets the same ones.

        So a request that comes twice makes one key, and is answered with it, while no secret is kept.
        """
        if request is None:
            return KeyDraft(secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES))
        # A repeat after a rotation of the pepper must find the key that the first request made.
        drafts = [_draft(key, request) for key in self._pepper.accepted(_DRAFTS)]
        if len(drafts) == 1:
            return drafts[0]
        known = {one.id for one in self.list()}
        return next((one for one in drafts if one.id in known), drafts[0])

    def create(
        self,
        name: str = "",
        *,
        scopes: Iterable[str] = (),
        environments: Iterable[str] | None = None,
        tenants: Iterable[str] | None = None,
        days: float | None = None,
        created_by: str = "",
        draft: KeyDraft | None = None,
    ) -> NewKey:
        """A new key; without scopes it has all but ``admin``, without tenants it is for all of them.

        One that was made of the same draft before stays as it is, and is given.

        Raises:
            InvalidOption: an unknown scope, or a life that is over before it begins.
            InvalidName: an environment or tenant that cannot be one.
        """
        if days is not None and not 0 < days < 36_500:  # noqa: PLR2004 - a hundred years
            raise InvalidOption(f"A key cannot live for {days} days.", remedy="Pass a number above 0.")
        chosen = draft or self.draft()
        seen = None if environments is None else sorted({str(EnvironmentName(one)) for one in environments})
        bound = None if tenants is None else sorted({str(TenantId(one)) for one in tenants})
        known = sorted(scopes_from(tuple(scopes)))
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            values = {
                "id": chosen.id,
                "name": name,
                "secret_hash": self._hash(chosen.secret),
                "scopes": json.dumps(known),
                "environments": None if seen is None else json.dumps(seen),
                "tenants": None if bound is None else json.dumps(bound),
                "created_ms": now,
                "created_by": created_by,
                "expires_ms": None if days is None else now + int(days * 86_400_000),
            }
            insert_if_absent(connection, keys, values)
        return NewKey(self.get(chosen.id), chosen.secret)

    def get(self, key_id: str) -> Key:
        """The key of that id.

        Raises:
            NotFound: there is none.
        """
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
        """Revoke the key; revoking it again changes nothing.

        Raises:
            NotFound: there is none.
        """
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            active = (keys.c.id == key_id) & keys.c.revoked_ms.is_(None)
            connection.execute(update(keys).where(active).values(revoked_ms=now))
        self._forget()
        return self.get(key_id)

    def rotate(self, key_id: str, overlap_hours: float = 24.0, request: str | None = None) -> NewKey:
        """Give the key a new secret; the old one stays valid for some hours.

        A ``request`` that comes twice (see ``draft``) is carried out once.

        Raises:
            NotFound: there is none.
            InvalidOption: it is revoked, or the overlap is negative.
        """
        known = self.get(key_id)
        if overlap_hours < 0 or known.revoked_ms is not None:
            raise InvalidOption(
                f"The key {key_id!r} cannot be rotated.",
                cause="It is revoked." if known.revoked_ms is not None else "The overlap is negative.",
                remedy="Make a new key." if known.revoked_ms is not None else "Pass at least 0 hours.",
            )
        secret = self.draft(request and f"{request} {key_id}").secret
        made = self._hash(secret)
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            values = {
                "previous_hash": keys.c.secret_hash,
                "previous_until_ms": now + int(overlap_hours * 3_600_000),
                "secret_hash": made,
            }
            is_other = (keys.c.secret_hash != made) & (keys.c.previous_hash != made)
            connection.execute(update(keys).where(keys.c.id == key_id, is_other).values(values))
        self._forget()
        return NewKey(self.get(key_id), secret)

    def authenticate(self, text: str) -> Principal:
        """The principal of that key.

        Raises:
            NotAuthenticated: it is unknown, wrong, revoked or expired. Only who has the key's secret is
                told that it has ended, and how; unknown and wrong ones are not told apart.
        """
        known = self.from_cache(text)
        if known is not None:
            return known
        fingerprint = self._hash(text)
        key_id, _, secret = text.partition(".")
        self._renew_hash(key_id, secret)
        principal = self.with_hash(key_id, self.secret_hash(text))
        with self._lock:
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[fingerprint] = (time.monotonic() + _REMEMBERED_SECONDS, principal)
        return principal

    def from_cache(self, text: str) -> Principal | None:
        """The principal, if the key was valid a moment ago; without a query."""
        fingerprint = self._hash(text)
        with self._lock:
            found = self._remembered.get(fingerprint)
        return found[1] if found is not None and found[0] > time.monotonic() else None

    def secret_hash(self, text: str) -> str:
        """The stored hash of the secret in a key's text."""
        return self._hash(text.partition(".")[2])

    def with_hash(self, key_id: str, given: str) -> Principal:
        """The principal of the key whose secret has, or had a moment ago, this hash.

        Raises:
            NotAuthenticated: as ``authenticate``.
        """
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

    def _renew_hash(self, key_id: str, secret: str) -> None:
        """Hash the secret with the current pepper where its stored hash is of an earlier one.

        Sessions of the key continue, because their hash is renewed as well.
        """
        current, *earlier = (_hash(one, secret) for one in self._pepper.accepted(_LABEL, lasting=True))
        if not earlier:
            return
        columns = select(keys.c.secret_hash, keys.c.previous_hash).where(keys.c.id == key_id)
        with self._database.read() as connection:
            stored = connection.execute(columns).one_or_none() or ()
        old = [one for one in earlier if any(hmac.compare_digest(one, known) for known in stored)]
        if old:
            with self._database.begin() as connection:
                for table, owner, name in _HASHES:
                    is_old = (owner == key_id) & table.c[name].in_(old)
                    connection.execute(update(table).where(is_old).values({name: current}))

    def _note_use(self, key_id: str, last_used_ms: int | None, now_ms: int) -> None:
        if last_used_ms is not None and last_used_ms > now_ms - _USE_NOTED_EVERY_MS:
            return
        with self._database.begin() as connection:
            connection.execute(update(keys).where(keys.c.id == key_id).values(last_used_ms=now_ms))

    def _hash(self, secret: str) -> str:
        return _hash(self._pepper.current(_LABEL), secret)

    def _forget(self) -> None:
        with self._lock:
            self._remembered.clear()


_HASHES = (
    (keys, keys.c.id, "secret_hash"),
    (keys, keys.c.id, "previous_hash"),
    (sessions, sessions.c.key, "secret_hash"),
)


def _draft(key: bytes, request: str) -> KeyDraft:
    drawn = hmac.digest(key, request.encode(), "sha512")
    secret = base64.urlsafe_b64encode(drawn[-_SECRET_BYTES:]).decode().rstrip("=")
    return KeyDraft(drawn[:_ID_BYTES].hex(), secret)


def _hash(key: bytes, secret: str) -> str:
    return hmac.digest(key, secret.encode(errors="replace"), "sha256").hex()


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
