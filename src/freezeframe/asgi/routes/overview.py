"""Overviews: one tenant for a panel, and many for a list."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query

from freezeframe.asgi.dependencies.caller import Caller, Calling, Environment, TenantCalling
from freezeframe.asgi.models.tenants import (
    EnvironmentOverview,
    FailedJob,
    LastJob,
    Overview,
    ProofReport,
    TenantSummaries,
    TenantSummary,
    TenantWithFindings,
    UnreadableTenant,
)
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.routing import TENANT, CursorText, api_router
from freezeframe.asgi.routes.routing import TenantVersion as TenantVersionQuery
from freezeframe.control.job import QueuedJob
from freezeframe.control.queue import failed_jobs, newest_jobs
from freezeframe.errors import NotFound, ReportDamage, TenantNotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.runs.queue.attempt import first_line
from freezeframe.service.overview.overview import Overview as Seen

router = api_router("tenants")
_SUMMARIES_MAX = 100
_EACH_MAX = 20


@router.get(f"{TENANT}/overview", responses=to_openapi(404))
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
    jobs = _last_jobs(caller, environment, wanted)
    found = []
    for item in wanted:
        with suppress(TenantNotFound):
            seen = caller.service.overviews.of(caller.access.tenant(environment, item, "snapshots:read"))
            found.append(_summary(item, seen, jobs.get(item)))
    return TenantSummaries(tenants=found)


@router.get("/environments/{environment}/overview")
def show_environment(
    caller: Calling,
    environment: Environment,
    days: Annotated[int, Query(ge=1, le=30, description="How far back changes and jobs are told.")] = 7,
    limit: Annotated[int, Query(ge=1, le=200, description="How many tenants are looked at.")] = 100,
    cursor: CursorText = None,
) -> EnvironmentOverview:
    """Show what somebody should look at: failed jobs, stale tenants, unusual changes, drift, unsealed files.

    A page looks at some tenants, by id; each is read from its logs, once for each of its versions.
    """
    caller.principal.require("snapshots:read")
    listing = f"overview\n{environment!r}\n{days}"
    after = None if cursor is None else str(caller.service.cursors.read(listing, cursor))
    page = caller.access.page(environment, "", after, limit)
    now = datetime.now(UTC)
    since = now - timedelta(days=days)
    wanted = list(map(TenantId, page.tenants))
    jobs = _last_jobs(caller, environment, wanted)
    tenants, unreadable = [], []
    for tenant in wanted:
        try:
            found = _tenant_findings(caller, environment, tenant, jobs.get(tenant), since, now)
        except ReportDamage as error:
            unreadable.append(UnreadableTenant(tenant=tenant, code=error.error_code))
        else:
            tenants += found
    following = None if page.next_after is None else caller.service.cursors.encode(listing, page.next_after)
    return EnvironmentOverview(
        failed_jobs=_failed_jobs(caller, environment, since) if cursor is None else [],
        tenants=tenants,
        unreadable=unreadable,
        next_cursor=following,
    )


@router.get("/proof", responses=to_openapi(404))
def show_proof(caller: Calling) -> ProofReport:
    """Show the report of the last `freezeframe prove` on the store."""
    caller.principal.require_everywhere()
    report = caller.service.stores.proof_report()
    if report is None:
        raise NotFound(
            "No promise has been put to the test on this store yet.",
            remedy="Run freezeframe prove, best with --minutes 10, at a machine of the service.",
        )
    return ProofReport(**{name: report[name] for name in ProofReport.model_fields})


def _tenant_findings(
    caller: Caller,
    environment: EnvironmentName,
    tenant_id: TenantId,
    job: QueuedJob | None,
    since: datetime,
    now: datetime,
) -> list[TenantWithFindings]:
    """The tenant's findings; none if it was deleted meanwhile."""
    try:
        tenant = caller.access.tenant(environment, tenant_id, "snapshots:read")
    except TenantNotFound:
        return []
    success = job.finished if job is not None and job.status == "succeeded" else None
    found = caller.service.findings.of(tenant, since, now, success)
    told = {name: getattr(found, name)[:_EACH_MAX] for name in ("unusual", "drift", "unsealed")}
    summary = _summary(tenant_id, found.overview, job)
    return [TenantWithFindings.of(summary, stale=found.stale, **told)]


def _failed_jobs(caller: Caller, environment: EnvironmentName, since: datetime) -> list[FailedJob]:
    if not (caller.principal.may("jobs:read") and caller.principal.sees_environment(environment)):
        return []
    found = failed_jobs(caller.service.database, environment, caller.principal.tenants, since)
    described = map(caller.service.jobs.describe_job, filter(caller.service.stores.is_current, found))
    return [
        FailedJob(
            error=first_line(item["outcome"]),
            error_code=((item["outcome"] or {}).get("error") or {}).get("code"),
            **{name: item[name] for name in ("tenant", "job_id", "status", "finished")},
        )
        for item in described
    ]


def _last_jobs(
    caller: Caller, environment: EnvironmentName, tenants: list[TenantId]
) -> Mapping[str, QueuedJob]:
    """The newest job of each tenant that has the id now; empty for a principal who may not see jobs."""
    if not caller.principal.may("jobs:read"):
        return {}
    found = newest_jobs(caller.service.database, environment, tenants)
    return {name: job for name, job in found.items() if caller.service.stores.is_current(job)}


def _summary(tenant: TenantId, seen: Seen, last: QueuedJob | None) -> TenantSummary:
    return TenantSummary(
        tenant=tenant,
        version=seen.version,
        streams=len(seen.streams),
        rows=sum(stream.rows for stream in seen.streams),
        size_bytes=seen.file_bytes + sum(stream.size_bytes for stream in seen.streams),
        changed=seen.timestamp,
        last_job=None if last is None else LastJob.of(last),
        days=list(seen.days),
    )
