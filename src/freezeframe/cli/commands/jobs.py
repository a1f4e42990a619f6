"""`freezeframe job`, `schedule` and `worker`: the queue of a store's jobs, what fills and what runs it."""

from __future__ import annotations

import json
import secrets
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from freezeframe.cli.commands.replay import pull
from freezeframe.cli.commands.run import Attempts, Priority, RunOptions, Script, with_run_options
from freezeframe.cli.job_groups import (
    Patience,
    Selection,
    end_group,
    follow_group,
    submit_group,
    warn_of_inputs,
    with_selection,
)
from freezeframe.cli.local_caller import LocalCaller, LocalParts, StoreCaller, note_made_tenant
from freezeframe.cli.location import Control, TenantLocation, control, open_store
from freezeframe.cli.operation_commands import add_commands, json_of
from freezeframe.cli.options import (
    DryRun,
    Environment,
    Json,
    LogFormatOption,
    LogLevelOption,
    Message,
    OfTenant,
    StoreRoot,
    Who,
    Yes,
    begin_logging,
    parse_moment,
    tenant_ids,
)
from freezeframe.cli.output import FAILED, Output, visible_lines, write_json
from freezeframe.cli.reversions import Only, Reverting, Where, revert_of, tenants_of_job
from freezeframe.errors import InvalidOption, NotFound
from freezeframe.runs.held import failed_checks
from freezeframe.service.operations import jobs

if TYPE_CHECKING:
    from freezeframe.control.job import QueuedJob
    from freezeframe.control.schedules import Schedule
    from freezeframe.control.submission import Submission
    from freezeframe.runs.queue.worker import Worker
    from freezeframe.runs.request import RunRequest
    from freezeframe.service.jobs import Job
    from freezeframe.store.snapshot_store import Store

app = typer.Typer(no_args_is_help=True)

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]
Again = Annotated[
    bool, typer.Option("--again", help="Queue the job again if one with this id failed or was cancelled.")
]
WaitForEnd = Annotated[
    bool, typer.Option("--wait", help="Wait for its end: exit code 0 if it succeeded or is held, else 1.")
]
WaitTimeout = Annotated[
    float | None, typer.Option("--wait-timeout", help="Seconds to wait at most (default: no limit).")
]


@app.command()
@with_selection
@with_run_options
def submit(
    script: Script,
    root: StoreRoot,
    selection: Selection,
    environment: Environment = None,
    job_id: Annotated[
        str | None,
        typer.Option("--job-id", help="The job's id; the same id again is the same job (default: a new id)."),
    ] = None,
    *,
    options: RunOptions,
    attempts: Attempts = 3,
    priority: Priority = 0,
    at: Annotated[
        str | None, typer.Option("--at", help="Not before this moment; UTC without a zone.")
    ] = None,
    again: Again = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Commit nothing; --wait shows what would change.")
    ] = False,
    canary: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Hold the jobs of so many tenants; those of the others begin once these are published.",
        ),
    ] = None,
    wait_for_end: WaitForEnd = False,
    wait_timeout: WaitTimeout = None,
    as_json: Json = False,
) -> None:
    """Put runs of a script into the queue; workers run them.

    The same id, tenant and options again give the same job. The jobs of several tenants (--tenant repeated,
    --all-tenants, --prefix, --tenants-from) are a group with the job's id: all are queued, or none is.
    """
    output, run_at = Output(as_json=as_json), None if at is None else _moment(at)
    name = job_id or f"job-{secrets.token_hex(8)}"
    if selection.is_group and again:
        raise InvalidOption(
            "--again cannot be used for several tenants.", remedy="Use freezeframe job retry for each job."
        )
    if canary is not None and (wait_for_end or not selection.is_group):
        raise InvalidOption(
            "--canary needs several tenants, and cannot be used with --wait.",
            cause="The jobs of the others wait until somebody has published the first ones.",
            remedy="Select several tenants, and see freezeframe job list --group.",
        )
    with StoreCaller(root, environment, create=not selection.is_group) as caller:
        found = caller.control
        store = open_store(root, found.environment) if selection.is_group else None
        tenants = caller.about = selection.tenants(store)
        requests = [
            replace(request, dry_run=dry_run, hold=request.hold or number < (canary or 0))
            for number, item in enumerate(tenants)
            for request in [options.request(script, root, found.environment, item, name)]
        ]
        submissions = _submissions(found, requests, store, run_at, (attempts, priority))
        details = {"script": str(requests[0].script), "dry_run": dry_run}
        if store is not None:
            warn_of_inputs(requests[0], tenants, (run_at or datetime.now(UTC)).date(), output)
            with caller.audit_change("job.run", name, group=name, **details):
                made = submit_group(found, submissions, canary or 0, output)
            follow_group(found, made, wait_timeout, output, is_awaited=wait_for_end)
            return
        with caller.audit_change("job.run", name, **details):
            job = found.queue.submit(submissions[0])
            if again and job.is_final and job.status != "succeeded":
                job = found.queue.retry(job.environment, job.tenant, job.job_id, attempts=attempts)
        _end(found, job, wait_timeout, output, is_awaited=wait_for_end)


