"""Schedules: list for an environment; create, pause, run at once and delete for a tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from freezeframe.asgi.dependencies.caller import Calling, Environment, TenantCalling
from freezeframe.asgi.models.jobs import Job, NewSchedule, Schedule, ScheduleChange, SchedulePage
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.jobs import job_request
from freezeframe.asgi.routes.routing import TENANT, CursorText, Limit, api_router
from freezeframe.asgi.routes.streams import job_location
from freezeframe.control.schedules import Timing
from freezeframe.identifiers import TenantId
from freezeframe.service.jobs.tenant_schedules import describe_schedule

router = api_router("jobs")
Name = Annotated[str, Path(min_length=1, max_length=200, description="The schedule's name.")]
_ONE = f"{TENANT}/schedules/{{schedule}}"


@router.get("/environments/{environment}/schedules")
def list_schedules(
    caller: Calling,
    environment: Environment,
    tenant: Annotated[str | None, Query(max_length=200, description="Only of this tenant.")] = None,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> SchedulePage:
    """List the schedules of all tenants that are the caller's business, by tenant and name."""
    caller.principal.require("jobs:read")
    seen = caller.principal.tenants
    wanted = None if tenant is None else TenantId(tenant)
    if not caller.principal.sees_environment(environment):
        seen = frozenset()
    elif wanted is not None:
        seen = frozenset({wanted} if caller.principal.sees(environment, wanted) else ())
    listing = f"schedules\n{environment!r}\n{wanted!r}"
    after = ("", "") if cursor is None else tuple(caller.service.cursors.read(listing, cursor))
    page = caller.service.schedules.page(environment, seen, limit, (after[0], after[1]))
    following = None if page.next_after is None else caller.service.cursors.encode(listing, page.next_after)
    return SchedulePage(
        schedules=[Schedule(**describe_schedule(schedule)) for schedule in page.schedules],
        next_cursor=following,
    )


@router.post(f"{TENANT}/schedules", status_code=201, responses=to_openapi(404))
def create_schedule(caller: TenantCalling, order: NewSchedule) -> Schedule:
    """Let one of the service's scripts be run for the tenant whenever it is due."""
    caller.tenant("jobs:run")
    given, timing = job_request(order), Timing(order.cron, order.zone)
    with caller.audit_change("schedule.create", order.name, script=order.script, cron=order.cron):
        made = caller.service.schedules.create(
            caller.job(order.name), given, timing, order.missed, caller.who
        )
    return Schedule(**describe_schedule(made))


@router.patch(_ONE, responses=to_openapi(404))
def change_schedule(caller: TenantCalling, schedule: Name, change: ScheduleChange) -> Schedule:
    """Pause a schedule, or let it come due again from now on; its jobs are not concerned."""
    caller.tenant("jobs:run")
    named = caller.job(schedule)
    caller.service.schedules.get(named)
    with caller.audit_change("schedule.change", schedule, enabled=change.enabled):
        changed = caller.service.schedules.enable(named, is_enabled=change.enabled)
    return Schedule(**describe_schedule(changed))


@router.delete(_ONE, status_code=204, responses=to_openapi(404))
def delete_schedule(caller: TenantCalling, schedule: Name) -> Response:
    """Remove a schedule; its jobs stay."""
    caller.tenant("jobs:run")
    named = caller.job(schedule)
    caller.service.schedules.get(named)
    with caller.audit_change("schedule.delete", schedule):
        caller.service.schedules.delete(named)
    return Response(status_code=204)


@router.post(f"{_ONE}/runs", status_code=202, responses=to_openapi(404))
def run_schedule(caller: TenantCalling, schedule: Name, response: Response) -> Job:
    """Run what a schedule runs once now, whether or not it is due."""
    caller.tenant("jobs:run")
    named = caller.job(schedule)
    caller.service.schedules.get(named)
    job_id = caller.new_job_id()
    with caller.audit_change("job.run", job_id, schedule=schedule):
        queued = caller.service.schedules.run_now(named, job_id)
    response.headers["Location"] = job_location(caller, queued.job_id)
    return Job(**caller.service.jobs.describe_job(queued))
