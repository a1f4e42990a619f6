"""The jobs of all tenants of an environment."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from freezeframe.asgi.dependencies.caller import Calling, Environment
from freezeframe.asgi.models.jobs import Job, JobPage
from freezeframe.asgi.routes.routing import CursorText, Limit, api_router
from freezeframe.control.job import JobFilter, JobStatus
from freezeframe.identifiers import TenantId

router = api_router("jobs")


@router.get("/environments/{environment}/jobs")
def list_all_jobs(
    caller: Calling,
    environment: Environment,
    tenant: Annotated[str | None, Query(max_length=200, description="Only of this tenant.")] = None,
    status: Annotated[JobStatus | None, Query(description="Only jobs of this status.")] = None,
    job_id: Annotated[str | None, Query(max_length=500, description="Only jobs of this id.")] = None,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> JobPage:
    """List the jobs of all tenants that are the caller's business, the newest first."""
    caller.principal.require("jobs:read")
    if not caller.principal.sees_environment(environment):
        return JobPage(jobs=[], next_cursor=None)
    seen = caller.principal.tenants
    wanted = None if tenant is None else TenantId(tenant)
    if wanted is not None:
        seen = frozenset({wanted} if caller.principal.sees(environment, wanted) else ())
    listing = f"jobs\n{environment!r}\n{wanted!r}\n{status}\n{job_id!r}"
    place = None if cursor is None else str(caller.service.cursors.read(listing, cursor))
    fitting = JobFilter(environment=environment, tenants=seen, status=status, job_id=job_id)
    page = caller.service.jobs.page(fitting, limit=limit, cursor=place)
    following = None if page.next_cursor is None else caller.service.cursors.encode(listing, page.next_cursor)
    shown = filter(caller.service.stores.is_current, page.jobs)
    return JobPage(
        jobs=[Job(**caller.service.jobs.describe_job(item)) for item in shown], next_cursor=following
    )
