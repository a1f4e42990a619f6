"""`freezeframe run`: one script for one tenant, as one commit."""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.local_caller import note_made_tenant
from freezeframe.cli.location import control, present_control, similar_line
from freezeframe.cli.options import Environment, Json, Message, NeededTenant, StoreRoot, Who, expand
from freezeframe.cli.output import FAILED, INTERRUPTED, Output, near_path, visible_lines
from freezeframe.cli.progress import ProgressLine, progress
from freezeframe.cli.pulled import find_pulled, print_difference, with_pulled
from freezeframe.errors import FreezeframeError, InputNotFound, InvalidOption, kinds_of

if TYPE_CHECKING:
    from freezeframe.runs.pulled_jobs import JobDifference
    from freezeframe.runs.request import RunOutcome, RunRequest, Scalar
    from freezeframe.settings import Settings
    from freezeframe.store.transaction.dry_run import DryRun


_COUNTS = ("inserted", "updated", "unchanged", "deleted")
_ROWS_SHOWN = 20


def report_run(request: RunRequest, outcome: RunOutcome, output: Output, copied: Path | None) -> None:
    """Print what changed and at which version; of a failure its log. ``copied`` has the script's output."""
    if outcome.made_tenant:
        output.line(_new_tenant_line(request, outcome))
    if outcome.status != "repeated":
        _print_empty_input(request, output)
    for remark in outcome.remarks:
        output.line(remark)
    if outcome.receipt is not None:
        if outcome.dry_run is None:
            _print_changes(request.tenant, outcome, outcome.receipt, output)
        else:
            _print_effects(request.tenant, outcome, outcome.dry_run, output)
        _print_paths(outcome, output, copied)
    elif outcome.job_root.is_dir():
        output.line(f"The job's root is {near_path(outcome.job_root)}")


def _new_tenant_line(request: RunRequest, outcome: RunOutcome) -> str:
    """Return the line for a new tenant, with similar ids, since a mistyped id creates a tenant."""
    near = similar_line(outcome.similar_tenants)
    if not outcome.is_success:
        return f"There is no tenant {request.tenant} yet, and the failed run made none.{near}"
    made = "A real run would make" if request.dry_run else "Made"
    return f"{made} a new tenant: {request.tenant}.{near}"


def _print_empty_input(request: RunRequest, output: Output) -> None:
    """Print that the input was empty: a script without input usually succeeds, so it would go unnoticed."""
    if request.input_dir is None:
        output.line("The script's sync-output was empty: there was no --input.")
    elif not any(request.input_dir.iterdir()):
        output.line(f"The script's sync-output was empty: nothing is in {near_path(request.input_dir)}.")


def _print_changes(tenant: str, outcome: RunOutcome, receipt: Mapping[str, Any], output: Output) -> None:
    streams, files = receipt["streams"], (receipt["files_written"], receipt["files_deleted"])
    if outcome.status == "repeated":
        output.line(f"{outcome.job_id} was run before, and is not run again. What it did then:")
    _print_counts(streams, output)
    for name, counts in streams.items():
        _print_columns(name, counts, output)
    for what, paths in zip(("written", "deleted"), files, strict=True):
        if paths:
            output.line(f"Files {what}: {', '.join(paths)}")
    is_changed = any(files) or any(stream["committed"] for stream in streams.values())
    # A version without a change keeps the job's id, by which it is never run twice, and shows that it ran.
    output.line(_version_line(tenant, outcome, is_changed=is_changed))


def _print_counts(streams: Mapping[str, Mapping[str, Any]], output: Output) -> None:
    shown = (*_COUNTS, "engine") if any(stream.get("engine") for stream in streams.values()) else _COUNTS
    rows = [
        {"stream": name, **{item: counts.get(item, "") for item in shown}} for name, counts in streams.items()
    ]
    if rows:
        output.table("", rows)


