"""Operations on jobs, schedules and scripts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field

from freezeframe.control.groups import GROUP_TENANTS_MAX, begin_rest, find_group, jobs_of_group
from freezeframe.control.job import JobFilter, JobStatus, QueuedJob
from freezeframe.control.schedules import Timing
from freezeframe.errors import FreezeframeError, InvalidOption
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.runs.held import Decision, discard, failed_checks, publish
from freezeframe.runs.replay.replays import JOBS_MAX as REPLAYED_MAX
from freezeframe.service.jobs import Job, JobGroup, JobRequest, Script, TenantJob, repeated_order
from freezeframe.service.jobs import list_scripts as found_scripts
from freezeframe.service.operations.operation import Cursor, Limit, about, operation
from freezeframe.service.schedules import Schedule, describe_schedule

if TYPE_CHECKING:
    from freezeframe.service.operations.caller import Caller, TenantCaller

of_jobs = partial(operation, place="job", tag="jobs")
of_environment = partial(operation, place="environment", tag="jobs")
Scalar = str | int | float | bool | None
_Shown = TypeVar("_Shown", Job, JobGroup)


@dataclass(frozen=True, slots=True)
class ScriptList:
    """The scripts in the service's folder."""

    scripts: list[Script]


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, the newest first."""

    jobs: list[Job]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Schedules by tenant and name."""

    schedules: list[Schedule]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class RefusedJob:
    """A job of a group that was left as it is, and why."""

    tenant: str
    error: str


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What became of the jobs of a group that a call was about."""

    group: str
    counts: Annotated[dict[JobStatus, int], Field(description="How many jobs have each status now.")]
    left: Annotated[int, Field(description="Jobs that were too many for one call: send it again.")]
    refused: list[RefusedJob]


_DECIDED_MAX = 1000
_HELD: tuple[JobStatus, ...] = ("held",)
_OPEN: tuple[JobStatus, ...] = ("queued", "running")
JobId = Annotated[str, about("The job's id.", flag="JOB", min_length=1, max_length=500)]
ScheduleName = Annotated[str, about("The schedule's name.", min_length=1, max_length=200)]
GroupId = Annotated[str, about("The group's id.", min_length=1, max_length=500)]
OfStatus = Annotated[JobStatus | None, about("Only jobs of this status.")]
OfTenant = Annotated[TenantId | None, about("Only of this tenant.", max_length=200)]
# What is run, as a job or by a schedule.
ScriptName = Annotated[str, about("A file in the service's folder of scripts.", min_length=1, max_length=800)]
NewJobId = Annotated[
    str | None, about("The id of the job that is made; a new one without it.", min_length=1, max_length=200)
]
Flow = Annotated[str, about(max_length=200)]
Parameters = Annotated[dict[str, Scalar], about(max_length=100)]
TimeoutSeconds = Annotated[float | None, about("Seconds after which it is ended.", gt=0, le=604_800)]
AttemptsMax = Annotated[int, about(ge=1, le=10)]
Reason = Annotated[str, about(max_length=1000)]
DryRun = Annotated[bool, about("Commit nothing, and say what would change.")]
Hold = Annotated[bool, about("Commit nothing yet: the job waits to be published or discarded.")]
_JOB = {"Location": "/api/v1/environments/{environment}/tenants/{tenant}/jobs/{job_id}"}
_JOBS: dict[str, Any] = {
    "columns": ("job_id", "tenant", "status", "attempts", "created", "started", "finished"),
    "empty": "There are no such jobs.",
}
_SCHEDULES: dict[str, Any] = {
    "columns": ("name", "tenant", "cron", "zone", "enabled", "last_due", "next_due"),
    "empty": "There are no schedules: freezeframe schedule create makes them.",
}
_SCHEDULE = "/schedules/{schedule}"
_GROUP = "/job-groups/{group}"
_GROUP_PLACE = {"Location": f"/api/v1/environments/{{environment}}{_GROUP}"}
_NEW_GROUP: dict[str, Any] = {"body": "NewJobGroup", "example": {"script": "etl.py", "prefix": "eu-"}}


def shown(caller: "Caller", found: _Shown) -> _Shown:
    """Return a job or group after a change of it; what it runs is for callers that may read jobs."""
    if caller.principal.may("jobs:read"):
        return found
    hidden: dict[str, Any] = {"script": "", "parameters": {}, "submitted_by": "", "message": ""}
    of_job: dict[str, Any] = {"import_stream": None, "replays": []}
    hidden |= {name: of_job[name] for name in of_job if hasattr(found, name)}
    return replace(found, **hidden)


def _require_job(caller: "TenantCaller", job_id: str) -> None:
    caller.service.jobs.get(caller.job(job_id))


def _require_schedule(caller: "TenantCaller", schedule: str) -> None:
    caller.service.schedules.get(caller.job(schedule))


@of_jobs("GET /jobs", "jobs:read")
def list_jobs(
    caller: "TenantCaller", status: OfStatus = None, limit: Limit = 100, cursor: Cursor = None
) -> JobPage:
    """List a tenant's jobs, the newest first."""
    place = caller.job("")
    requested = JobFilter(
        environment=place.environment, tenant=place.tenant, status=status, incarnation=place.folder
    )
    return _job_page(caller, caller.list_name("jobs", status), requested, limit, cursor)


