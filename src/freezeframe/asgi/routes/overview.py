"""Tenants at a glance: one answer for what a panel shows of one, and one for what a list shows of many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query

from freezeframe.asgi.dependencies.caller import Caller, Calling, Environment, TenantCalling
from freezeframe.asgi.models.overview import LastJob, Overview, TenantSummaries, TenantSummary
from freezeframe.asgi.problems import declared
from freezeframe.asgi.routes.parameters import TenantVersion as TenantVersionQuery
from freezeframe.asgi.routes.routing import TENANT, api_router
from freezeframe.control.job import QueuedJob
from freezeframe.control.job_feed import newest_jobs
from freezeframe.errors import TenantNotFound
from freezeframe.identifiers import EnvironmentName, TenantId

router = api_router("tenants")
_SUMMARIES_MAX = 100


@router.get(f"{TENANT}/overview", responses=declared(404))
def show_overview(caller: TenantCalling, version: TenantVersionQuery) -> Overview:
    """Show a tenant's streams with rows, sizes and last changes, now or at a version of the tenant."""
    seen = caller.service.overviews.of(caller.tenant("snapshots:read"), version)
    return Overview.of(seen, environment=caller.environment, tenant=caller.tenant_id)


@router.get("/environments/{environment}/overviews")
def show_overviews(
    caller: Calling,
    environment: Environment,
    tenant: Annotated[
        list[str], Query(min_length=1, max_length=_SUMMARIES_MAX, description="Which tenants.")
    ],
) -> TenantSummaries:
    """Show what a list shows of some tenants; those that are not there are left out."""
    caller.principal.require("snapshots:read")
    wanted = list(dict.fromkeys(map(TenantId, tenant)))
    jobs = (
        newest_jobs(caller.service.database, environment, wanted) if caller.principal.may("jobs:read") else {}
    )
    found = (_summary(caller, environment, one, jobs) for one in wanted)
    return TenantSummaries(tenants=[one for one in found if one is not None])


def _summary(
    caller: Caller, environment: EnvironmentName, tenant: TenantId, jobs: Mapping[str, QueuedJob]
) -> TenantSummary | None:
    try:
        seen = caller.service.overviews.of(caller.access.tenant(environment, tenant, "snapshots:read"))
    except TenantNotFound:
        return None
    last = jobs.get(tenant)
    if last is not None and not caller.service.stores.is_current(last):
        last = None
    return TenantSummary(
        tenant=tenant,
        version=seen.version,
        streams=len(seen.streams),
        rows=sum(one.rows for one in seen.streams),
        size_bytes=seen.file_bytes + sum(one.size_bytes for one in seen.streams),
        changed=seen.timestamp,
        last_job=None if last is None else LastJob.of(last),
        days=list(seen.days),
    )