def _print_effects(tenant: str, outcome: RunOutcome, dry_run: DryRun, output: Output) -> None:
    """Print what a dry run would change: counts, columns and files."""
    receipts = (outcome.receipt or {}).get("streams", {})
    streams = {
        name: {**effect.counts.to_json(), "engine": receipts.get(name, {}).get("engine", "")}
        for name, effect in dry_run.streams.items()
    }
    _print_counts(streams, output)
    for name, effect in dry_run.streams.items():
        columns, missing = effect.columns, receipts.get(name, {}).get("columns_missing", ())
        parts = [f"added {column} {kind}" for column, kind in columns.added.items()]
        parts += [f"dropped {column}" for column in columns.dropped]
        parts += [f"{column} from {old} to {new}" for column, (old, new) in columns.retyped.items()]
        parts += [f"missing {', '.join(missing)}"] if missing and effect.fate != "added" else []
        if parts:
            output.line(f"Columns of {name}: {'; '.join(parts)}")
    for fate in ("added", "changed", "removed"):
        paths = [path for path, effect in dry_run.files.items() if effect.fate == fate]
        if paths:
            output.line(f"Files {fate}: {', '.join(paths)}")
    version = dry_run.tenant_version
    base = f"version {version} of {tenant}" if version >= 0 else f"{tenant} without a version"
    change = "These changes are to" if dry_run.changes_anything else "The script changes nothing of"
    for check in dry_run.failed_checks:
        output.line(f"Check of {check.stream} failed: {check.check}: {check.reason}")
    how = "Held" if outcome.status == "held" else "Dry run"
    output.line(f"{how}, nothing was committed. {change} {base} ({outcome.seconds:.1f} s).")
    if outcome.status == "held":
        verbs = " or ".join(f"freezeframe job {verb} {outcome.job_id}" for verb in ("publish", "discard"))
        output.line(f"Until {outcome.held_until}: {verbs} --tenant {tenant}.")


def _print_kept_changes(outcome: RunOutcome, dry_run: DryRun, limit: int, output: Output) -> None:
    """Print the changed rows with their cells, and the changed lines of files."""
    from freezeframe.cli.rows import print_changes
    from freezeframe.runs.dry_run_changes import kept_changes
    from freezeframe.store.table.written_rows import json_rows

    kept = kept_changes(outcome.job_root)
    for name, table in kept.rows.items():
        effect = dry_run.streams[name]
        print_changes(name, table, effect.key, limit, total=effect.counts.changed)
    for name, problem in kept.problems.items():
        output.line(f"{name}: {problem}")
    for check, table in kept.failing:
        output.table(f"{check.stream}: not {check.check}", json_rows(table.slice(0, limit)))
    for path, text in kept.files.items():
        output.line(f"{path}: sealed, too large, or no text." if text is None else text)


def _with_kept_changes(outcome: RunOutcome, limit: int) -> dict[str, Any]:
    """Return the outcome as JSON, with the changed rows of each stream and the changed lines of each file."""
    from freezeframe.runs.dry_run_changes import kept_changes
    from freezeframe.store.table.written_rows import json_rows

    record, kept = outcome.to_json(), kept_changes(outcome.job_root)
    for name, table in kept.rows.items():
        record["dry_run"]["streams"][name]["changes"] = json_rows(table.slice(0, limit))
    for path, text in kept.files.items():
        record["dry_run"]["files"][path]["text"] = text
    failing = [{**check.to_json(), "rows": json_rows(table.slice(0, limit))} for check, table in kept.failing]
    return {**record, "failing_rows": failing}


def _print_columns(stream: str, receipt: Mapping[str, Any], output: Output) -> None:
    """Print the columns that were added, dropped or missing, so that a changed source is noticed."""
    kinds = {"added": "columns_added", "dropped": "columns_dropped", "missing": "columns_missing"}
    found = {what: receipt.get(name) for what, name in kinds.items()}
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


def _print_paths(outcome: RunOutcome, output: Output, copied: Path | None) -> None:
    written = copied or outcome.job_root / "etl-output"
    if written.is_dir() and any(written.iterdir()):
        output.line(f"Output: {near_path(written)}")
    warning = outcome.job_root / "errors.txt"
    if warning.is_file():
        output.line(f"The script succeeded, but wrote {near_path(warning)}")
    if outcome.log.is_file():
        output.line(f"Log: {near_path(outcome.log)}")
    if outcome.notebook is not None:
        output.line(f"Notebook: {near_path(outcome.notebook)}")


