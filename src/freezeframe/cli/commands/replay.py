"""`freezeframe job pull`: a job once more, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freezeframe.cli.local_caller import LocalCaller
from freezeframe.cli.location import TenantLocation
from freezeframe.cli.options import Environment, Json, NeededTenant, StoreRoot
from freezeframe.cli.output import Output, near_path
from freezeframe.cli.progress import progress


def pull(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    tenant: NeededTenant,
    root: StoreRoot,
    environment: Environment = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows of a stream with a key at most, those that the job changed first (default: all).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Pull a job into a folder of this machine: its input, its script, and the state before it.

    freezeframe run --diff there runs it again, and compares what it makes with what the job made.
    """
    from freezeframe.runs import pulled_jobs

    caller, output = LocalCaller(TenantLocation(None, root, tenant, environment)), Output(as_json=as_json)
    context = caller.tenant().context
    with progress(f"Pulling {job}", as_json=as_json), caller.audit_change("job.pull", job):
        found = pulled_jobs.pull(context, job, folder, rows_max=rows)
    if as_json:
        output.record(found.to_json())
        return
    size = sum(file.size for file in found.job.files.values())
    then = f"version {found.before} of {tenant}" if found.before >= 0 else f"{tenant} without a version"
    output.line(
        f"Pulled {job} ({found.job.status}): {len(found.job.files):,} files of {size:,} bytes, {then}."
    )
    if found.parts:
        output.line(f"Only some rows are there of {', '.join(found.parts)}.")
    secret = ["config.json", *found.left_out]
    output.line(f"Left out, because secret: {', '.join(secret)}. The script gets what you put there.")
    output.line(f"Run it: cd {near_path(folder)} && freezeframe run {found.job.script} --diff")
