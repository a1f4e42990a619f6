"""Sessions of browsers: a row for each, found by the hash of a random token that its cookie holds.

A session of a key ends with the key, or with the secret that it was begun with. A session of a person holds
what an identity provider, or the link of ``freezeframe serve``, said of them when it began.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, or_, select

from freezeframe.control.database import ControlDatabase, insert_if_absent
from freezeframe.control.tables import sessions, used_sign_ins
from freezeframe.errors import NotAuthenticated
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.identity.api_keys import Keys, unknown_caller
from freezeframe.service.identity.principal import ROLES, Principal, Role, bounds

_TOKEN_BYTES = 32
_NAME_LENGTH_MAX = 180


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody without a key; ``environments`` and ``tenants`` None means all."""

    id: str
    name: str
    role: Role
    environments: tuple[str, ...] | None = None
    tenants: tuple[str, ...] | None = None

    def principal(self) -> Principal:
        """The principal of this person."""
        return Principal(
            "person",
            self.id,
            self.name,
            ROLES[self.role],
            None if self.environments is None else frozenset(map(EnvironmentName, self.environments)),
            None if self.tenants is None else frozenset(map(TenantId, self.tenants)),
        )


class Sessions:
    """The sessions of one service."""

    def __init__(self, database: ControlDatabase, keys: Keys, session_hours: float) -> None:
        self._database = database
        self._keys = keys
        self._session_ms = int(session_hours * 3_600_000)

    def begin_with_key(self, text: str) -> str:
        """Begin a session with a key; its token."""
        principal = self._keys.authenticate(text)
        return self._begin({"key": principal.id, "secret_hash": self._keys.secret_hash(text)})

    def begin(self, person: Person) -> str:
        """Begin a session of a person who has proved to be one; its token."""
        known = {"environments": person.environments, "tenants": person.tenants}
        limits = {what: None if names is None else json.dumps(names) for what, names in known.items()}
        return self._begin({"person": person.id, "name": person.name, "role": person.role, **limits})

    def authenticate(self, token: str) -> Principal:
        """The principal of that session."""
        query = select(sessions).where(sessions.c.token_hash == _hash(token))
        with self._database.read() as connection:
            now = self._database.now_ms(connection)
            row = connection.execute(query).mappings().one_or_none()
        if row is None or row["expires_ms"] <= now:
            raise unknown_caller()
        if row["key"] is not None:
            return self._keys.with_hash(row["key"], row["secret_hash"])
        limits = bounds(EnvironmentName, row["environments"]), bounds(TenantId, row["tenants"])
        return Person(row["person"], row["name"], row["role"], *limits).principal()

    def end(self, token: str) -> None:
        """End the session; one that is over stays so."""
        with self._database.begin() as connection:
            connection.execute(delete(sessions).where(sessions.c.token_hash == _hash(token)))

    def end_all(self, principal_id: str | None = None) -> int:
        """End all sessions, or those of the key or person of that id; how many there were."""
        ended = delete(sessions)
        if principal_id is not None:
            ended = ended.where(or_(sessions.c.key == principal_id, sessions.c.person == principal_id))
        with self._database.begin() as connection:
            return connection.execute(ended).rowcount

    def use_once(self, name: str, expires_ms: int) -> None:
        """Record that the sign-in of that name is used up."""
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            connection.execute(delete(used_sign_ins).where(used_sign_ins.c.expires_ms <= now))
            is_first = insert_if_absent(connection, used_sign_ins, {"name": name, "expires_ms": expires_ms})
        if not is_first:
            raise NotAuthenticated(
                "This sign-in was used before.",
                cause="A link or a return from the identity provider signs in once.",
                remedy="Begin again at the sign-in page, or start freezeframe serve again for another link.",
            )

    def _begin(self, values: dict[str, Any]) -> str:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            connection.execute(delete(sessions).where(sessions.c.expires_ms <= now))
            times = {"created_ms": now, "expires_ms": now + self._session_ms}
            connection.execute(insert(sessions).values(token_hash=_hash(token), **values, **times))
        return token


def provided_person(
    issuer: str, subject: str, name: str, role: Role, limits: dict[str, tuple[str, ...] | None]
) -> Person:
    """The person of an account at an identity provider; no other account has the same id."""
    digest = hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()[:32]
    shown = "".join(letter for letter in name if letter.isprintable())[:_NAME_LENGTH_MAX].strip()
    return Person(f"oidc-{digest}", shown or digest[-8:], role, **limits)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