Script = Annotated[
    Path,
    typer.Argument(metavar="SCRIPT", help="etl.py or etl.ipynb; its path may have {tenant}."),
]
Attempts = Annotated[int, typer.Option("--attempts", min=1, max=100, help="Number of attempts at most.")]
Priority = Annotated[int, typer.Option("--priority", help="Priority; higher ones run first.")]
_Text = str | None
_File = Path | None
_FLAGS: dict[str, Any] = {
    "flow": Annotated[_Text, typer.Option(help="The flow, for the script's FLOW.")],
    "input_dir": Annotated[
        _File,
        typer.Option(
            "--input",
            help="The folder with the sync's output; its path may have {tenant}, {date} and {newest}.",
        ),
    ],
    "parameters": Annotated[
        list[str] | None, typer.Option("--param", help="A parameter as name=value; may be repeated.")
    ],
    "timeout_seconds": Annotated[
        float | None,
        typer.Option(
            "--timeout",
            min=0.001,
            help="Time limit of an attempt in seconds; --wait-timeout limits the wait.",
        ),
    ],
    "memory_bytes": Annotated[
        int | None, typer.Option("--memory", min=1, help="Bytes of memory that the script may use.")
    ],
    "config": Annotated[
        _File, typer.Option(help="The connector's settings: config.json (or {tenant}.json).")
    ],
    "state": Annotated[_File, typer.Option(help="The sync's bookmarks: state.json (or {tenant}.json).")],
    "catalog": Annotated[_File, typer.Option(help="The streams' schemas: catalog.json (or {tenant}.json).")],
    "connector_id": Annotated[_Text, typer.Option("--connector", help="For the script's CONNECTOR_ID.")],
    "job_type": Annotated[_Text, typer.Option(help="For the script's JOB_TYPE.")],
    "sync_type": Annotated[_Text, typer.Option(help="For the script's SYNC_TYPE (default: by state.json).")],
    "then": Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="A command that sends etl-output to its target, run in the job's folder before the commit; "
            "if it fails, so does the job. May be repeated; replaces those of the script's header.",
        ),
    ],
    "keep_on_failure": Annotated[
        bool | None,
        typer.Option("--keep-on-failure", help="Commit what the script changed even if --then fails."),
    ],
    "hold": Annotated[
        bool | None,
        typer.Option("--hold", help="Commit nothing yet: freezeframe job publish or discard decides."),
    ],
    "message": Message,
    "who": Who,
}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run from the command line, by the names of ``RunRequest``'s fields."""

    values: Mapping[str, Any]

    def request(self, script: Path, root: str, environment: str, tenant: str, job_id: str) -> RunRequest:
        """Return the request, with absolute paths: a worker runs in another folder."""
        from freezeframe.runs.request import RunRequest, given_file, given_input, tenant_path
        from freezeframe.runs.script_header import with_script_header

        options = {name: value for name, value in self.values.items() if value is not None}
        options["parameters"] = dict(map(_parameter, options.get("parameters", ())))
        options = with_pulled(options, find_pulled(script))
        for name in ("config", "state", "catalog"):
            if name in options:
                options[name] = given_file(tenant_path(options[name], tenant), f"{name} file")
        if "input_dir" in options:
            options["input_dir"] = given_input(options["input_dir"])
        request = RunRequest(
            root=root if "://" in root else str(Path(root).resolve()),
            environment=environment,
            tenant=tenant,
            script=given_file(tenant_path(script, tenant), "script"),
            job_id=job_id,
            **options,
        )
        with_script_header(request)  # refuses now what the header does not let run
        return request


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with these flags in place of its parameter ``options``: ``RunOptions``."""
    return expand(command, "options", _FLAGS, lambda **values: RunOptions(values))


def _parameter(text: str) -> tuple[str, Scalar]:
    """``limit=5`` is a number, ``full=true`` a truth value, ``name="5"`` and ``name=abc`` are text."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InvalidOption(
            f"{text!r} is not a parameter.",
            cause="It has no name before an equals sign.",
            remedy="Write it as name=value.",
        )
    try:
        found = json.loads(value)
    except ValueError:
        return name, value
    return name, found if isinstance(found, str | int | float | bool | None) else value


_logger = logging.getLogger(__name__)

JobId = Annotated[
    str | None,
    typer.Option(
        "--job-id", help="The run's id; a second run with the same id changes nothing (default: a new id)."
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option("--var", help="An environment variable of the script as name=value; may be repeated."),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="spark: Spark searches and merges stored rows; auto: small upserts need no Spark.",
    ),
]
KeptRoot = Annotated[Path | None, typer.Option("--job-root", help="A new folder to run in, which is kept.")]

Rehearsal = Annotated[bool, typer.Option("--dry-run", help="Commit nothing; report what would change.")]
Diff = Annotated[
    bool,
    typer.Option("--diff", help="With --dry-run or --hold, show changed rows and cells, and lines of files."),
]
DiffLimit = Annotated[
    int,
    typer.Option("--limit", min=1, max=1000, help="Number of rows of a stream that --diff shows at most."),
]
CopiedOutput = Annotated[
    Path | None,
    typer.Option("--output", help="A folder that gets the script's etl-output, if the script succeeds."),
]


