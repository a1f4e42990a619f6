"""The service's operations on session.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import Connection, path_of
from freezeframe.client.types import (
    KeySignIn,
    SignIn,
    SignInWays,
    Who,
)


class SessionOperations:
    """Operations on session; see ``Client``."""

    _connection: Connection

    def show_session(self) -> Who:
        """Who asks, and what they may do."""
        place = path_of("/api/v1/session")
        return cast("Who", self._connection.json("GET", place))

    def sign_in(self, body: SignIn | KeySignIn) -> Who:
        """Sign in with name and password, or with a key.

        The session is in a cookie that no script can read.
        """
        place = path_of("/api/v1/session")
        return cast("Who", self._connection.json("POST", place, body=body))

    def sign_out(self) -> dict[str, str]:
        """End the session of who asks."""
        place = path_of("/api/v1/session")
        return self._connection.headers("DELETE", place)

    def sign_in_ways(self) -> SignInWays:
        """How people can sign in here; asked by the sign-in page, which knows nobody yet."""
        place = path_of("/api/v1/session/ways")
        return cast("SignInWays", self._connection.json("GET", place))
