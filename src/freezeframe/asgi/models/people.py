"""People: who signs in, invitations, sessions."""

from __future__ import annotations

from datetime import datetime

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example
from freezeframe.service.identity.principal import Role


class NewPerson(RequestModel):
    """A person who is invited: without environments and tenants they see all of them."""

    model_config = ConfigDict(json_schema_extra=example(name="ada", role="viewer", environments=["dev"]))

    name: str = Field(min_length=1, max_length=200)
    role: Role = "viewer"
    environments: list[str] | None = Field(default=None, max_length=1000)
    tenants: list[str] | None = Field(default=None, max_length=1000)


class PersonChange(RequestModel):
    """What becomes of a person; what is left out stays as it is, null bounds are none."""

    model_config = ConfigDict(json_schema_extra=example(role="editor"))

    role: Role | None = None
    environments: list[str] | None = Field(default=None, max_length=1000)
    tenants: list[str] | None = Field(default=None, max_length=1000)
    is_disabled: bool | None = None


class Person(ResponseModel):
    """A person; `is_provided`: an account at the identity provider, without a password here."""

    id: str
    name: str
    role: Role
    environments: list[str] | None
    tenants: list[str] | None
    created: datetime
    disabled: datetime | None
    is_provided: bool


class PersonList(ResponseModel):
    """The people by name."""

    people: list[Person]


class Invitation(ResponseModel):
    """What a person sets a password with, once, within three days; it is told this once."""

    person: Person
    invitation: str = Field(repr=False)


class PersonSession(ResponseModel):
    """A session of a person."""

    id: str
    created: datetime
    expires: datetime


class PersonSessions(ResponseModel):
    """The sessions of a person, the newest first."""

    sessions: list[PersonSession]


class AcceptedInvitation(RequestModel):
    """A password for who was invited."""

    invitation: str = Field(min_length=1, max_length=300, repr=False)
    password: str = Field(min_length=1, max_length=1000, repr=False)


class PasswordChange(RequestModel):
    """A new password, with the one from before."""

    old: str = Field(min_length=1, max_length=1000, repr=False)
    new: str = Field(min_length=1, max_length=1000, repr=False)
