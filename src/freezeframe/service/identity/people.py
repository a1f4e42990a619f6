"""People: passwords as argon2 hashes, sessions as hashes of random tokens."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, insert, select, update

from freezeframe.control.database.database import ControlDatabase, insert_if_absent
from freezeframe.control.tables import people, sessions
from freezeframe.errors import InvalidOption, NotAuthenticated, NotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.base.timestamps import rfc3339
from freezeframe.service.identity.api_keys import unknown_caller
from freezeframe.service.identity.principal import ROLES, Principal, Role, bounds

PASSWORD_LENGTH_MIN = 12
_PASSWORD_LENGTH_MAX = 1000
_TOKEN_BYTES = 32
_PROVIDED = "oidc-"
_SHOWN_LENGTH = 180
_ID_BYTES = 9


@dataclass(frozen=True, slots=True)
class Person:
    """An account; ``environments`` and ``tenants`` None means all."""

    id: str
    name: str
    role: Role
    environments: tuple[EnvironmentName, ...] | None
    tenants: tuple[TenantId, ...] | None
    created_ms: int
    disabled_ms: int | None

    def to_json(self) -> dict[str, Any]:
        """All fields by name; moments are RFC 3339."""
        return {
            "id": self.id,
            "name": self.name,
            "role": self.role,
            "environments": None if self.environments is None else list(self.environments),
            "tenants": None if self.tenants is None else list(self.tenants),
            "created": rfc3339(self.created_ms),
            "disabled": rfc3339(self.disabled_ms),
        }

    def principal(self) -> Principal:
        """The principal of this person."""
        return Principal(
            "person",
            self.id,
            self.name,
            ROLES[self.role],
            None if self.environments is None else frozenset(self.environments),
            None if self.tenants is None else frozenset(self.tenants),
        )


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session with its token, which is returned once."""

    person: Person
    token: str = field(repr=False)
    expires_ms: int


