"""The service's operations on people.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import Connection, path_of
from freezeframe.client.types import (
    AcceptedInvitation,
    Invitation,
    NewPerson,
    PasswordChange,
    Person,
    PersonChange,
    PersonList,
    PersonSessions,
)


class PeopleOperations:
    """Operations on people; see ``Client``."""

    _connection: Connection

    def list_people(self) -> PersonList:
        """List the people, those that may no longer sign in too."""
        place = path_of("/api/v1/people")
        return cast("PersonList", self._connection.json("GET", place))

    def invite_person(self, body: NewPerson, *, idempotency_key: str | None = None) -> Invitation:
        """Make a person, with an invitation to set a password."""
        place = path_of("/api/v1/people")
        headers = {"idempotency-key": idempotency_key}
        return cast("Invitation", self._connection.json("POST", place, headers=headers, body=body))

    def change_person(self, person_id: str, body: PersonChange) -> Person:
        """Give a person another role or other bounds, or disable or enable them; what is left out stays."""
        place = path_of("/api/v1/people/{person_id}", person_id)
        return cast("Person", self._connection.json("PATCH", place, body=body))

    def reset_password(self, person_id: str, *, idempotency_key: str | None = None) -> Invitation:
        """Make an invitation with which the person sets a new password; the old one is good until then."""
        place = path_of("/api/v1/people/{person_id}/invitation", person_id)
        headers = {"idempotency-key": idempotency_key}
        return cast("Invitation", self._connection.json("POST", place, headers=headers))

    def list_sessions(self, person_id: str) -> PersonSessions:
        """List where a person is signed in."""
        place = path_of("/api/v1/people/{person_id}/sessions", person_id)
        return cast("PersonSessions", self._connection.json("GET", place))

    def end_sessions(self, person_id: str) -> dict[str, str]:
        """Sign a person out everywhere."""
        place = path_of("/api/v1/people/{person_id}/sessions", person_id)
        return self._connection.headers("DELETE", place)

    def end_session(self, person_id: str, session_id: str) -> dict[str, str]:
        """End one session of a person; one that is over stays so."""
        place = path_of("/api/v1/people/{person_id}/sessions/{session_id}", person_id, session_id)
        return self._connection.headers("DELETE", place)

    def accept_invitation(
        self, body: AcceptedInvitation, *, idempotency_key: str | None = None
    ) -> dict[str, str]:
        """Set a password with an invitation; then sign in."""
        place = path_of("/api/v1/session/invitation")
        headers = {"idempotency-key": idempotency_key}
        return self._connection.headers("POST", place, headers=headers, body=body)

    def change_password(self, body: PasswordChange, *, idempotency_key: str | None = None) -> dict[str, str]:
        """Change the password of who is signed in; all their sessions end."""
        place = path_of("/api/v1/session/password")
        headers = {"idempotency-key": idempotency_key}
        return self._connection.headers("POST", place, headers=headers, body=body)