@of_environment("GET /jobs", "jobs:read", command="job list", **_JOBS)
def list_all_jobs(
    caller: "Caller",
    environment: EnvironmentName,
    tenant: OfTenant = None,
    status: OfStatus = None,
    job_id: Annotated[str | None, about("Only jobs of this id.", max_length=500)] = None,
    group: Annotated[str | None, about("Only jobs of this group, failed ones first.", max_length=500)] = None,
    schedule: Annotated[str | None, about("Only jobs of this schedule.", max_length=200)] = None,
    since: Annotated[datetime | None, about("Submitted from this moment on (RFC 3339).")] = None,
    until: Annotated[datetime | None, about("Submitted before this moment.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> JobPage:
    """List the jobs of all tenants that are the caller's business, the newest first."""
    filters: dict[str, Any] = {
        "status": status,
        "job_id": job_id,
        "group": group,
        "schedule": schedule,
        "since": since,
        "until": until,
    }
    listing = f"jobs\n{environment!r}\n{tenant!r}\n{filters}"
    tenants = visible_tenants(caller, environment, tenant)
    requested = JobFilter(environment=environment, tenants=tenants, **filters)
    return _job_page(caller, listing, requested, limit, cursor)


def visible_tenants(
    caller: "Caller", environment: EnvironmentName, tenant: TenantId | None = None
) -> frozenset[TenantId] | None:
    """Return the tenants whose jobs the caller may list, of them only ``tenant`` if named; None means all."""
    if not caller.principal.sees_environment(environment):
        return frozenset()
    if tenant is None:
        return caller.principal.tenants
    return frozenset({tenant} if caller.principal.sees(environment, tenant) else ())


def _job_page(
    caller: "Caller", listing: str, requested: JobFilter, limit: int, cursor: str | None
) -> JobPage:
    page = caller.service.queue.list(requested, limit=limit, cursor=caller.cursors.read(listing, cursor))
    current = filter(caller.service.stores.is_current, page.jobs)
    jobs = list(map(caller.service.jobs.describe_job, current))
    return JobPage(jobs, caller.cursors.encode(listing, page.next_cursor))


@of_jobs(
    "POST /jobs",
    "jobs:run",
    "job.run",
    status=202,
    body="NewJob",
    example={"script": "etl.py", "flow": "FZev7QqK-", "parameters": {"full": False}},
    headers=_JOB,
    audits_itself=True,
)
def run_job(
    caller: "TenantCaller",
    script: ScriptName,
    job_id: NewJobId = None,
    flow: Flow = "",
    parameters: Parameters = {},  # noqa: B006 - never changed
    timeout_seconds: TimeoutSeconds = None,
    attempts_max: AttemptsMax = 3,
    message: Reason = "",
    dry_run: DryRun = False,  # noqa: FBT002 - a member of a body
    hold: Hold = False,  # noqa: FBT002
) -> Job:
    """Run one of the service's scripts for the tenant; a worker does it, `Location` shows how far it is.

    The same `job_id` again is answered and not run again.
    """
    if not dry_run:
        caller.author(message)  # for its reason, where one is required
    order = JobRequest(script, flow, parameters, timeout_seconds, message, attempts_max, dry_run, hold)
    return _submitted(caller, order, job_id, script=script)


def _submitted(caller: "TenantCaller", order: JobRequest, job_id: str | None, **details: Any) -> Job:
    job = caller.job(caller.new_job_id(job_id))
    caller.service.jobs.require_place(job)
    with caller.audit_change("job.run", job.job_id, **details):
        queued = caller.service.jobs.submit(job, order, caller.who)
    return shown(caller, caller.service.jobs.describe_job(queued))


@of_jobs("GET /jobs/{job_id}", "jobs:read", command="job show")
def show_job(caller: "TenantCaller", job_id: JobId) -> Job:
    """Show a job, and what became of it."""
    return caller.service.jobs.describe_job(caller.service.jobs.get(caller.job(job_id)))


@of_jobs("POST /jobs/{job_id}/cancel", "jobs:run", "job.cancel", "job cancel", status=202, check=_require_job)
def cancel_job(caller: "TenantCaller", job_id: JobId) -> Job:
    """Ask for a job's end; one that has ended stays as it is."""
    cancelled = caller.service.jobs.cancel(caller.job(job_id))
    return shown(caller, caller.service.jobs.describe_job(cancelled))


@of_jobs("POST /jobs/{job_id}/publish", "jobs:run", "job.publish", "job publish", check=_require_job)
def publish_job(
    caller: "TenantCaller",
    job_id: JobId,
    again: Annotated[  # noqa: FBT002 - a parameter of a query
        bool, about("If it cannot be published as it is, discard what it staged and run it again.")
    ] = False,
) -> Job:
    """Commit just what a held job has staged, unless a commit changed what it read or changes meanwhile."""
    job, decision = _held(caller, job_id)
    return shown(caller, caller.service.jobs.describe_job(publish(job, decision, again=again)))


@of_jobs("POST /jobs/{job_id}/discard", "jobs:run", "job.discard", "job discard", check=_require_job)
def discard_job(caller: "TenantCaller", job_id: JobId) -> Job:
    """Delete what a held job has staged; the job is cancelled."""
    return shown(caller, caller.service.jobs.describe_job(discard(*_held(caller, job_id))))


def _held(caller: "TenantCaller", job_id: str) -> tuple[QueuedJob, Decision]:
    jobs = caller.service.jobs
    return jobs.get(caller.job(job_id)), jobs.decision(caller.who, caller.request_id)


@of_jobs("", "jobs:run", "job.run", "job retry", audits_itself=True)
def retry_job(
    caller: "TenantCaller",
    job_id: JobId,
    attempts: Annotated[int, about("Number of attempts at most.", ge=1)] = 1,
) -> Job:
    """Queue a job again that failed, ran too long, died or was cancelled, under its own id."""
    named = caller.job(job_id)
    with caller.audit_change("job.run", job_id, repeats=job_id):
        queued = caller.service.queue.retry(named.environment, named.tenant, job_id, attempts=attempts)
    return caller.service.jobs.describe_job(queued)


@of_jobs(
    "POST /jobs/{job_id}/repetitions", "jobs:run", "job.run", status=202, headers=_JOB, audits_itself=True
)
def repeat_job(caller: "TenantCaller", job_id: JobId) -> Job:
    """Run a job again that has ended: the same script and parameters, under an id of its own."""
    past = caller.service.jobs.get(caller.job(job_id))
    order = repeated_order(past, caller.service.settings)
    return _submitted(caller, order, None, script=order.script, repeats=job_id)


@of_jobs("POST /jobs/{job_id}/dry-runs", "jobs:run", "job.run", status=202, headers=_JOB, audits_itself=True)
def dry_run_job(caller: "TenantCaller", job_id: JobId) -> Job:
    """Run the request of a job that has ended once more, as a dry run: it says what the job would change."""
    past, job = caller.service.jobs.get(caller.job(job_id)), caller.job(caller.new_job_id())
    caller.service.jobs.require_place(job)
    with caller.audit_change("job.run", job.job_id, dry_run=True, repeats=job_id):
        queued = caller.service.jobs.dry_run_again(job, past, caller.who)
    return shown(caller, caller.service.jobs.describe_job(queued))


@of_jobs(
    "POST /replays",
    "jobs:run snapshots:read",
    "job.replay",
    "job replay",
    status=202,
    body="NewReplay",
    example={"jobs": ["nightly-2026-11-24", "nightly-2026-11-25"], "script": "etl.py"},
    headers=_JOB,
    audits_itself=True,
)
def replay_jobs(
    caller: "TenantCaller",
    jobs: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=500)]],
        about("The ids of the jobs, in any order.", flag="JOB", min_length=1, max_length=REPLAYED_MAX),
    ],
    script: Annotated[
        str, about("A mended script, in place of the one that was kept of each job.", max_length=800)
    ] = "",
    job_id: NewJobId = None,
    timeout_seconds: TimeoutSeconds = None,
    message: Reason = "",
    dry_run: DryRun = False,  # noqa: FBT002 - a member of a body
) -> Job:
    """Run jobs again in their order, on the version before the first, from their kept inputs.

    A worker does it, in a copy of the tenant. The replay ends as a held job: what it would change of what
    stands today, cell by cell, to be published as one version, or discarded.
    """
    caller.author(message or "")
    tenant, job = caller.tenant("snapshots:read"), caller.new_job(caller.new_job_id(job_id))
    caller.service.jobs.require_place(job)
    order = JobRequest(script, timeout_seconds=timeout_seconds, message=message or "", dry_run=dry_run)
    request = caller.service.jobs.replay_request(job, order, jobs, tenant, caller.who)
    with caller.audit_change("job.replay", job.job_id, jobs=jobs, script=script, dry_run=dry_run):
        queued = caller.service.jobs.submit_request(request, order.attempts_max, job.folder)
    return shown(caller, caller.service.jobs.describe_job(queued))


