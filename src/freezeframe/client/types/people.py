"""What the service says and is told of people.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class AcceptedInvitation(TypedDict):
    """A password for who was invited."""

    invitation: str
    password: str


class Invitation(TypedDict):
    """What a person sets a password with, once, within three days; it is told this once."""

    person: Person
    invitation: str


class NewPerson(TypedDict):
    """A person who is invited: without environments and tenants they see all of them."""

    name: str
    role: NotRequired[Literal["admin", "editor", "viewer"]]
    environments: NotRequired[list[str] | None]
    tenants: NotRequired[list[str] | None]


class PasswordChange(TypedDict):
    """A new password, with the one from before."""

    old: str
    new: str


class Person(TypedDict):
    """A person; ``is_provided``: an account at the identity provider, without a password here."""

    id: str
    name: str
    role: Literal["admin", "editor", "viewer"]
    environments: list[str] | None
    tenants: list[str] | None
    created: str
    disabled: str | None
    is_provided: bool


class PersonChange(TypedDict):
    """What becomes of a person; what is left out stays as it is, null bounds are none."""

    role: NotRequired[Literal["admin", "editor", "viewer"] | None]
    environments: NotRequired[list[str] | None]
    tenants: NotRequired[list[str] | None]
    is_disabled: NotRequired[bool | None]


class PersonList(TypedDict):
    """The people by name."""

    people: list[Person]


class PersonSession(TypedDict):
    """A session of a person."""

    id: str
    created: str
    expires: str


class PersonSessions(TypedDict):
    """The sessions of a person, the newest first."""

    sessions: list[PersonSession]