@with_run_options
def run(
    script: Script,
    tenant: NeededTenant,
    root: StoreRoot,
    environment: Environment = None,
    *,
    options: RunOptions,
    variables: Variables = None,
    job_id: JobId = None,
    job_root: KeptRoot = None,
    output_dir: CopiedOutput = None,
    engine: Engine = None,
    dry_run: Rehearsal = False,
    diff: Diff = False,
    limit: DiffLimit = _ROWS_SHOWN,
    as_json: Json = False,
) -> None:
    """Run a script for a tenant as one commit; the tenant is made if it is not there.

    A failure of any kind changes nothing. What the script prints is shown as it comes.
    """
    pulled = find_pulled(script)
    if diff and not (dry_run or options.values["hold"] or pulled):
        raise InvalidOption(
            "--diff needs --dry-run or --hold.",
            cause="A run that commits creates a version.",
            remedy="Add one of them, or compare versions by freezeframe tenant diff.",
        )
    if output_dir is not None and output_dir.exists() and not output_dir.is_dir():
        raise InvalidOption(f"{output_dir} is no folder.", remedy="Name a folder by --output.")
    settings = _begin(engine)
    # Loading a job's modules takes longer than most jobs, so the run goes to a process that has loaded them.
    code = _forward(settings, script, as_json=as_json) if _is_command(sys.argv) else None
    if code is not None:
        raise typer.Exit(code)
    from freezeframe.runs.request import input_folder
    from freezeframe.runs.running import run as run_request
    from freezeframe.runs.running import withdraw_tenant

    name = job_id or f"run-{secrets.token_hex(8)}"
    request = options.request(script, root, environment or settings.environment, tenant, name)
    request = replace(
        request,
        job_root=None if job_root is None else job_root.absolute(),
        dry_run=dry_run,
        input_dir=request.input_dir and input_folder(request.input_dir, tenant, datetime.now(UTC).date()),
    )
    variables_by_name = dict(map(_variable, variables or ()))
    if pulled is not None:
        pulled.reset(pulled.stores(settings)[0])
    with _cancel_on_signal() as is_cancelled, progress("", as_json=as_json) as line:
        run_it = partial(
            run_request,
            settings=settings,
            variables=variables_by_name,
            on_line=_silent if as_json else _printer(line),
            is_new=job_id is None,
        )
        outcome = _run_as_listed_job(
            request, settings, lambda item, ask: run_it(item, is_cancelled=ask), is_cancelled
        )
    if outcome.made_tenant and not dry_run:
        place, is_withdrawn = (request.root, request.environment, request.tenant), False
        if not outcome.is_success:
            outcome, is_withdrawn = withdraw_tenant(request, outcome, settings)
        note_made_tenant(*place, request.job_id, is_withdrawn=is_withdrawn)
    if output_dir is not None and outcome.is_success:
        for link in _copy_output(outcome.job_root / "etl-output", output_dir):
            Output(as_json=as_json).warning(
                f"The link {link} of the output was not copied.", "Change the script to write a plain file."
            )
    output = Output(as_json=as_json)
    found = None
    if pulled is not None and diff and outcome.status == "succeeded" and not dry_run:
        found = pulled.difference(outcome.job_root / "etl-output", pulled.stores(settings))
    _end(request, outcome, output, limit if diff else 0, output_dir, found)


def _run_as_listed_job(
    request: RunRequest,
    settings: Settings,
    run_it: Callable[[RunRequest, Callable[[], bool]], RunOutcome],
    is_cancelled: Callable[[], bool],
) -> RunOutcome:
    """Run the script as one of the store's jobs, if the store has a control database; a dry run is none.

    A job that may be held gets one: its publication finds it there.
    """
    from freezeframe.runs.script_header import with_script_header

    if request.dry_run:
        return run_it(request, is_cancelled)
    with ExitStack() as stack:
        try:
            is_held = with_script_header(request).may_be_held
            opened = partial(control, create=True) if is_held else present_control
            found = stack.enter_context(opened(request.root, request.environment))
        except FreezeframeError as error:
            _logger.warning("The run is not listed among the jobs: %s", error)
            found = None
        if found is None:
            return run_it(request, is_cancelled)
        from freezeframe.runs.queue.job_log import run_listed

        return run_listed(found.queue, request, settings, run_it, is_cancelled)