@of_environment(
    "POST /job-groups",
    "jobs:run",
    "job.run",
    status=202,
    headers=_GROUP_PLACE,
    audits_itself=True,
    **_NEW_GROUP,
)
def run_group(
    caller: "Caller",
    environment: EnvironmentName,
    script: ScriptName,
    job_id: NewJobId = None,
    flow: Flow = "",
    parameters: Parameters = {},  # noqa: B006 - never changed
    timeout_seconds: TimeoutSeconds = None,
    attempts_max: AttemptsMax = 3,
    message: Reason = "",
    dry_run: DryRun = False,  # noqa: FBT002 - a member of a body
    hold: Hold = False,  # noqa: FBT002
    tenants: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]] | None,
        about(
            "Which tenants; null: all that the caller may see and whose ids begin with `prefix`.",
            min_length=1,
            max_length=GROUP_TENANTS_MAX,
        ),
    ] = None,
    prefix: Annotated[str, about("Only ids that begin so.", max_length=200)] = "",
    canary: Annotated[
        int,
        about("So many jobs are held, and the others begin once these are published.", ge=0),
    ] = 0,
) -> JobGroup:
    """Run one of the service's scripts for many tenants: all jobs are queued, or none is.

    The same `job_id` again queues jobs for tenants that have none yet. All tenants need `tenants:read`.
    """
    order = JobRequest(script, flow, parameters, timeout_seconds, message, attempts_max, dry_run, hold)
    if not dry_run:
        caller.author(message)  # as of one job
    group = caller.new_job_id(job_id)
    jobs = [
        TenantJob(environment, tenant, group, caller.access.folder(environment, tenant))
        for tenant in _selected(caller, environment, tenants, prefix)
    ]
    details = {"script": script, "group": group, "dry_run": dry_run}
    named = [job.tenant for job in jobs]
    with caller.audit_tenants_change(environment, named, "job.run", group, **details):
        caller.service.jobs.submit_group(jobs, order, caller.who, canary)
    found = find_group(caller.service.database, environment, group, visible_tenants(caller, environment))
    return shown(caller, caller.service.jobs.describe_group(found))


