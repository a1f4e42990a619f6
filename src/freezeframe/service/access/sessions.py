"""Sessions of browsers, and the signed tickets that begin them.

A session is a row, found by the hash of the random token in its cookie. A session of a key ends with the key,
or with the secret that began it. A session of a person holds the rights that an identity provider, or the
link of ``freezeframe serve``, gave when it began. That command prints its link on loopback, as Jupyter does,
and makes the first visitor an administrator.
"""

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import delete, insert, or_, select

from freezeframe.control.database import ControlDatabase, insert_if_absent
from freezeframe.control.tables import sessions, used_sign_ins
from freezeframe.errors import NotAuthenticated
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.access.identity_provider import SignInAttempt
from freezeframe.service.access.keys import ROLES, Keys, Principal, Role, bounds, unknown_caller
from freezeframe.service.signing import ServiceSecret

_TOKEN_BYTES = 32
_NAME_LENGTH_MAX = 180


@dataclass(frozen=True, slots=True)
class Person:
    """A person who signed in without a key; ``environments`` and ``tenants`` None means all."""

    id: str
    name: str
    role: Role
    environments: tuple[str, ...] | None = None
    tenants: tuple[str, ...] | None = None

    def principal(self) -> Principal:
        """Return the principal of this person."""
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
        """Begin a session with a key and return its token."""
        principal = self._keys.authenticate(text)
        return self._begin({"key": principal.id, "secret_hash": self._keys.secret_hash(text)})

    def begin(self, person: Person) -> str:
        """Begin a session of an authenticated person and return its token."""
        known = {"environments": person.environments, "tenants": person.tenants}
        limits = {what: None if names is None else json.dumps(names) for what, names in known.items()}
        return self._begin({"person": person.id, "name": person.name, "role": person.role, **limits})

    def authenticate(self, token: str) -> Principal:
        """Return the principal of that session."""
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
        """End the session; a session that has ended stays so."""
        with self._database.begin() as connection:
            connection.execute(delete(sessions).where(sessions.c.token_hash == _hash(token)))

    def end_all(self, principal_id: str | None = None) -> int:
        """End all sessions, or those of a key or person, and return how many there were."""
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
    """Return the person of an account at an identity provider; no other account has the same id."""
    digest = hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()[:32]
    shown = "".join(letter for letter in name if letter.isprintable())[:_NAME_LENGTH_MAX].strip()
    return Person(f"oidc-{digest}", shown or digest[-8:], role, **limits)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


LIFE_SECONDS = 600
LINK_SECONDS = 86_400
_LABEL = b"freezeframe sign-in tickets"


@dataclass(frozen=True, slots=True)
class Ticket:
    """An attempt to sign in, and the page that it is to end at."""

    attempt: SignInAttempt
    page: str


class Tickets:
    """Makes and reads tickets; all workers of a service have the same secret."""

    def __init__(self, secret: ServiceSecret) -> None:
        self._secret = secret

    def encode(self, ticket: Ticket) -> str:
        """Return the ticket as a cookie's value."""
        return self._sign(asdict(ticket), LIFE_SECONDS)

    def read(self, cookie: str, state: str) -> Ticket:
        """Return the ticket of the browser, if its state matches."""
        record = self._read(cookie)
        try:
            ticket = Ticket(SignInAttempt(**record["attempt"]), record["page"])
        except (KeyError, TypeError):
            raise _unknown_ticket() from None
        if not hmac.compare_digest(ticket.attempt.state.encode(), state.encode()):
            raise _unknown_ticket()
        return ticket

    def link(self) -> str:
        """Return a text that signs in once, within a day."""
        return self._sign({"link": secrets.token_hex(8)}, LINK_SECONDS)

    def read_link(self, text: str) -> str:
        """Return the name under which the use of a link is recorded."""
        link = self._read(text).get("link")
        if not isinstance(link, str):
            raise _unknown_ticket()
        return f"link-{link}"

    def name(self, ticket: Ticket) -> str:
        """Return the name under which a used ticket is recorded."""
        return hashlib.sha256(ticket.attempt.state.encode()).hexdigest()

    def _sign(self, record: dict[str, Any], life_seconds: int) -> str:
        return self._secret.to_text(_LABEL, {**record, "until": time.time() + life_seconds})

    def _read(self, text: str) -> dict[str, Any]:
        try:
            record: dict[str, Any] = self._secret.from_text(_LABEL, text)
            is_current = record["until"] > time.time()
        except (ValueError, KeyError, TypeError):
            raise _unknown_ticket() from None
        if not is_current:
            raise _unknown_ticket()
        return record


def local_page(address: str | None, default: str = "/tenants") -> str:
    """Return the address if it is a page of this service, else the first page, so that no link leads away."""
    is_ours = (
        address is not None
        and address.startswith("/")
        and not address.startswith("//")
        and "\\" not in address
        and address.isprintable()
        and address.isascii()
    )
    return address if is_ours and address is not None else default


def _unknown_ticket() -> NotAuthenticated:
    return NotAuthenticated(
        "This sign-in is unknown or has expired.",
        cause="Its ticket is missing, expired, or from another service.",
        remedy="Begin again at the sign-in page, or start freezeframe serve again for another link.",
    )
