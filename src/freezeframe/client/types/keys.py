"""What the service says and is told of keys.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Scope = Literal[
    "tenants:read",
    "snapshots:read",
    "snapshots:write",
    "snapshots:delete",
    "secrets:read",
    "jobs:read",
    "jobs:run",
    "admin",
]


class Key(TypedDict):
    """A key without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    environments: list[str] | None
    tenants: list[str] | None
    created: str
    created_by: str
    expires: str | None
    revoked: str | None
    last_used: str | None


class KeyPage(TypedDict):
    """Keys by id."""

    keys: list[Key]
    next_cursor: str | None


class KeyWithSecret(Key):
    """A key with what a client sends, ``id.secret``; it is told this once."""

    key: str


class NewKey(TypedDict):
    """A key that is to be made."""

    name: NotRequired[str]
    scopes: NotRequired[list[Scope]]
    environments: NotRequired[list[str] | None]
    tenants: NotRequired[list[str] | None]
    days: NotRequired[float | None]


class Rotation(TypedDict):
    """How long the secret from before stays good."""

    overlap_hours: NotRequired[float]
