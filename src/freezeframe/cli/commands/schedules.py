"""``freezeframe schedule``: recurring jobs, which ``freezeframe worker`` runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from freezeframe.cli.commands.run import Attempts, Priority, RunOptions, Script, with_run_options
from freezeframe.cli.job_groups import Selection, warn_of_inputs, with_selection
from freezeframe.cli.local_caller import audited_jobs
from freezeframe.cli.location import Control, control, open_store
from freezeframe.cli.options import Environment, Json, StoreRoot
from freezeframe.cli.output import Output
from freezeframe.errors import NotFound

if TYPE_CHECKING:
    from freezeframe.control.schedules import Schedule


app = typer.Typer(no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
_COLUMNS = ("name", "tenant", "cron", "zone", "enabled", "last_due", "next_due")


@app.command()
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
    with control(root, environment, create=not selection.is_group) as found:
        tenants = selection.tenants(open_store(root, found.environment) if selection.is_group else None)
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
        with audited_jobs(found, tenants, "schedule.create", name, script=str(requests[0].script), cron=cron):
            made = found.schedules.create(*definitions)
    _show(made, selection, output)


@app.command("list")
def list_schedules(
    root: StoreRoot,
    environment: Environment = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")] = None,
    as_json: Json = False,
) -> None:
    """List schedules, with the last and the next due time in UTC."""
    with control(root, environment) as found:
        rows = [item.to_json() for item in found.schedules.list(environment=found.environment, tenant=tenant)]
    output = Output(as_json=as_json)
    if rows or as_json:
        output.table(root, rows, columns=_COLUMNS)
    else:
        output.line("There are no schedules: freezeframe schedule create makes them.")


@app.command()
@with_selection
def enable(
    name: NameArgument,
    root: StoreRoot,
    selection: Selection,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Resume a schedule from now on."""
    with control(root, environment) as found:
        tenants = _tenants_with(name, selection, found)
        with audited_jobs(found, tenants, "schedule.change", name, enabled=True):
            changed = [found.schedules.enable(found.environment, tenant, name) for tenant in tenants]
    _show(changed, selection, Output(as_json=as_json))


@app.command()
@with_selection
def disable(
    name: NameArgument,
    root: StoreRoot,
    selection: Selection,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Suspend a schedule; jobs that it made go on."""
    with control(root, environment) as found:
        tenants = _tenants_with(name, selection, found)
        with audited_jobs(found, tenants, "schedule.change", name, enabled=False):
            changed = [found.schedules.disable(found.environment, tenant, name) for tenant in tenants]
    _show(changed, selection, Output(as_json=as_json))


@app.command()
@with_selection
def delete(
    name: NameArgument,
    root: StoreRoot,
    selection: Selection,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Remove a schedule; its jobs stay."""
    output = Output(as_json=as_json)
    with control(root, environment) as found:
        tenants = _tenants_with(name, selection, found)
        with audited_jobs(found, tenants, "schedule.delete", name):
            for tenant in tenants:
                found.schedules.delete(found.environment, tenant, name)
    if selection.is_group:
        output.record({"name": name, "tenants": len(tenants), "deleted": True})
    else:
        output.record({"name": name, "tenant": tenants[0], "deleted": True})


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


def _show(schedules: Sequence[Schedule], selection: Selection, output: Output) -> None:
    """Print one schedule, or a table of those of several tenants."""
    rows: list[dict[str, Any]] = [item.to_json() for item in schedules]
    if selection.is_group:
        output.table(f"{len(rows):,} tenants", rows, columns=_COLUMNS)
    else:
        output.record(rows[0])