def _submissions(
    found: Control,
    requests: Sequence[RunRequest],
    store: Store | None,
    run_at: datetime | None,
    attempts_and_priority: tuple[int, int],
) -> list[Submission]:
    """Return a submission for each request; with a store they are a group."""
    from freezeframe.control.submission import Submission
    from freezeframe.runs.request import dated_input
    from freezeframe.runs.script_header import with_permitted_script

    permitted = [with_permitted_script(request, found.settings) for request in requests]
    if run_at is not None:
        day = run_at.date()
        permitted = [replace(item, input_dir=dated_input(item.input_dir, day)) for item in permitted]
    return [
        Submission(
            json.dumps(request.to_json()),
            environment=found.environment,
            tenant=request.tenant,
            job_id=request.job_id,
            attempts_max=attempts_and_priority[0],
            priority=attempts_and_priority[1],
            run_at=run_at,
            running_max=found.settings.jobs_per_tenant_max,
            incarnation="" if store is None else store.folder(request.tenant) or "",
            group="" if store is None else request.job_id,
        )
        for request in permitted
    ]


def _end(
    found: Control, job: QueuedJob, timeout: float | None, output: Output, *, is_awaited: bool = True
) -> None:
    """Show the job, after its end if that is awaited; exit with 1 if it ended without success."""
    if is_awaited:
        job = _wait_until_ended(found, job, timeout, output)
    show_job(describe(found, job), output)
    if is_awaited and (job.status not in {"succeeded", "held"} or failed_checks(job.outcome)):
        raise typer.Exit(FAILED)


