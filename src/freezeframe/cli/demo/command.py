"""The demo: two syncs, a second tenant, the table, and time travel."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress
from freezeframe.errors import InvalidName, InvalidOption

if TYPE_CHECKING:
    from freezeframe.cli.demo.job import JobReport, TenantFolder
    from freezeframe.cli.demo.look_back import Cell


def demo(
    samples: Annotated[
        Path | None, typer.Option(help="Real exports (sync-output/, quickbooks-reports/) to use.")
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="An empty folder to work in, which is kept.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a PySpark script for two syncs of a tenant and show what was kept."""
    from freezeframe.cli.demo.look_back import changed_row

    output = Output(as_json=as_json)
    with ExitStack() as stack:
        root = _workplace(keep, stack)
        acme, globex, reports = _run_jobs(root, samples, as_json=as_json)
        refused = _knock(globex)
        cells = changed_row(acme.tenant())
        if as_json:
            output.record(_as_json(reports, globex, refused, cells))
            return
        output.table("What the jobs kept", [row for report in reports for row in _rows(report)])
        output.line(f"\n{_spark_line(reports)}")
        output.line(
            f"\n{globex.name} sees {', '.join(globex.tenant().streams())} of its own, and nothing else:"
        )
        output.line(f"  asked for {refused['asked']!r}, it is told {refused['code']}\n")
        _show_look_back(output, cells)
        if keep is not None:
            output.line(f"\nAll of it is in {root}; see: freezeframe stream history --dir {acme.snapshots}")


def _run_jobs(
    root: Path, samples: Path | None, *, as_json: bool
) -> tuple[TenantFolder, TenantFolder, list[JobReport]]:
    from freezeframe.cli.demo import inputs
    from freezeframe.cli.demo.job import TenantFolder

    acme, globex = TenantFolder(root, "acme"), TenantFolder(root, "globex")

    def bring(folder: Path, sync: inputs.Sync) -> None:
        if samples is None:
            inputs.invent_sync(folder, sync)
        else:
            inputs.from_samples(samples.resolve(), folder, sync)

    reports = []
    with _step("acme, job 1: a full sync (the first job starts Spark)", as_json=as_json):
        reports.append(acme.run(lambda folder: bring(folder, 1)))
    with _step("acme, job 2: new and changed rows, a window of the report", as_json=as_json):
        reports.append(acme.run(lambda folder: bring(folder, 2)))
    with _step(
        "globex, job 1: another tenant, with the same script and a folder of its own", as_json=as_json
    ):
        reports.append(globex.run(lambda folder: inputs.of_another_tenant(folder, 1)))
    return acme, globex, reports


@contextmanager
def _step(text: str, *, as_json: bool) -> Iterator[None]:
    """Print a step and its duration on standard error while it runs."""
    if not as_json:
        sys.stderr.write(f"• {text}\n")
    with progress("Working", as_json=as_json):
        yield


def _spark_line(reports: list[JobReport]) -> str:
    waits = ", ".join(
        f"{report.spark_seconds:.1f} s in {report.tenant}'s job {report.job}" for report in reports
    )
    return (
        f"Spark {reports[0].spark_version} read the syncs, searched and merged the stored rows, and joined"
        f" them. A session took {waits}: the server stays for later jobs."
    )


def _workplace(keep: Path | None, stack: ExitStack) -> Path:
    if keep is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="freezeframe-demo-")))
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InvalidOption(
            f"{keep} is not an empty folder.",
            cause="The demo would mix its tenants with what is there.",
            remedy="Name a new folder by --keep.",
        )
    keep.mkdir(parents=True, exist_ok=True)
    return keep.resolve()


def _knock(globex: TenantFolder) -> dict[str, str]:
    """Try to read the other tenant's stream, which the recipe that scripts copy would have allowed."""
    from freezeframe.script.snapshots import get_snapshot

    asked = "../../acme/snapshots/Lead"
    try:
        get_snapshot(globex.snapshots, asked)
    except InvalidName as error:
        return {"asked": asked, "code": error.error_code}
    raise AssertionError(f"a stream name led out of the tenant's folder: {asked}")


def _rows(report: JobReport) -> list[dict[str, Any]]:
    return [
        {
            "tenant": report.tenant,
            "job_id": report.job,
            "stream": change.stream,
            "tenant_version": change.version,
            "rows": change.rows,
            **change.counts.to_json(),
            "seconds": round(change.seconds, 2),
        }
        for change in report.changes
    ]


def _show_look_back(output: Output, cells: list[Cell]) -> None:
    output.table(
        "One lead before and after the second sync (← changed; an empty value from the sync clears nothing)",
        [
            {
                "column": cell.column,
                "before": cell.before,
                "after": cell.after,
                "": "←" if cell.is_changed else "",
            }
            for cell in cells
        ],
    )


def _as_json(
    reports: list[JobReport], globex: TenantFolder, refused: dict[str, str], cells: list[Cell]
) -> dict[str, Any]:
    return {
        "updates": [row for report in reports for row in _rows(report)],
        "jobs": [
            {"tenant": r.tenant, "job_id": r.job, "seconds": r.seconds, "spark_seconds": r.spark_seconds}
            for r in reports
        ],
        "spark": reports[0].spark_version,
        "neighbour": {"tenant": globex.name, "streams": list(globex.tenant().streams()), "refused": refused},
        "look_back": [
            {"column": cell.column, "before": cell.before, "after": cell.after, "changed": cell.is_changed}
            for cell in cells
        ],
    }
