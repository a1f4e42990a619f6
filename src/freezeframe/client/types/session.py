"""What the service says and is told of session.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Literal, TypedDict

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


class KeySignIn(TypedDict):
    """A key that its owner looks at the console with."""

    key: str


class SignIn(TypedDict):
    """A person's name and password."""

    name: str
    password: str


class SignInWays(TypedDict):
    """How people sign in: by name and password always, and with accounts of ``provider`` if there is one."""

    provider: str | None


class Who(TypedDict):
    """Who asks, and what they may do."""

    kind: Literal["key", "person"]
    id: str
    name: str
    scopes: list[Scope]
    environments: list[str] | None
    tenants: list[str] | None
    is_provided: bool
    body_bytes_max: int
