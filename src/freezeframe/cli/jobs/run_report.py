"""The summary of ``freezeframe run``, printed when the script has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from freezeframe.cli.terminal.near_path import near_path
from freezeframe.cli.terminal.output import Output

if TYPE_CHECKING:
    from freezeframe.runs.model.outcome import RunOutcome
    from freezeframe.runs.model.request import RunRequest

_COUNTS = ("inserted", "updated", "unchanged", "deleted")


def report_run(request: RunRequest, outcome: RunOutcome, output: Output) -> None:
    """Print what changed and at which version; of a failure its log."""
    if outcome.made_tenant:
        output.line(_new_tenant_line(request.tenant, outcome.similar_tenants))
    if outcome.status != "repeated":
        _tell_empty_input(request, output)
    for remark in outcome.remarks:
        output.line(remark)
    if outcome.receipt is not None:
        _tell_changes(request.tenant, outcome, outcome.receipt, output)
        _tell_places(outcome, output)
    elif outcome.job_root.is_dir():
        output.line(f"The job's root is {near_path(outcome.job_root)}")


def _new_tenant_line(tenant: str, similar: Sequence[str]) -> str:
    """The line for a new tenant, with similar ids, since a mistyped id creates a tenant."""
    near = f" The store has {' and '.join(similar)}: is one of them meant?" if similar else ""
    return f"Made a new tenant: {tenant}.{near}"


def _tell_empty_input(request: RunRequest, output: Output) -> None:
    """Warn of empty input: a script that finds none usually succeeds, so nobody would notice."""
    if request.input_dir is None:
        output.line("The script's sync-output was empty: there was no --input.")
    elif not any(request.input_dir.iterdir()):
        output.line(f"The script's sync-output was empty: nothing is in {near_path(request.input_dir)}.")


def _tell_changes(tenant: str, outcome: RunOutcome, receipt: Mapping[str, Any], output: Output) -> None:
    streams, files = receipt["streams"], (receipt["files_written"], receipt["files_deleted"])
    if outcome.status == "repeated":
        output.line(f"{outcome.job_id} was run before, and is not run again. What it did then:")
    if streams:
        shown = (*_COUNTS, "engine") if any(told.get("engine") for told in streams.values()) else _COUNTS
        rows = [
            {"stream": name, **{one: told.get(one, "") for one in shown}} for name, told in streams.items()
        ]
        output.table("", rows)
        for name, told in streams.items():
            _tell_columns(name, told, output)
    for what, paths in zip(("written", "deleted"), files, strict=True):
        if paths:
            output.line(f"Files {what}: {', '.join(paths)}")
    is_changed = any(files) or any(told["committed"] for told in streams.values())
    # A version without a change keeps the job's id, by which it is never run twice, and shows that it ran.
    output.line(_version_line(tenant, outcome, is_changed=is_changed))


def _tell_columns(stream: str, receipt: Mapping[str, Any], output: Output) -> None:
    """Print the columns that were added, dropped or missing, so that a changed source is noticed."""
    told = {"added": "columns_added", "dropped": "columns_dropped", "missing": "columns_missing"}
    found = {what: receipt.get(name) for what, name in told.items()}
    if not receipt["stream_version"]:
        found["added"] = None  # all columns of a new stream are new
    parts = [f"{what} {', '.join(names)}" for what, names in found.items() if names]
    if parts:
        output.line(f"Columns of {stream}: {'; '.join(parts)}")


def _version_line(tenant: str, outcome: RunOutcome, *, is_changed: bool) -> str:
    version = outcome.tenant_version
    if outcome.status == "repeated":
        return f"That was version {version} of {tenant}{'' if is_changed else ', which changed nothing'}."
    if is_changed:
        return f"{tenant} is at version {version} ({outcome.seconds:.1f} s)."
    return f"Nothing was changed; the run is kept as version {version} of {tenant} ({outcome.seconds:.1f} s)."


def _tell_places(outcome: RunOutcome, output: Output) -> None:
    written = outcome.job_root / "etl-output"
    if written.is_dir() and any(written.iterdir()):
        output.line(f"Output: {near_path(written)}")
    warning = outcome.job_root / "errors.txt"
    if warning.is_file():
        output.line(f"The script ended well, but wrote {near_path(warning)}")
    if outcome.log.is_file():
        output.line(f"Log: {near_path(outcome.log)}")
    if outcome.notebook is not None:
        output.line(f"Notebook: {near_path(outcome.notebook)}")
