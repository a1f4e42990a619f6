"""Administration of people: their roles and bounds, invitations, passwords and sessions."""

from __future__ import annotations

import base64
import builtins
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update

from freezeframe.control.database.database import ControlDatabase
from freezeframe.control.tables import people, sessions
from freezeframe.errors import InvalidOption, NotAllowed, NotAuthenticated, NotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.base.pepper import Pepper
from freezeframe.service.base.timestamps import rfc3339
from freezeframe.service.identity.people import (
    People,
    Person,
    is_provided,
    require_password,
    require_role,
    token_hash,
)

_LABEL = b"freezeframe invitations"
_INVITATION_SECONDS = 3 * 86_400
_SHOWN = 16


@dataclass(frozen=True, slots=True)
class PersonSession:
    """A session as an admin sees it: named by a part of its token's hash, which nobody can sign in with."""

    id: str
    created: str
    expires: str


class PeopleAdministration:
    """Changes of the people of one service; invitations are signed with its secret."""

    def __init__(self, database: ControlDatabase, known: People, pepper: Pepper) -> None:
        self._database = database
        self._people = known
        self._pepper = pepper

    def get(self, person_id: str) -> Person:
        """The person of that id.

        Raises:
            NotFound: there is none.
        """
        found = next((one for one in self._people.list() if one.id == person_id), None)
        if found is None:
            raise NotFound(f"There is no person {person_id!r}.", remedy="Check the id in the list of people.")
        return found

    def change(
        self,
        person_id: str,
        *,
        role: str | None = None,
        bounds: Mapping[str, Iterable[str] | None] | None = None,
        is_disabled: bool | None = None,
    ) -> Person:
        """Give a person another role, other ``environments`` or ``tenants`` (in ``bounds``), or end or begin.

        Who is disabled is signed out. What changes holds from the person's next request on.

        Raises:
            NotFound: there is none of that id.
            InvalidOption, InvalidName: an unknown role, or a bound that can be none.
        """
        known, values = self.get(person_id), dict[str, Any]()
        if role is not None:
            require_role(role)
            values["role"] = role
        for name, kind in (("environments", EnvironmentName), ("tenants", TenantId)):
            if bounds is not None and name in bounds:
                wanted = bounds[name]
                names = None if wanted is None else json.dumps(sorted({str(kind(one)) for one in wanted}))
                values[name] = names
        with self._database.begin() as connection:
            if is_disabled is not None:
                now = self._database.now_ms(connection)
                values["disabled_ms"] = (known.disabled_ms or now) if is_disabled else None
            if values:
                connection.execute(update(people).where(people.c.id == person_id).values(values))
            if is_disabled:
                connection.execute(delete(sessions).where(sessions.c.person == person_id))
        return self.get(person_id)

    def invitation(self, person_id: str) -> str:
        """An invitation: a text with which the person sets or resets a password, once, within three days.

        Raises:
            NotFound: there is none of that id.
            InvalidOption: the person signs in at the identity provider, or may not sign in.
        """
        known = self.get(person_id)
        if is_provided(person_id) or known.disabled_ms is not None:
            raise InvalidOption(
                f"{known.name!r} cannot be invited.",
                cause="The person signs in at the identity provider, or is disabled.",
                remedy="Have the provider reset the password, or enable the person first.",
            )
        until = int(time.time()) + _INVITATION_SECONDS
        content = f"{person_id}.{until}"
        signature, *_ = self._signatures(content, self._password_hash(person_id))
        return f"{content}.{signature}"

    def accept(self, invitation: str, password: str) -> Person:
        """Set the invited person's password; the invitation and all earlier sessions end.

        Raises:
            NotAuthenticated: the invitation is not ours, over, or used.
            InvalidOption: the password is too short.
        """
        content, _, signature = invitation.rpartition(".")
        person_id, _, until = content.partition(".")
        kept = self._password_hash(person_id)
        signatures = self._signatures(content, kept)
        is_ours = any(hmac.compare_digest(signature.encode(), one.encode()) for one in signatures)
        if not is_ours or not until.isdigit() or int(until) < time.time():
            raise NotAuthenticated(
                "The invitation is not valid.",
                cause="It was used, is over, or was not made here.",
                remedy="Ask an admin for a new one.",
            )
        known = self.get(person_id)
        if known.disabled_ms is not None:
            raise NotAuthenticated("This person may no longer sign in.", remedy="Ask an admin.")
        self._set_password(person_id, password)
        return known

    def change_password(self, person_id: str, old: str, new: str) -> Person:
        """Set a person's own password; all sessions of the person end.

        Raises:
            NotAllowed: the old one is wrong.
            InvalidOption: the new one is too short.
        """
        try:
            known = self._people.verify(self.get(person_id).name, old)
        except NotAuthenticated:
            # Who asks is known by the session, and stays so.
            raise NotAllowed(
                "The current password is another one.",
                cause="A new password takes the one that holds now.",
                remedy="Try again, or have an admin reset it.",
            ) from None
        self._set_password(person_id, new)
        return known

    def sessions(self, person_id: str) -> builtins.list[PersonSession]:
        """The sessions of a person that are not over, the newest first."""
        self.get(person_id)
        query = select(sessions).where(sessions.c.person == person_id).order_by(sessions.c.created_ms.desc())
        with self._database.read() as connection:
            now = self._database.now_ms(connection)
            rows = connection.execute(query).mappings().all()
        return [
            PersonSession(row["token_hash"][:_SHOWN], rfc3339(row["created_ms"]), rfc3339(row["expires_ms"]))
            for row in rows
            if row["expires_ms"] > now
        ]

    def end_sessions(self, person_id: str, session: str | None = None) -> int:
        """End one session of a person, or all of them; how many were kept. One that is over stays so.

        Raises:
            NotFound: there is no such person.
        """
        self.get(person_id)
        ended = delete(sessions).where(sessions.c.person == person_id)
        if session is not None:
            ended = ended.where(sessions.c.token_hash.startswith(session, autoescape=True))
        with self._database.begin() as connection:
            return connection.execute(ended).rowcount

    def _set_password(self, person_id: str, password: str) -> None:
        require_password(password)
        made = self._people.hash_password(password)
        with self._database.begin() as connection:
            connection.execute(update(people).where(people.c.id == person_id).values(password_hash=made))
            connection.execute(delete(sessions).where(sessions.c.person == person_id))

    def _password_hash(self, person_id: str) -> str:
        with self._database.read() as connection:
            kept = select(people.c.password_hash).where(people.c.id == person_id)
            return connection.execute(kept).scalar_one_or_none() or token_hash(person_id)

    def _signatures(self, content: str, password_hash: str) -> list[str]:
        # With the password's hash in it an invitation is good until a password is set.
        drawn = self._pepper.signatures(_LABEL, f"{content}\n{password_hash}".encode())
        return [base64.urlsafe_b64encode(one).decode().rstrip("=") for one in drawn]
