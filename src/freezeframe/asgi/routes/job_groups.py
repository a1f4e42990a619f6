"""Job groups: one script for many tenants by one request, and how far their jobs are."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Response
from pydantic import ConfigDict, Field

from freezeframe.asgi.caller import Caller, Calling, Environment
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.jobs import NewJob, job_request, visible_tenants
from freezeframe.asgi.routing import api_router, example
from freezeframe.control.groups import GROUP_TENANTS_MAX, find_group, jobs_of_group
from freezeframe.control.job import FAILURES
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.group_effects import GroupEffects, group_effects
from freezeframe.service.jobs import JobGroup, TenantJob


class NewJobGroup(NewJob):
    """A script that is to be run for many tenants; all jobs have one `job_id`, which is the group's id."""

    model_config = ConfigDict(json_schema_extra=example(script="etl.py", prefix="eu-"))

    tenants: list[Annotated[str, Field(min_length=1, max_length=200)]] | None = Field(
        default=None,
        min_length=1,
        max_length=GROUP_TENANTS_MAX,
        description="Which tenants; null: all that the caller may see and whose ids begin with `prefix`.",
    )
    prefix: str = Field(default="", max_length=200, description="Only ids that begin so.")


router = api_router("jobs")
GroupId = Annotated[str, Path(min_length=1, max_length=500, description="The group's id.")]
_GROUPS = "/environments/{environment}/job-groups"


@router.post(_GROUPS, status_code=202, responses=to_openapi(404))
def run_group(caller: Calling, environment: Environment, order: NewJobGroup, response: Response) -> JobGroup:
    """Run one of the service's scripts for many tenants: all jobs are queued, or none is.

    The same `job_id` again queues jobs for tenants that have none yet. All tenants need `tenants:read`.
    """
    caller.principal.require("jobs:run")
    requested, group = job_request(order), caller.new_job_id(order.job_id)
    jobs = [
        TenantJob(environment, tenant, group, caller.access.folder(environment, tenant))
        for tenant in _selected(caller, environment, order)
    ]
    scopes = [caller.access.audit_scope(environment, job.tenant) for job in jobs]
    details = {"script": order.script, "group": group, "dry_run": order.dry_run}
    with caller.audit_service_change("job.run", group, scope=scopes, details=details):
        caller.service.jobs.submit_group(jobs, requested, caller.who)
    response.headers["Location"] = (
        f"/api/v1/environments/{quote(environment)}/job-groups/{quote(group, safe='')}"
    )
    described = _describe(caller, environment, group)
    if caller.principal.may("jobs:read"):
        return described
    return replace(described, script="", parameters={}, submitted_by="", message="")


@router.get(f"{_GROUPS}/{{group}}", responses=to_openapi(404))
def show_group(caller: Calling, environment: Environment, group: GroupId) -> JobGroup:
    """Show how many jobs of a group have each status, of the tenants that the caller may see."""
    caller.principal.require("jobs:read")
    return _describe(caller, environment, group)


@router.get(f"{_GROUPS}/{{group}}/effects", responses=to_openapi(404))
def show_effects(caller: Calling, environment: Environment, group: GroupId) -> GroupEffects:
    """Sum up what the dry runs of a group would change, as far as they have ended."""
    caller.principal.require("jobs:read")
    caller.principal.require("snapshots:read")
    tenants = visible_tenants(caller, environment)
    find_group(caller.service.database, environment, group, tenants)
    jobs = jobs_of_group(caller.service.database, environment, group, tenants, ("succeeded", *FAILURES))
    return group_effects(
        filter(caller.service.stores.is_current, jobs),
        lambda name: caller.access.tenant(environment, TenantId(name), "snapshots:read"),
        caller.service.overviews,
    )


def _describe(caller: Caller, environment: EnvironmentName, group: str) -> JobGroup:
    tenants = visible_tenants(caller, environment)
    found = find_group(caller.service.database, environment, group, tenants)
    return caller.service.jobs.describe_group(found)


def _selected(caller: Caller, environment: EnvironmentName, order: NewJobGroup) -> list[TenantId]:
    """Return the tenants that the request names, each of which must be there, or all with the prefix."""
    if order.tenants is not None and order.prefix:
        raise InvalidOption("tenants and prefix cannot be used together.", remedy="Send one of them.")
    if order.tenants is None:
        found = list(map(TenantId, caller.access.all_tenants(environment, order.prefix)))
    else:
        found = list(map(TenantId, dict.fromkeys(order.tenants)))
        for tenant in found:
            caller.access.require(environment, tenant, "jobs:run")
    if not found:
        raise InvalidOption(
            "No tenant is selected.",
            cause="The caller has access to no tenant of the environment with this prefix.",
            remedy="Check the environment and the prefix.",
        )
    return found
