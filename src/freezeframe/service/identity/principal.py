"""Principals: a key or a person, with its scopes and tenants.

A principal is made by authentication and handed down; nothing below ever asks a request who it is from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from freezeframe.errors import InvalidOption, NotAllowed
from freezeframe.identifiers import EnvironmentName, TenantId

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
SCOPES: tuple[Scope, ...] = get_args(Scope)
DEFAULT_SCOPES: tuple[Scope, ...] = tuple(item for item in SCOPES if item != "admin")

Role = Literal["admin", "editor", "viewer"]
ROLES: dict[Role, frozenset[Scope]] = {
    "admin": frozenset(SCOPES),
    "editor": frozenset(DEFAULT_SCOPES),
    "viewer": frozenset({"tenants:read", "snapshots:read", "jobs:read"}),
}

_Name = TypeVar("_Name", EnvironmentName, TenantId)


@dataclass(frozen=True, slots=True)
class Principal:
    """A key or a person with scopes, in some environments, for some tenants.

    ``tenants`` and ``environments`` None means all of them. ``id`` is stable and names the principal in
    the audit, ``name`` is what the history shows.
    """

    kind: Literal["key", "person"]
    id: str
    name: str
    scopes: frozenset[Scope]
    environments: frozenset[EnvironmentName] | None = None
    tenants: frozenset[TenantId] | None = None

    def may(self, scope: Scope) -> bool:
        """Whether the scope, or ``admin``, is among the principal's."""
        return scope in self.scopes or "admin" in self.scopes

    def sees_environment(self, environment: EnvironmentName) -> bool:
        """Whether the principal may see anything in the environment."""
        return self.environments is None or environment in self.environments

    def sees(self, environment: EnvironmentName, tenant: TenantId) -> bool:
        """Whether the principal may see the tenant; if not, it must look as if it did not exist."""
        return self.sees_environment(environment) and (self.tenants is None or tenant in self.tenants)

    def require(self, scope: Scope) -> None:
        """Refuse a principal without the scope."""
        if not self.may(scope):
            raise NotAllowed(
                f"This needs the scope {scope!r}.",
                cause=f"The {self.kind} has {', '.join(sorted(self.scopes)) or 'none'}.",
                remedy="Use another key, or have its scopes changed.",
                scope=scope,
            )

    def require_everywhere(self) -> None:
        """Refuse a principal that is bound to some tenants, for what concerns all of them."""
        self.require("admin")
        if self.tenants is not None or self.environments is not None:
            raise NotAllowed(
                "This concerns the whole service.",
                cause=f"The {self.kind} is bound to some tenants or environments.",
                remedy="Use one that is bound to none.",
            )


def bounds(kind: type[_Name], kept: str | None) -> tuple[_Name, ...] | None:
    """The names in a JSON list of the control database; None, which is not a list, means all."""
    return None if kept is None else tuple(map(kind, json.loads(kept)))


def scopes_from(names: tuple[str, ...]) -> frozenset[Scope]:
    """The scopes of those names; all but ``admin`` where none is named."""
    odd = [name for name in names if name not in SCOPES]
    if odd:
        raise InvalidOption(f"There is no scope {odd[0]!r}.", remedy=f"Use some of {', '.join(SCOPES)}.")
    return frozenset(item for item in SCOPES if item in names) or frozenset(DEFAULT_SCOPES)
