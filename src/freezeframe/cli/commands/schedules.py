"""``freezeframe schedule``: recurring jobs, which ``freezeframe worker`` runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.commands.run import Attempts, Priority, RunOptions, Script, with_run_options
from freezeframe.cli.location import control
from freezeframe.cli.options import Environment, Json, NeededTenant, StoreRoot
from freezeframe.cli.output import Output

if TYPE_CHECKING:
    from freezeframe.control.schedules import Schedule


app = typer.Typer(no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
_COLUMNS = ("name", "tenant", "cron", "zone", "enabled", "last_due", "next_due")


@app.command()
@with_run_options
def create(
    name: NameArgument,
    script: Script,
    tenant: NeededTenant,
    cron: Annotated[str, typer.Option("--cron", help='When: five fields as in "0 6 * * 1-5", or @daily.')],
    root: StoreRoot,
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
    """Run a script for a tenant at the times of a schedule.

    Each due time makes one job, however many workers there are.
    """
    from freezeframe.control.schedules import ScheduleRequest, Timing
    from freezeframe.runs.request import request_folder
    from freezeframe.runs.script_header import with_permitted_script

    with control(root, environment, create=True) as found:
        request = with_permitted_script(
            options.request(script, root, found.environment, tenant, name), found.settings
        )
        made = found.schedules.create(
            ScheduleRequest(
                name,
                found.environment,
                tenant,
                Timing(cron, zone),
                json.dumps(request.to_json()),
                missed=missed,  # type: ignore[arg-type]  # checked there
                priority=priority,
                attempts_max=attempts,
                running_max=found.settings.jobs_per_tenant_max,
                incarnation=request_folder(request, found.settings) or "",
            )
        )
    _show(made, as_json=as_json)


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
def enable(
    name: NameArgument,
    tenant: NeededTenant,
    root: StoreRoot,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Resume a schedule from now on."""
    with control(root, environment) as found:
        _show(found.schedules.enable(found.environment, tenant, name), as_json=as_json)


@app.command()
def disable(
    name: NameArgument,
    tenant: NeededTenant,
    root: StoreRoot,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Suspend a schedule; jobs that it made go on."""
    with control(root, environment) as found:
        _show(found.schedules.disable(found.environment, tenant, name), as_json=as_json)


@app.command()
def delete(
    name: NameArgument,
    tenant: NeededTenant,
    root: StoreRoot,
    environment: Environment = None,
    as_json: Json = False,
) -> None:
    """Remove a schedule; its jobs stay."""
    with control(root, environment) as found:
        found.schedules.delete(found.environment, tenant, name)
    Output(as_json=as_json).record({"name": name, "tenant": tenant, "deleted": True})


def _show(schedule: Schedule, *, as_json: bool) -> None:
    fields: dict[str, Any] = schedule.to_json()
    Output(as_json=as_json).record(fields)
