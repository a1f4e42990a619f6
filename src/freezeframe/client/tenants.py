"""The service's operations on tenants.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from freezeframe.client.connection import TENANT, Connection, path_of
from freezeframe.client.types import (
    Certificate,
    EnvironmentList,
    EnvironmentOverview,
    NewTenant,
    Overview,
    ProofReport,
    TenantDetail,
    TenantPage,
    TenantSummaries,
)


class TenantsOperations:
    """Operations on tenants; see ``Client``."""

    _connection: Connection

    def list_environments(self) -> EnvironmentList:
        """List the environments that have tenants."""
        place = path_of("/api/v1/environments")
        return cast("EnvironmentList", self._connection.json("GET", place))

    def show_environment(
        self,
        environment: str,
        *,
        days: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> EnvironmentOverview:
        """Show what somebody should look at: failed jobs.

        Stale tenants, unusual changes, drift, unsealed files.

        A page looks at some tenants, by id; each is read from its logs, once for each of its versions.
        """
        place = path_of("/api/v1/environments/{environment}/overview", environment)
        query = {"days": days, "limit": limit, "cursor": cursor}
        return cast("EnvironmentOverview", self._connection.json("GET", place, query=query))

    def show_overviews(self, environment: str, *, tenant: list[str]) -> TenantSummaries:
        """Show what a list shows of some tenants; those that are not there are left out."""
        place = path_of("/api/v1/environments/{environment}/overviews", environment)
        query = {"tenant": tenant}
        return cast("TenantSummaries", self._connection.json("GET", place, query=query))

    def list_tenants(
        self,
        environment: str,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> TenantPage:
        """List tenants by id, a page at a time."""
        place = path_of("/api/v1/environments/{environment}/tenants", environment)
        query = {"prefix": prefix, "limit": limit, "cursor": cursor}
        return cast("TenantPage", self._connection.json("GET", place, query=query))

    def create_tenant(
        self, environment: str, body: NewTenant, *, idempotency_key: str | None = None
    ) -> TenantDetail:
        """Make a tenant; one that is there stays as it is (200)."""
        place = path_of("/api/v1/environments/{environment}/tenants", environment)
        headers = {"idempotency-key": idempotency_key}
        return cast("TenantDetail", self._connection.json("POST", place, headers=headers, body=body))

    def show_tenant(self, environment: str, tenant: str) -> TenantDetail:
        """Show a tenant: its version, streams and how many files it has."""
        place = path_of("/api/v1/environments/{environment}/tenants/{tenant}", environment, tenant)
        return cast("TenantDetail", self._connection.json("GET", place))

    def delete_tenant(self, environment: str, tenant: str, *, confirm: str) -> Certificate:
        """Remove all that is kept for a tenant, for good, and certify it.

        Its jobs and schedules end with it.

        `confirm` has to be the tenant's id: a client that shortens the path `…/files/..` deletes
        nothing.
        """
        place = path_of("/api/v1/environments/{environment}/tenants/{tenant}", environment, tenant)
        query = {"confirm": confirm}
        return cast("Certificate", self._connection.json("DELETE", place, query=query))

    def clone_tenant(
        self, environment: str, tenant: str, body: NewTenant, *, idempotency_key: str | None = None
    ) -> TenantDetail:
        """Make a new tenant with the newest streams and files of this one, and none of its past."""
        place = path_of(TENANT + "/clone", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("TenantDetail", self._connection.json("POST", place, headers=headers, body=body))

    def show_overview(
        self, environment: str, tenant: str, *, version: int | None = None, tenant_version: int | None = None
    ) -> Overview:
        """Show a tenant's streams with rows, sizes and last changes, now or at a version of the tenant."""
        place = path_of(TENANT + "/overview", environment, tenant)
        query = {"version": version, "tenant_version": tenant_version}
        return cast("Overview", self._connection.json("GET", place, query=query))

    def follow_events(
        self, *, environment: str, tenant: list[str] | None = None, seconds: int | None = None
    ) -> Iterator[str]:
        """Follow what happens in an environment.

        As server-sent events, as far as it is the caller's business.

        `anew` comes first: from now on all is told. `lost`: some was not, read everything again. `job`
        tells what a job has become, `version` what a watched tenant's newest version is. `tenants`:
        some of the environment came or went.
        """
        place = path_of("/api/v1/events")
        query = {"environment": environment, "tenant": tenant, "seconds": seconds}
        return self._connection.lines("GET", place, query=query)

    def show_proof(self) -> ProofReport:
        """Show the report of the last `freezeframe prove` on the store."""
        place = path_of("/api/v1/proof")
        return cast("ProofReport", self._connection.json("GET", place))