class People:
    """The people of one service."""

    def __init__(self, database: ControlDatabase, session_hours: float) -> None:
        self._database = database
        self._session_ms = int(session_hours * 3_600_000)
        self._hasher = PasswordHasher()

    @cached_property
    def _nobody(self) -> str:
        """A password hash that is verified for unknown names, so that they take as long as known ones."""
        return self._hasher.hash(secrets.token_urlsafe(_TOKEN_BYTES))

    def create(
        self,
        name: str,
        password: str | None,
        role: Role = "viewer",
        *,
        environments: Iterable[str] | None = None,
        tenants: Iterable[str] | None = None,
        request: str | None = None,
    ) -> Person:
        """A new person; one without a password has to be invited.

        A ``request`` that comes twice makes one person.

        Raises:
            InvalidOption: there is one of that name, an unknown role, or a password that is too short.
        """
        _require_name(name)
        require_role(role)
        if password is not None:
            require_password(password)
        seen = None if environments is None else sorted({str(EnvironmentName(one)) for one in environments})
        bound = None if tenants is None else sorted({str(TenantId(one)) for one in tenants})
        with self._database.begin() as connection:
            values = {
                "id": secrets.token_hex(_ID_BYTES)
                if request is None
                else token_hash(request)[: 2 * _ID_BYTES],
                "name": name,
                "password_hash": "" if password is None else self.hash_password(password),
                "role": role,
                "environments": None if seen is None else json.dumps(seen),
                "tenants": None if bound is None else json.dumps(bound),
                "created_ms": self._database.now_ms(connection),
            }
            made = insert_if_absent(connection, people, values)
            known = select(people).where(people.c.id == values["id"])
            row = connection.execute(known).mappings().one_or_none()
            if row is None or (not made and request is None):
                raise InvalidOption(f"There is a person {name!r} already.", remedy="Use another name.")
            return _person(row)

    def list(self) -> tuple[Person, ...]:
        """All people by name, those that may no longer sign in too."""
        with self._database.read() as connection:
            rows = connection.execute(select(people).order_by(people.c.name)).mappings()
            return tuple(_person(row) for row in rows)

    def named(self, name: str) -> Person:
        """The person of that name.

        Raises:
            NotFound: there is none.
        """
        with self._database.read() as connection:
            row = connection.execute(select(people).where(people.c.name == name)).mappings().one_or_none()
        if row is None:
            raise NotFound(f"There is no person {name!r}.", remedy="Check the name in the list of people.")
        return _person(row)

    def verify(self, name: str, password: str) -> Person:
        """The person with that name and password.

        Raises:
            NotAuthenticated: name and password do not fit, or the person may no longer sign in.
        """
        with self._database.read() as connection:
            row = connection.execute(select(people).where(people.c.name == name)).mappings().one_or_none()
        is_good = self._verify(row["password_hash"] if row else self._nobody, password)
        if row is None or not is_good or row["disabled_ms"] is not None:
            raise NotAuthenticated(
                "Name and password do not fit.",
                cause="There is no such person, the password is another one, or the person was disabled.",
                remedy="Try again, or ask an admin.",
            )
        return _person(row)

    def get_or_create(
        self,
        person_id: str,
        name: str,
        role: Role,
        told_bounds: Mapping[str, Iterable[str] | None] | None = None,
    ) -> Person:
        """The person of that ``provided_id``, made when the account comes for the first time.

        Name and role are what the account says now, and so are those of ``environments`` and ``tenants`` that
        ``told_bounds`` has. Where somebody else has the name, the end of the
        person's id goes with it. A password is never theirs.

        Raises:
            NotAuthenticated: the person may no longer sign in.
        """
        tail = person_id[-8:]
        shown = "".join(letter for letter in name if letter.isprintable())[:_SHOWN_LENGTH].strip() or tail
        bound = {
            what: None if names is None else json.dumps(sorted(names))
            for what, names in (told_bounds or {}).items()
        }
        with self._database.begin() as connection:
            named = connection.execute(select(people.c.id).where(people.c.name == shown)).scalar_one_or_none()
            if named not in {None, person_id}:
                shown = f"{shown} ({tail})"
            values = {
                "id": person_id,
                "name": shown,
                "password_hash": "",
                "role": role,
                "created_ms": self._database.now_ms(connection),
                **bound,
            }
            mine = people.c.id == person_id
            if not insert_if_absent(connection, people, values):
                connection.execute(update(people).where(mine).values(name=shown, role=role, **bound))
            row = connection.execute(select(people).where(mine)).mappings().one()
        if row["disabled_ms"] is not None:
            raise NotAuthenticated(
                "This person may no longer sign in here.",
                cause="An admin has said so.",
                remedy="Ask an admin.",
            )
        return _person(row)

    def begin_session(self, person: Person) -> NewSession:
        """A new session of a person who has proved to be one."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            connection.execute(delete(sessions).where(sessions.c.expires_ms <= now))
            session = {
                "token_hash": token_hash(token),
                "person": person.id,
                "created_ms": now,
                "expires_ms": now + self._session_ms,
            }
            connection.execute(insert(sessions).values(session))
        return NewSession(person, token, now + self._session_ms)

    def sign_out(self, token: str) -> None:
        """End the session; one that is over stays so."""
        with self._database.begin() as connection:
            connection.execute(delete(sessions).where(sessions.c.token_hash == token_hash(token)))

    def authenticate(self, token: str) -> Principal:
        """The principal of that session.

        Raises:
            NotAuthenticated: it is unknown or over.
        """
        query = (
            select(people, sessions.c.expires_ms)
            .join(sessions, sessions.c.person == people.c.id)
            .where(sessions.c.token_hash == token_hash(token))
        )
        with self._database.read() as connection:
            now = self._database.now_ms(connection)
            row = connection.execute(query).mappings().one_or_none()
        if row is None or row["expires_ms"] <= now or row["disabled_ms"] is not None:
            raise unknown_caller()
        return _person(row).principal()

    def hash_password(self, password: str) -> str:
        """The stored hash of a password."""
        return self._hasher.hash(password)

    def _verify(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, password[:_PASSWORD_LENGTH_MAX])
        except (VerificationError, InvalidHashError):
            return False


def provided_id(issuer: str, subject: str) -> str:
    """The id of the person for an account at an identity provider; no other account has it."""
    return f"{_PROVIDED}{hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()[:32]}"


def is_provided(person_id: str) -> bool:
    """Whether the person is an account at an identity provider, and has no password here."""
    return person_id.startswith(_PROVIDED)


def _require_name(name: str) -> None:
    if not name.strip() or len(name) > 200 or any(ord(letter) < 32 for letter in name):  # noqa: PLR2004 - the column, controls
        raise InvalidOption(f"{name!r} cannot be a person's name.", remedy="Pass 1 to 200 letters.")


def require_role(role: str) -> None:
    """Refuse an unknown role (``InvalidOption``)."""
    if role not in ROLES:
        raise InvalidOption(f"There is no role {role!r}.", remedy=f"Use one of {', '.join(ROLES)}.")


def require_password(password: str) -> None:
    """Refuse a password that is too short or too long (``InvalidOption``)."""
    if not PASSWORD_LENGTH_MIN <= len(password) <= _PASSWORD_LENGTH_MAX:
        raise InvalidOption(
            f"A password has {PASSWORD_LENGTH_MIN} to {_PASSWORD_LENGTH_MAX} characters.",
            remedy="Choose a longer one: some words of your own will do.",
        )


def token_hash(token: str) -> str:
    """The stored hash of a session's token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _person(row: Any) -> Person:
    return Person(
        id=row["id"],
        name=row["name"],
        role=row["role"],
        environments=bounds(EnvironmentName, row["environments"]),
        tenants=bounds(TenantId, row["tenants"]),
        created_ms=row["created_ms"],
        disabled_ms=row["disabled_ms"],
    )