def _selected(
    caller: "Caller", environment: EnvironmentName, named: list[str] | None, prefix: str
) -> list[TenantId]:
    """Return the tenants that the request names, each of which must be there, or all with the prefix."""
    if named is not None and prefix:
        raise InvalidOption("tenants and prefix cannot be used together.", remedy="Send one of them.")
    if named is None:
        found = list(map(TenantId, caller.access.all_tenants(environment, prefix)))
    else:
        found = list(map(TenantId, dict.fromkeys(named)))
        for tenant in found:
            caller.access.require(environment, tenant, "jobs:run")
    if not found:
        raise InvalidOption(
            "No tenant is selected.",
            cause="The caller has access to no tenant of the environment with this prefix.",
            remedy="Check the environment and the prefix.",
        )
    return found


@of_environment(f"GET {_GROUP}", "jobs:read")
def show_group(caller: "Caller", environment: EnvironmentName, group: GroupId) -> JobGroup:
    """Show how many jobs of a group have each status, of the tenants that the caller may see."""
    tenants = visible_tenants(caller, environment)
    found = find_group(caller.service.database, environment, group, tenants)
    return caller.service.jobs.describe_group(found)


@of_environment(f"POST {_GROUP}/publish", "jobs:run", "job.publish", "job publish-group", audits_itself=True)
def publish_group(
    caller: "Caller",
    environment: EnvironmentName,
    group: GroupId,
    passed: Annotated[bool, about("Only jobs that no check holds.")] = False,  # noqa: FBT002 - of a query
) -> GroupDecision:
    """Publish the held jobs of a group, at most 1,000 by one call; those that cannot be stay held.

    Once all canaries have succeeded, the jobs that wait for them begin.
    """
    done = _decided(caller, environment, group, "job.publish", publish, is_passed=passed)
    begin_rest(caller.service.database, environment, group)  # also where none of them was held
    return done


