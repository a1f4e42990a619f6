"""What `freezeframe run` does in the folder of a job that was pulled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freezeframe.cli.output import Output
    from freezeframe.runs.pulled_jobs import JobDifference, PulledJob


def find_pulled(script: Path) -> PulledJob | None:
    """Return the job that was pulled into the script's folder, if there is one."""
    from freezeframe.store.model.directory import PULLED_FILE

    if not (script.parent / PULLED_FILE).is_file():
        return None
    from freezeframe.runs.pulled_jobs import pulled_job

    return pulled_job(script.parent)


def with_pulled(options: Mapping[str, Any], pulled: PulledJob | None) -> dict[str, Any]:
    """Return the options of a run with what it has from the pulled job."""
    if pulled is None:
        return dict(options)
    known = pulled.request_fields()
    return {**known, **options, "parameters": {**known["parameters"], **options["parameters"]}}


def print_difference(found: JobDifference, output: Output) -> None:
    """Print how a run in a pulled folder differs from the job."""
    rows = [{"stream": name, **counts.to_json()} for name, counts in found.streams.items()]
    if rows:
        output.table("From the job's result to this one", rows, ("stream", "inserted", "updated", "deleted"))
    for what, fates in (("file", found.files), ("etl-output", found.output)):
        for path, fate in fates.items():
            output.line(f"{what} {path}: {fate}")
    if found.is_empty:
        output.line("The run made what the job made: the same streams, files and etl-output.")
