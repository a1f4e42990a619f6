"""Sessions of API keys: the browser stores a session token instead of the key."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from freezeframe.control.database.database import ControlDatabase
from freezeframe.control.tables import key_sessions
from freezeframe.service.identity.api_keys import Keys, unknown_caller
from freezeframe.service.identity.people import token_hash
from freezeframe.service.identity.principal import Principal

# A session's token of a person has no dot.
_PREFIX = "key."
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class KeySessions:
    """The sessions of one service's keys; each ends with its key, or with the secret it was begun with."""

    database: ControlDatabase
    keys: Keys
    session_hours: float

    def begin(self, text: str) -> str:
        """Begin a session with a key; its token.

        Raises:
            NotAuthenticated: the key is not valid.
        """
        principal = self.keys.authenticate(text)
        token = _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
        with self.database.begin() as connection:
            now = self.database.now_ms(connection)
            connection.execute(delete(key_sessions).where(key_sessions.c.expires_ms <= now))
            session = {
                "token_hash": token_hash(token),
                "key": principal.id,
                "secret_hash": self.keys.secret_hash(text),
                "created_ms": now,
                "expires_ms": now + int(self.session_hours * 3_600_000),
            }
            connection.execute(insert(key_sessions).values(session))
        return token

    def authenticate(self, token: str) -> Principal:
        """The principal of that session.

        Raises:
            NotAuthenticated: it is unknown or over, or its key is no longer valid.
        """
        query = select(key_sessions).where(key_sessions.c.token_hash == token_hash(token))
        with self.database.read() as connection:
            now = self.database.now_ms(connection)
            row = connection.execute(query).mappings().one_or_none()
        if row is None or row["expires_ms"] <= now:
            raise unknown_caller()
        return self.keys.with_hash(row["key"], row["secret_hash"])

    def end(self, token: str) -> None:
        """End the session; one that is over stays so."""
        with self.database.begin() as connection:
            connection.execute(delete(key_sessions).where(key_sessions.c.token_hash == token_hash(token)))


def is_of_key(token: str) -> bool:
    """Whether a session's token is one of a key, and not of a person."""
    return token.startswith(_PREFIX)
