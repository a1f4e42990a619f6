"""Polls a store for changes: jobs, versions of some tenants, tenants created and deleted.

Nothing is looked through: of the queue only what may have changed is asked, of the tenants only those that
are watched, each by two looks at its log's end, and the registry is one log of that kind as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from freezeframe.control.job import JobStatus
from freezeframe.control.queue import JobFeed
from freezeframe.errors import FixTheRequest, ReportDamage
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.access.access import Stores
from freezeframe.service.identity.principal import Principal

_ALL = 2**62


@dataclass(frozen=True, slots=True)
class JobEvent:
    """A job that has become something."""

    environment: EnvironmentName
    tenant: TenantId
    job_id: str
    status: JobStatus

    def is_for(self, principal: Principal) -> bool:
        """Whether the principal may see it."""
        return principal.may("jobs:read") and principal.sees(self.environment, self.tenant)


@dataclass(frozen=True, slots=True)
class VersionEvent:
    """A watched tenant that has a new version."""

    environment: EnvironmentName
    tenant: TenantId
    version: int

    def is_for(self, principal: Principal) -> bool:
        """Whether the principal may see it."""
        return principal.may("snapshots:read") and principal.sees(self.environment, self.tenant)


@dataclass(frozen=True, slots=True)
class TenantsEvent:
    """An environment in which tenants came or went."""

    environment: EnvironmentName
    names: frozenset[TenantId]

    def is_for(self, principal: Principal) -> bool:
        """Whether the principal may see one of them."""
        return principal.may("tenants:read") and any(
            principal.sees(self.environment, name) for name in self.names
        )


Event = JobEvent | VersionEvent | TenantsEvent


class Watch:
    """Looks again and again at one store; for one thread at a time."""

    def __init__(self, stores: Stores, feed: JobFeed) -> None:
        self._stores = stores
        self._feed = feed
        self._versions: dict[tuple[EnvironmentName, TenantId], int | None] = {}
        self._names: dict[EnvironmentName, tuple[str, ...]] = {}

    def look(self, wanted: Mapping[EnvironmentName, Collection[TenantId]]) -> list[Event]:
        """Events since the previous call: jobs of all tenants, and versions of the watched tenants.

        Of what was not watched before nothing is told; ``version`` has it from now on.
        """
        found: list[Event] = [
            JobEvent(EnvironmentName(item.environment), TenantId(item.tenant), item.job_id, item.status)
            for item in self._feed.look()
        ]
        versions, names = self._versions, self._names
        self._names = {item: self._stores.environment(item).tenants(limit=_ALL) for item in wanted}
        self._versions = {
            (environment, tenant): self._version(environment, tenant)
            for environment, tenants in wanted.items()
            for tenant in tenants
        }
        for place, version in self._versions.items():
            if version is not None and version != versions.get(place, version):
                found.append(VersionEvent(*place, version))
        for environment, now in self._names.items():
            if now != (before := names.get(environment, now)):
                found.append(TenantsEvent(environment, frozenset(map(TenantId, set(now) ^ set(before)))))
        return found

    def version(self, environment: EnvironmentName, tenant: TenantId) -> VersionEvent | None:
        """The version that the last look found; None where it did not look, or there is no such tenant."""
        found = self._versions.get((environment, tenant))
        return None if found is None else VersionEvent(environment, tenant, found)

    def _version(self, environment: EnvironmentName, tenant: TenantId) -> int | None:
        try:
            return self._stores.environment(environment).tenant(tenant).version
        except (FixTheRequest, ReportDamage):
            return None  # missing or damaged, which is reported when it is opened
