"""Tenants: create, clone, delete, and what an overview shows of them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated

from fastapi import Query, Response
from pydantic import ConfigDict, Field

from freezeframe.asgi.caller import CONDITIONAL, Calling, Environment, TenantCalling
from freezeframe.asgi.routes.parameters import CursorText
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, ResponseModel, api_router, example
from freezeframe.control.groups import job_groups
from freezeframe.control.job import JobStatus, QueuedJob
from freezeframe.control.queue import failed_jobs, newest_jobs
from freezeframe.errors import InvalidOption, ReportDamage, TenantNotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.runs.queue.attempt import first_line
from freezeframe.service.access.access import opened_scope
from freezeframe.service.jobs import JobGroup
from freezeframe.service.operations.caller import Caller
from freezeframe.service.operations.tenants import TenantDetail
from freezeframe.service.overview import Overview as Seen
from freezeframe.service.overview import SchemaDrift, StaleTenant, UnusualChange
from freezeframe.store import Tenant
from freezeframe.store.tenant import with_request
from freezeframe.store.tenants import Deletion
from freezeframe.store.transaction.conditions import tenant_tag


class NewTenant(RequestModel):
    """A tenant that is to be made."""

    model_config = ConfigDict(json_schema_extra=example(tenant="acme"))

    tenant: str = Field(min_length=1, max_length=200, description="The tenant's id, as its owner writes it.")


class LastJob(ResponseModel):
    """The job of a tenant that was submitted last."""

    job_id: str
    status: JobStatus
    created: datetime
    finished: datetime | None


class TenantSummary(ResponseModel):
    """What a list of tenants shows of one."""

    model_config = ConfigDict(
        json_schema_extra=example(
            tenant="acme",
            version=12,
            streams=2,
            rows=4711,
            size_bytes=80_000,
            changed="2026-11-20T14:05:00Z",
            last_job=None,
            days=[0, 0, 15],
        )
    )

    tenant: str
    version: int = Field(description="-1 before the first change.")
    streams: int
    rows: int
    size_bytes: int = Field(description="Of streams and files.")
    changed: datetime | None = Field(description="When the newest version was made.")
    last_job: LastJob | None = Field(description="Null: none, or the caller may not read jobs.")
    days: list[int] = Field(description="Rows changed on each of the last days (UTC), today's last.")


class UnreadableTenant(ResponseModel):
    """A tenant whose logs cannot be read."""

    tenant: str
    code: str


class TenantSummaries(ResponseModel):
    """The requested tenants that exist, in the order of the request."""

    tenants: list[TenantSummary]
    unreadable: list[UnreadableTenant] = Field(description="Those whose logs cannot be read.")


class TenantWithFindings(TenantSummary):
    """A tenant with its findings; at most 20 of each kind."""

    rows_by_day: list[int] = Field(
        description="Rows at the end of each of the last days (UTC), now's last; shorter where unknown."
    )
    stale: StaleTenant | None
    unusual: list[UnusualChange]
    drift: list[SchemaDrift]
    unsealed: list[str] = Field(description="Configurations that lie in the store as they are.")


class FailedJob(ResponseModel):
    """A job that failed, ran too long or died."""

    tenant: str
    job_id: str
    status: JobStatus
    finished: datetime
    error: str = Field(description="Its first line.")
    error_code: str | None
    is_repeatable: bool = Field(description="Whether `repetitions` runs it again.")


class EnvironmentOverview(ResponseModel):
    """The findings in an environment; the first page has the failed jobs and the job groups."""

    failed_jobs: list[FailedJob] = Field(description="The newest 1,000, those of groups too.")
    job_groups: list[JobGroup] = Field(description="The newest 50.")
    tenants: list[TenantWithFindings]
    unreadable: list[UnreadableTenant]
    next_cursor: str | None


router = api_router("tenants")


@router.post("/environments/{environment}/tenants", status_code=201, responses={200: {"model": TenantDetail}})
def create_tenant(
    caller: Calling, environment: Environment, order: NewTenant, response: Response
) -> TenantDetail:
    """Make a tenant; one that is there stays as it is (200)."""
    tenant_id = TenantId(order.tenant)
    tenant, is_new = made_tenant(caller, environment, tenant_id)
    response.status_code = 201 if is_new else 200
    log = tenant.context.log
    return TenantDetail.of(
        environment, tenant_id, log.current_snapshot.state if is_new else log.current_state()
    )


@router.get(TENANT_PATH)
def show_tenant(caller: TenantCalling, response: Response) -> TenantDetail:
    """Show a tenant: its version, streams and how many files it has; the `ETag` is of its version."""
    state = caller.tenant("tenants:read").context.log.current_state()
    if etag := tenant_tag(state):
        response.headers["ETag"] = etag
    return TenantDetail.of(caller.environment, caller.tenant_id, state)


@router.delete(TENANT_PATH, dependencies=CONDITIONAL)
def delete_tenant(
    caller: TenantCalling,
    confirm: Annotated[str, Query(min_length=1, max_length=200, description="The tenant's id once more.")],
) -> Deletion:
    """Remove all that is kept for a tenant, for good; its jobs and schedules end with it.

    `confirm` has to be the tenant's id: a client that shortens the path `…/files/..` deletes nothing.
    """
    if TenantId(confirm) != caller.tenant_id:
        raise InvalidOption(
            "The tenant is not deleted.",
            cause="confirm is not its id.",
            remedy="Send the tenant's id as confirm to delete all its data.",
        )
    caller.tenant("snapshots:delete")
    ending = {"schedules": list(caller.service.jobs.schedules(caller.environment, caller.tenant_id))}
    named = f"{caller.environment}/{caller.tenant_id}"
    # About the service: a deleted tenant has no audit to query.
    with caller.audit_service_change("tenant.delete", named, details=ending):
        caller.service.jobs.forget(caller.environment, caller.tenant_id)
        return caller.access.delete(caller.environment, caller.tenant_id)


@router.post(f"{TENANT_PATH}/clone", status_code=201)
def clone_tenant(caller: TenantCalling, order: NewTenant) -> TenantDetail:
    """Make a new tenant with the newest streams and files of this one, and none of its past."""
    environment, source, target = caller.environment, caller.tenant_id, TenantId(order.tenant)
    caller.access.require_clone(environment, source, target)
    origin, named = {"source": source}, f"{environment}/{target}"
    with (
        caller.audit_change("tenant.cloned", target),
        caller.audit_service_change("tenant.clone", named, details=origin),
    ):
        tenant = caller.access.clone(environment, source, target, caller.request_context())
    # It is there: a storage that fails now must fail no request, so nothing is read again.
    caller.audit("tenant.clone", target, scope=opened_scope(environment, tenant), details=origin)
    return TenantDetail.of(caller.environment, target, tenant.context.log.current_snapshot.state)


def made_tenant(caller: Caller, environment: EnvironmentName, tenant_id: TenantId) -> tuple[Tenant, bool]:
    """Return the tenant, created if it did not exist, and whether this call created it.

    What comes before it is there is about the service; its own audit begins with what made it.
    """
    tenant = caller.access.find(environment, tenant_id)
    if tenant is not None:
        return with_request(tenant, caller.request_context()), False
    with caller.audit_service_change("tenant.create", f"{environment}/{tenant_id}"):
        tenant, is_new = caller.access.create(environment, tenant_id)
    if is_new:
        caller.audit("tenant.create", tenant_id, scope=opened_scope(environment, tenant))
    return with_request(tenant, caller.request_context()), is_new


_SUMMARIES_MAX = 100
_EACH_MAX = 20


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
    requested = list(dict.fromkeys(map(TenantId, tenant)))
    jobs = _last_jobs(caller, environment, requested)
    found, unreadable = [], []
    for item in requested:
        try:
            known = caller.access.tenant(environment, item, "snapshots:read")
            seen = known.scope.reading(partial(caller.service.overviews.of, known))
        except TenantNotFound:
            continue
        except ReportDamage as error:
            unreadable.append(UnreadableTenant(tenant=item, code=error.error_code))
        else:
            found.append(_summary(item, seen, jobs.get(item)))
    return TenantSummaries(tenants=found, unreadable=unreadable)


@router.get("/environments/{environment}/overview")
def show_environment(
    caller: Calling,
    environment: Environment,
    days: Annotated[int, Query(ge=1, le=30, description="Days of changes and jobs to include.")] = 7,
    limit: Annotated[int, Query(ge=1, le=200, description="How many tenants are looked at.")] = 100,
    cursor: CursorText = None,
) -> EnvironmentOverview:
    """Show findings: failed jobs, stale tenants, unusual changes, drift, unsealed files.

    A page looks at some tenants, by id; each is read from its logs, once for each of its versions.
    """
    caller.principal.require("snapshots:read")
    listing = f"overview\n{environment!r}\n{days}"
    cursors = caller.service.cursors
    page = caller.access.page(environment, "", cursors.read(listing, cursor), limit)
    now = datetime.now(UTC)
    since = now - timedelta(days=days)
    tenant_ids = list(map(TenantId, page.tenants))
    jobs = _last_jobs(caller, environment, tenant_ids)
    tenants, unreadable = [], []
    for tenant in tenant_ids:
        try:
            found = _tenant_findings(caller, environment, tenant, jobs.get(tenant), since, now)
        except ReportDamage as error:
            unreadable.append(UnreadableTenant(tenant=tenant, code=error.error_code))
        else:
            tenants += found
    return EnvironmentOverview(
        failed_jobs=_failed_jobs(caller, environment, since) if cursor is None else [],
        job_groups=_job_groups(caller, environment, since) if cursor is None else [],
        tenants=tenants,
        unreadable=unreadable,
        next_cursor=cursors.encode(listing, page.next_after),
    )


def _tenant_findings(
    caller: Caller,
    environment: EnvironmentName,
    tenant_id: TenantId,
    job: QueuedJob | None,
    since: datetime,
    now: datetime,
) -> list[TenantWithFindings]:
    """Return the tenant's findings; none if it was deleted meanwhile."""
    try:
        tenant = caller.access.tenant(environment, tenant_id, "snapshots:read")
    except TenantNotFound:
        return []
    is_sync = job is not None and job.status == "succeeded" and not job.is_dry_run
    success = job.finished if job is not None and is_sync else None
    found = tenant.scope.reading(lambda: caller.service.findings.of(tenant, since, now, success))
    listed = {name: getattr(found, name)[:_EACH_MAX] for name in ("unusual", "drift", "unsealed")}
    summary = _summary(tenant_id, found.overview, job)
    return [TenantWithFindings.of(summary, rows_by_day=found.rows_by_day, stale=found.stale, **listed)]


def _failed_jobs(caller: Caller, environment: EnvironmentName, since: datetime) -> list[FailedJob]:
    if not (caller.principal.may("jobs:read") and caller.principal.sees_environment(environment)):
        return []
    found = failed_jobs(caller.service.database, environment, caller.principal.tenants, since)
    described = map(caller.service.jobs.describe_job, filter(caller.service.stores.is_current, found))
    return [
        FailedJob(
            error=first_line(item.outcome),
            error_code=((item.outcome or {}).get("error") or {}).get("code"),
            **{
                name: getattr(item, name)
                for name in ("tenant", "job_id", "status", "finished", "is_repeatable")
            },
        )
        for item in described
    ]


def _job_groups(caller: Caller, environment: EnvironmentName, since: datetime) -> list[JobGroup]:
    if not (caller.principal.may("jobs:read") and caller.principal.sees_environment(environment)):
        return []
    found = job_groups(caller.service.database, environment, caller.principal.tenants, since=since)
    return list(map(caller.service.jobs.describe_group, found))


def _last_jobs(
    caller: Caller, environment: EnvironmentName, tenants: list[TenantId]
) -> Mapping[str, QueuedJob]:
    """Return each current tenant's newest job; empty if the principal may not read jobs."""
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