@app.command()
def logs(
    job: JobArgument,
    root: StoreRoot,
    environment: Environment = None,
    tenant: OfTenant = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Follow the log until the job has ended.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print what a job's script printed, in its last attempt.

    The log is on the machine whose worker ran it, or with the store's local directory. With --json a line
    of JSON for each line of the log.
    """
    from freezeframe.runs.queue.job_log import follow_log, log_file

    with control(root, environment) as found:
        named = found.job(job, tenant)
        if follow:
            texts = follow_log(
                lambda: found.queue.get(named.environment, named.tenant, named.job_id), found.settings
            )
        else:
            file = log_file(named, found.settings)
            if file is None:
                raise NotFound(
                    f"Job {job} has no log here.",
                    cause="It has not begun, its folder was cleaned away, or another machine ran it.",
                    remedy="See freezeframe job show for its worker.",
                )
            with file.open() as log:
                texts = iter([log.read().decode("utf-8", "replace")])
        if as_json:
            for line in _lines(texts):
                write_json({"line": line})
        else:
            for text in texts:
                sys.stdout.write(visible_lines(text))
                sys.stdout.flush()


@app.command()
def wait(
    root: StoreRoot,
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="The job's id.")] = None,
    group: Annotated[str | None, typer.Option(help="The id of a group: wait for all its jobs.")] = None,
    environment: Environment = None,
    tenant: OfTenant = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait at most (default: no limit).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Wait until a job or a group has ended: exit code 0 if it succeeded or is held, else 1."""
    from freezeframe.control.groups import find_group

    output = Output(as_json=as_json)
    if (job is None) == (group is None):
        raise InvalidOption("The job to wait for is not named.", remedy="Give a job's id, or --group.")
    with control(root, environment) as found:
        if group is not None:
            end_group(found, find_group(found.database, found.environment, group), timeout, output)
        else:
            _end(found, found.job(str(job), tenant), timeout, output)


def _wait_until_ended(found: Control, job: QueuedJob, timeout: float | None, output: Output) -> QueuedJob:
    patience = Patience(found, timeout, output)
    while not job.is_final:
        is_new = job.status == "queued" and not job.attempts
        is_due = is_new and job.run_at <= datetime.now(UTC)
        patience.pause(
            f"Job {job.job_id}",
            unseen=f"No worker has taken job {job.job_id}" if is_due else "",
            state=f": it is {job.status}",
            cause="No worker has been seen." if is_new else "",
        )
        job = found.queue.get(job.environment, job.tenant, job.job_id)
    return job


def _lines(texts: Iterable[str]) -> Iterator[str]:
    """Return whole lines of a text that comes in pieces."""
    rest = ""
    for text in texts:
        *lines, rest = (rest + text).split("\n")
        yield from lines
    if rest:
        yield rest


def describe(found: Control, job: QueuedJob) -> Job:
    """Return a job as ``--json`` prints it and the API answers it."""
    described: Job = LocalParts(found).jobs.describe_job(job)
    return described


def show_job(job: Job, output: Output) -> None:
    """Print a job: its status, and how its last attempt ended."""
    fields, outcome = json_of(job), job.outcome or {}
    if not output.as_json:
        error = outcome.get("error") or {}
        fields |= {
            "outcome": None,
            "dry_run": job.dry_run or None,
            "version": outcome.get("tenant_version"),
            "would change": _effect_text(outcome.get("dry_run")),
            "held until": outcome.get("held_until"),
            "failed checks": "; ".join(failed_checks(outcome)),
            "remarks": " ".join(outcome.get("remarks") or ()),
            "problem": error.get("problem"),
            "cause": error.get("cause"),
            "script line": (error.get("details") or {}).get("script_line"),
            "log": outcome.get("log"),
        }
        fields = {name: value for name, value in fields.items() if value not in (None, "", {})}
    output.record(fields)


def _effect_text(dry_run: dict[str, Any] | None) -> str | None:
    """Return what a dry run or a held job would change in one line; None of any other job."""
    if dry_run is None:
        return None
    streams = [
        f"{name} +{item['inserted']:,} ~{item['updated']:,} -{item['deleted']:,}"
        for name, item in dry_run["streams"].items()
        if item["fate"] != "unchanged"
    ]
    return ", ".join([*streams, *dry_run["files"]]) or "nothing"


def _moment(text: str) -> datetime:
    found = parse_moment(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


add_commands(
    app,
    *(jobs.list_all_jobs, jobs.show_job, jobs.cancel_job, jobs.retry_job, jobs.publish_job, jobs.discard_job),
    *(jobs.cancel_group, jobs.publish_group, jobs.discard_group, jobs.replay_jobs),
    **dict.fromkeys(
        ("show_job", "cancel_job", "retry_job", "publish_job", "discard_job", "replay_jobs"), show_job
    ),
)
app.command()(pull)


@app.command()
def revert(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The id of a job, or of a group of jobs.")],
    root: StoreRoot,
    environment: Environment = None,
    tenant: Annotated[
        list[str] | None,
        typer.Option(
            "--tenant",
            help="Only of this tenant; may be repeated (default: all whose jobs in the queue have the id).",
            autocompletion=tenant_ids,
        ),
    ] = None,
    only: Only = None,
    where: Where = None,
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take back what a job changed, and keep what came after it; see tenant revert.

    Of a group the jobs of all its tenants, each as a version of its own; with a line for each tenant.
    """
    found = tenant or tenants_of_job(root, environment, job)
    reverting = Reverting(message, dry_run=dry_run, yes=yes, as_json=as_json)
    reverts = {
        name: revert_of(
            LocalCaller(TenantLocation(None, root, name, environment), who), only, where, job_id=job
        )
        for name in dict.fromkeys(found)
    }
    if len(reverts) == 1:
        (name,) = reverts
        reverting.one(reverts[name], f"Take back what the job {job} changed of {name}?")
    else:
        reverting.several(reverts, f"Take back what the job {job} changed of {len(reverts):,} tenants?")


def worker(
    root: StoreRoot,
    concurrency: Annotated[int, typer.Option(min=1, help="Number of jobs to run at the same time.")] = 1,
    once: Annotated[
        bool, typer.Option("--once", help="Exit after one job, or at once if none is queued.")
    ] = False,
    drain: Annotated[
        bool, typer.Option("--drain", help="Exit when no job can be had and none runs.")
    ] = False,
    poll: Annotated[float, typer.Option(help="Seconds between polls of an empty queue.")] = 1.0,
    grace: Annotated[float, typer.Option(help="Seconds that running jobs get to end after SIGTERM.")] = 20.0,
    metrics: Annotated[
        str | None,
        typer.Option(help="Serve metrics for Prometheus at HOST:PORT, for example 127.0.0.1:9750."),
    ] = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    as_json: Json = False,
) -> None:
    """Run jobs of the queue until it is stopped.

    Any number of workers may share a queue. SIGTERM or Ctrl-C: no new jobs; those that run may end within
    the grace, then they are given back for another worker; a second time: they are given back at once.
    """
    from freezeframe.runs.queue.attempt import Times
    from freezeframe.runs.queue.metrics import serve_worker_metrics
    from freezeframe.runs.queue.worker import Worker, WorkerOptions
    from freezeframe.runs.running import run
    from freezeframe.service.staged_blobs import StagedBlobs
    from freezeframe.storage.local import keep_private

    keep_private()
    if once and drain:
        raise InvalidOption("--once and --drain cannot be used together.", remedy="Give one of them.")
    with control(root, create=True) as found:
        times = Times(found.settings.job_lease_seconds, found.settings.job_beat_seconds)
        options = WorkerOptions(concurrency, poll, grace, times)
        server = None if metrics is None else serve_worker_metrics(metrics, found.settings)

        def on_change(job: QueuedJob) -> None:
            if server is not None and job.is_final:
                server.count_job(job)
            if job.is_final and (job.outcome or {}).get("made_tenant") and not job.is_dry_run:
                note_made_tenant(root, job.environment, job.tenant, job.job_id)
            _show_change(found, job, as_json=as_json)

        blobs = StagedBlobs.of_store(root, found.settings, found.queue.has_ended)
        process = Worker(found.database, run, found.settings, options, on_change, blobs.sweep)
        _listen(process)
        begin_logging(log_format, log_level, root)
        if not as_json and not (once or drain):
            Output().line(f"{process.name} works for {found.database.name}")
            sys.stdout.flush()
        process.work("one" if once else "empty" if drain else "stopped")


def _listen(worker: Worker) -> None:
    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if worker.is_stopping:
            worker.give_up()
        else:
            worker.stop()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)


def _show_change(found: Control, job: QueuedJob, *, as_json: bool) -> None:
    if as_json:
        write_json(json_of(describe(found, job)))
    else:
        count = f"attempt {job.attempts} of {job.attempts_max}"
        moment = job.finished or job.started or job.created
        error = ((job.outcome or {}).get("error") or {}).get("problem", "")
        Output().line(
            f"{moment:%Y-%m-%dT%H:%M:%SZ} {job.tenant} {job.job_id} {job.status} ({count}) {error}".rstrip()
        )
    sys.stdout.flush()


schedule_app = typer.Typer(no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


@schedule_app.command()
@with_selection
@with_run_options
def create(
    name: NameArgument,
    script: Script,
    cron: Annotated[str, typer.Option("--cron", help='When: five fields as in "0 6 * * 1-5", or @daily.')],
    root: StoreRoot,
    selection: Selection,
    environment: Environment = None,
    zone: Annotated[str, typer.Option("--zone", help="The time zone, for example Europe/Berlin.")] = "UTC",
    missed: Annotated[
        str,
        typer.Option(help="Missed times to catch up on: the latest only, or all."),
    ] = "latest",
    *,
    options: RunOptions,
    attempts: Attempts = 3,
    priority: Priority = 0,
    as_json: Json = False,
) -> None:
    """Run a script at the times of a schedule, for a tenant or, each by its own schedule, for several.

    Each due time makes one job for each tenant, however many workers there are. Tenants that have the same
    schedule keep it, so that the same command again adds tenants that have come since.
    """
    from freezeframe.control.schedules import ScheduleRequest, Timing
    from freezeframe.runs.request import request_folder
    from freezeframe.runs.script_header import with_permitted_script

    output, timing = Output(as_json=as_json), Timing(cron, zone)
    with StoreCaller(root, environment, create=not selection.is_group) as caller:
        found = caller.control
        tenants = caller.about = selection.tenants(
            open_store(root, found.environment) if selection.is_group else None
        )
        requests = [
            with_permitted_script(
                options.request(script, root, found.environment, tenant, name), found.settings
            )
            for tenant in tenants
        ]
        if selection.is_group:
            warn_of_inputs(requests[0], tenants, datetime.now(ZoneInfo(zone)).date(), output)
        definitions = [
            ScheduleRequest(
                name,
                found.environment,
                item.tenant,
                timing,
                json.dumps(item.to_json()),
                missed=missed,  # type: ignore[arg-type]  # checked there
                priority=priority,
                attempts_max=attempts,
                running_max=found.settings.jobs_per_tenant_max,
                incarnation=request_folder(item, found.settings) or "",
            )
            for item in requests
        ]
        with caller.audit_change("schedule.create", name, script=str(requests[0].script), cron=cron):
            made = found.schedules.create(*definitions)
    _show_schedules(made, selection, output)


@schedule_app.command()
@with_selection
def enable(
    name: NameArgument,
    root: StoreRoot,
    selection: Selection,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Resume a schedule from now on."""
    _switch(name, selection, StoreCaller(root, environment), enabled=True, as_json=as_json)


@schedule_app.command()
@with_selection
def disable(
    name: NameArgument,
    root: StoreRoot,
    selection: Selection,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Suspend a schedule; jobs that it made go on."""
    _switch(name, selection, StoreCaller(root, environment), enabled=False, as_json=as_json)


def _switch(name: str, selection: Selection, caller: StoreCaller, *, enabled: bool, as_json: bool) -> None:
    with caller:
        schedules, environment = caller.control.schedules, caller.control.environment
        tenants = caller.about = _tenants_with(name, selection, caller.control)
        change = schedules.enable if enabled else schedules.disable
        with caller.audit_change("schedule.change", name, enabled=enabled):
            changed = [change(environment, tenant, name) for tenant in tenants]
    _show_schedules(changed, selection, Output(as_json=as_json))


@schedule_app.command()
@with_selection
def delete(
    name: NameArgument,
    root: StoreRoot,
    selection: Selection,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Remove a schedule; its jobs stay."""
    with StoreCaller(root, environment) as caller:
        found = caller.control
        tenants = caller.about = _tenants_with(name, selection, found)
        with caller.audit_change("schedule.delete", name):
            for tenant in tenants:
                found.schedules.delete(found.environment, tenant, name)
    of = {"tenants": len(tenants)} if selection.is_group else {"tenant": tenants[0]}
    Output(as_json=as_json).record({"name": name, **of, "deleted": True})


def _tenants_with(name: str, selection: Selection, found: Control) -> list[str]:
    """Return the selected tenants; of several those that have the schedule."""
    if not selection.is_group:
        return selection.tenants(None)
    schedules = found.schedules.list(environment=found.environment)
    having = {item.definition.tenant for item in schedules if item.definition.name == name}
    selected = selection.tenants(open_store(found.settings.root, found.environment))
    tenants = [tenant for tenant in selected if tenant in having]
    if not tenants:
        raise NotFound(
            f"None of the {len(selected):,} selected tenants has a schedule {name}.",
            remedy="See freezeframe schedule list.",
            code="SCHEDULE_NOT_FOUND",
        )
    return tenants


def _show_schedules(schedules: Sequence[Schedule], selection: Selection, output: Output) -> None:
    """Print one schedule, or a table of those of several tenants."""
    from freezeframe.service.schedules import describe_schedule

    rows: list[dict[str, Any]] = [json_of(describe_schedule(item)) for item in schedules]
    if selection.is_group:
        output.table(f"{len(rows):,} tenants", rows, columns=jobs.list_schedules.columns)
    else:
        output.record(rows[0])


add_commands(schedule_app, jobs.list_schedules)
