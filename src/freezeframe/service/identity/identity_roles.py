"""Maps an OpenID Connect account's claims to a role, by the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from freezeframe.errors import InvalidName, NotAllowed, SetupError
from freezeframe.service.identity.principal import ROLES, Role


def parse_roles(text: str) -> dict[str, Role]:
    """Roles by the claim's values, from ``ops-team=admin, support=viewer``; the roles' own names without any.

    Raises:
        SetupError: a pair is none, or names no role.
    """
    if not text.strip():
        return {role: role for role in ROLES}
    found: dict[str, Role] = {}
    for pair in text.split(","):
        value, separator, named = (part.strip() for part in pair.rpartition("="))
        role: Role | None = next((one for one in ROLES if one == named), None)
        if not (separator and value and role):
            raise SetupError(
                f"{pair.strip()!r} in service_oidc_roles is not a role of a claim's value.",
                remedy=f"Write it as group=role, with a role of {', '.join(ROLES)}.",
            )
        found[value] = role
    return found


def role_of(claims: Mapping[str, Any], claim: str, roles: Mapping[str, Role]) -> Role:
    """The highest role that the claim gives.

    Raises:
        NotAllowed: it gives none.
    """
    given = _values(claims, claim)
    # The roles stand from the highest to the lowest.
    found: Role | None = next((one for one in ROLES if one in {roles.get(value) for value in given}), None)
    if found is None:
        raise NotAllowed(
            "Your account has no role here.",
            cause=f"Its claim {claim!r} has {', '.join(map(repr, given[:20])) or 'nothing'}, and none of "
            f"{', '.join(sorted(roles))}.",
            remedy="Ask who keeps the accounts for one of these.",
            code="NO_ROLE",
        )
    return found


def bounds_of(claims: Mapping[str, Any], claim: str, kind: type[str]) -> tuple[str, ...] | None:
    """The names that the claim binds a person to; None for ``*``. What is not a name is left out."""
    given = _values(claims, claim)
    return None if "*" in given else tuple(sorted({str(one) for one in _names(given, kind)}))


def _names(given: list[str], kind: type[str]) -> Iterator[str]:
    for value in given:
        with suppress(InvalidName):
            yield kind(value)


def _values(claims: Mapping[str, Any], claim: str) -> list[str]:
    found: Any = claims.get(claim)
    if found is None:
        found = claims
        for name in claim.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
    listed = found if isinstance(found, list) else [found]
    return [one for one in listed if isinstance(one, str)]