@of_environment(f"POST {_GROUP}/discard", "jobs:run", "job.discard", "job discard-group", audits_itself=True)
def discard_group(caller: "Caller", environment: EnvironmentName, group: GroupId) -> GroupDecision:
    """Discard the held jobs of a group, at most 1,000 by one call."""
    return _decided(caller, environment, group, "job.discard", discard)


@of_environment(f"POST {_GROUP}/cancel", "jobs:run", "job.cancel", "job cancel-group", audits_itself=True)
def cancel_group(caller: "Caller", environment: EnvironmentName, group: GroupId) -> GroupDecision:
    """Ask for the end of a group's queued and running jobs, at most 1,000 by one call; held ones stay."""

    def cancel(job: QueuedJob, _decision: Decision) -> QueuedJob:
        return caller.service.queue.cancel(job.environment, job.tenant, job.job_id, job.incarnation)

    return _decided(caller, environment, group, "job.cancel", cancel, statuses=_OPEN)


def _decided(
    caller: "Caller",
    environment: EnvironmentName,
    group: str,
    action: str,
    decide: Callable[[QueuedJob, Decision], QueuedJob],
    *,
    is_passed: bool = False,
    statuses: tuple[JobStatus, ...] = _HELD,
) -> GroupDecision:
    tenants, service = visible_tenants(caller, environment), caller.service
    find_group(service.database, environment, group, tenants)
    found = [
        job
        for job in jobs_of_group(service.database, environment, group, tenants, statuses)
        if service.stores.is_current(job)
        and not job.cancel_requested
        and not (is_passed and failed_checks(job.outcome))
    ]
    some, refused = found[:_DECIDED_MAX], list[RefusedJob]()
    decision = service.jobs.decision(caller.who, caller.request_id)
    named = [TenantId(job.tenant) for job in some]
    with caller.audit_tenants_change(environment, named, action, group, group=group):
        for job in some:
            try:
                decide(job, decision)
            except FreezeframeError as error:
                refused.append(RefusedJob(job.tenant, f"{error.problem} {error.cause}".strip()))
    counts = find_group(service.database, environment, group, tenants).counts
    return GroupDecision(group, dict(counts), len(found) - len(some), refused)


@operation("GET /scripts", "jobs:run", place="service", tag="jobs")
def list_scripts(caller: "Caller") -> ScriptList:
    """List the scripts in the service's folder by name, at most 500, with the parameters they declare."""
    return ScriptList(list(found_scripts(caller.service.settings.service_scripts_dir)))