def _end(
    request: RunRequest,
    outcome: RunOutcome,
    output: Output,
    changes_max: int,
    copied: Path | None,
    difference: JobDifference | None = None,
) -> None:
    """Print the outcome of the run; raise the error that the exit code follows from."""
    dry_run = outcome.dry_run if changes_max else None
    if output.as_json:
        told = outcome.to_json() if dry_run is None else _with_kept_changes(outcome, changes_max)
        output.record(told if difference is None else {**told, "difference": difference.to_json()})
    else:
        if dry_run is not None:
            _print_kept_changes(outcome, dry_run, changes_max, output)
        report_run(request, outcome, output, copied)
        if difference is not None:
            print_difference(difference, output)
    if outcome.status == "cancelled":
        output.error(_error_of(outcome.error or {}))
        raise typer.Exit(INTERRUPTED)
    if outcome.error is not None:
        raise _error_of(outcome.error)
    is_other = difference is not None and not difference.is_empty
    if is_other or (outcome.dry_run is not None and outcome.dry_run.failed_checks):
        raise typer.Exit(FAILED)


def _copy_output(written: Path, target: Path) -> list[str]:
    """Copy what the script wrote for others, replacing files of the same name; return the links left out.

    A link to a folder, or to anything outside of the output, is not followed.
    """
    if written.is_symlink() or not written.is_dir():
        raise InputNotFound(
            f"There is no output to copy to {target}.",
            cause=f"{written} is gone: the job was run before, and its folder was cleaned away.",
            remedy="Run the script again under another --job-id.",
        )
    left_out: list[str] = []

    def find_links(folder: str, names: list[str]) -> list[str]:
        links = [
            name for name in names if (path := Path(folder, name)).is_symlink() and _leads_away(path, written)
        ]
        left_out.extend(str(Path(folder, name).relative_to(written)) for name in links)
        return links

    shutil.copytree(written, target, dirs_exist_ok=True, ignore=find_links)
    return left_out


def _leads_away(link: Path, folder: Path) -> bool:
    try:
        goal = link.resolve(strict=True)
    except (OSError, RuntimeError):  # it leads nowhere, or in a circle
        return True
    return not goal.is_file() or not goal.is_relative_to(folder.resolve())


def _begin(engine: str | None) -> Settings:
    from freezeframe.settings import load_settings
    from freezeframe.storage.local import keep_private

    keep_private()
    return load_settings(engine=engine)


def _forward(settings: Settings, script: Path, *, as_json: bool) -> int | None:
    """Return the outcome of the command in the warm runner; None if there is no runner."""
    from freezeframe.configuration.names import unknown_variables
    from freezeframe.runs.process.environment import start_beside_runner
    from freezeframe.runs.warm.forwarding import forward

    for variable in unknown_variables(os.environ, type(settings).model_fields):
        del os.environ[variable.name]  # this process has warned of it already
    start_beside_runner(script, settings, _silent if as_json else partial(print, flush=True))
    return forward("freezeframe", sys.argv[1:], settings)


def _is_command(arguments: Sequence[str]) -> bool:
    """Return whether this process is the command, not a program that calls it as a function."""
    return "run" in arguments[1:] and Path(arguments[0]).name in {"freezeframe", "__main__.py"}


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise InvalidOption(
            f"{text!r} is not a variable.", cause="It has no equals sign.", remedy="Write it as name=value."
        )
    return name, value


def _error_of(record: Mapping[str, Any]) -> FreezeframeError:
    """Return the error, of the class that its code names, if there is one: the exit code follows from it."""
    kinds = {kind.code: kind for kind in kinds_of(FreezeframeError)}
    kind = kinds.get(record.get("code", ""), FreezeframeError)
    return kind(
        record.get("problem", ""),
        cause=record.get("cause", ""),
        remedy=record.get("remedy", ""),
        code=record.get("code"),
        **record.get("details", {}),
    )


def _printer(progress_line: ProgressLine) -> Callable[[str], None]:
    """Return a function that prints the script's output; a closed pipe does not stop the script."""
    is_read = True

    def show(line: str) -> None:
        nonlocal is_read
        if is_read:
            try:
                with progress_line.away():
                    sys.stdout.write(f"{visible_lines(line)}\n")
                    sys.stdout.flush()
            except BrokenPipeError:
                is_read = False

    return show


def _silent(_: str) -> None:
    """Prints nothing: JSON is for programs, and the script's output is in the log."""


@contextmanager
def _cancel_on_signal() -> Iterator[Callable[[], bool]]:
    """Yield a check for SIGINT and SIGTERM; the first of them ends the script with time to clean up."""
    received: list[int] = []
    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, _: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, before[number] or signal.SIG_DFL)

    with suppress(ValueError):  # not in the main thread, which gets no signals
        for number in before:
            signal.signal(number, handle)
    try:
        yield lambda: bool(received)
    finally:
        with suppress(ValueError):
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)