@of_environment("GET /schedules", "jobs:read", command="schedule list", **_SCHEDULES)
def list_schedules(
    caller: "Caller",
    environment: EnvironmentName,
    tenant: OfTenant = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> SchedulePage:
    """List the schedules of all tenants that are the caller's business, by tenant and name."""
    listing = f"schedules\n{environment!r}\n{tenant!r}"
    tenants = visible_tenants(caller, environment, tenant)
    tenant_before, name_before = caller.cursors.read_as(tuple[str, str], listing, cursor) or ("", "")
    page = caller.service.schedules.page(environment, tenants, limit, (tenant_before, name_before))
    schedules = [describe_schedule(item, page.last_job(item)) for item in page.schedules]
    return SchedulePage(schedules, caller.cursors.encode(listing, page.next_after))


@of_jobs(
    "POST /schedules",
    "jobs:run",
    "schedule.create",
    status=201,
    body="NewSchedule",
    example={"name": "nightly", "script": "etl.py", "cron": "0 6 * * 1-5"},
    audits_itself=True,
)
def create_schedule(
    caller: "TenantCaller",
    script: ScriptName,
    name: Annotated[str, about(min_length=1, max_length=200)],
    cron: Annotated[str, about("Five fields as in cron, or `@daily`.", min_length=1, max_length=200)],
    job_id: NewJobId = None,  # noqa: ARG001 - a schedule's jobs have ids of their own
    flow: Flow = "",
    parameters: Parameters = {},  # noqa: B006 - never changed
    timeout_seconds: TimeoutSeconds = None,
    attempts_max: AttemptsMax = 3,
    message: Reason = "",
    dry_run: DryRun = False,  # noqa: FBT002 - a member of a body
    hold: Hold = False,  # noqa: FBT002
    zone: Annotated[str, about("An IANA time zone.", min_length=1, max_length=100)] = "UTC",
    missed: Annotated[
        Literal["latest", "all"], about("What is run of the times at which no worker was there.")
    ] = "latest",
) -> Schedule:
    """Let one of the service's scripts be run for the tenant whenever it is due."""
    order = JobRequest(script, flow, parameters, timeout_seconds, message, attempts_max, dry_run, hold)
    timing = Timing(cron, zone)
    caller.author(message)
    with caller.audit_change("schedule.create", name, script=script, cron=cron):
        made = caller.service.schedules.create(caller.job(name), order, timing, missed, caller.who)
    return describe_schedule(made)


@of_jobs(
    f"PATCH {_SCHEDULE}",
    "jobs:run",
    "schedule.change",
    body="ScheduleChange",
    check=_require_schedule,
    details=("enabled",),
)
def change_schedule(
    caller: "TenantCaller", schedule: ScheduleName, enabled: Annotated[bool, about()]
) -> Schedule:
    """Pause a schedule, or let it come due again from now on; its jobs are not concerned."""
    return describe_schedule(caller.service.schedules.enable(caller.job(schedule), is_enabled=enabled))


@of_jobs(f"DELETE {_SCHEDULE}", "jobs:run", "schedule.delete", status=204, check=_require_schedule)
def delete_schedule(caller: "TenantCaller", schedule: ScheduleName) -> None:
    """Remove a schedule; its jobs stay."""
    caller.service.schedules.delete(caller.job(schedule))


@of_jobs(f"POST {_SCHEDULE}/runs", "jobs:run", "job.run", status=202, headers=_JOB, audits_itself=True)
def run_schedule(caller: "TenantCaller", schedule: ScheduleName) -> Job:
    """Run what a schedule runs once now, whether or not it is due."""
    _require_schedule(caller, schedule)
    job_id = caller.new_job_id()
    with caller.audit_change("job.run", job_id, schedule=schedule):
        queued = caller.service.schedules.run_now(caller.job(schedule), job_id)
    return shown(caller, caller.service.jobs.describe_job(queued))


OPERATIONS = (
    *(list_jobs, list_all_jobs, run_job, show_job, cancel_job, publish_job, discard_job, retry_job),
    *(repeat_job, dry_run_job, replay_jobs),
    *(
        run_group,
        show_group,
        publish_group,
        discard_group,
        cancel_group,
        list_scripts,
        list_schedules,
        create_schedule,
    ),
    *(change_schedule, delete_schedule, run_schedule),
)
