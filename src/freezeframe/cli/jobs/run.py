"""``freezeframe run``: one script for one tenant, here and now, as one commit."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.jobs.run_report import report_run
from freezeframe.cli.jobs.run_request import (
    Asked,
    Catalog,
    Config,
    Connector,
    Flow,
    Input,
    JobType,
    Memory,
    Parameters,
    Script,
    State,
    SyncType,
    Timeout,
)
from freezeframe.cli.places.control_place import present_control
from freezeframe.cli.places.options import Json, Message, Who
from freezeframe.cli.places.place import Environment, NeededTenant, StoreRoot
from freezeframe.cli.terminal.exit_codes import INTERRUPTED
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import ProgressLine, progress
from freezeframe.cli.terminal.safe_text import visible_lines
from freezeframe.errors import FreezeframeError, InputNotFound, InvalidOption, kinds_of

if TYPE_CHECKING:
    from freezeframe.runs.model.outcome import RunOutcome
    from freezeframe.runs.model.request import RunRequest
    from freezeframe.settings import Settings

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

CopiedOutput = Annotated[
    Path | None,
    typer.Option("--output", help="A folder that gets the script's etl-output, if the script succeeds."),
]


def run(
    script: Script,
    tenant: NeededTenant,
    root: StoreRoot,
    environment: Environment = None,
    flow: Flow = "",
    input_dir: Input = None,
    parameters: Parameters = None,
    variables: Variables = None,
    job_id: JobId = None,
    timeout: Timeout = None,
    memory: Memory = None,
    config: Config = None,
    state: State = None,
    catalog: Catalog = None,
    connector: Connector = "",
    job_type: JobType = "",
    sync_type: SyncType = "",
    job_root: KeptRoot = None,
    output_dir: CopiedOutput = None,
    message: Message = None,
    who: Who = None,
    engine: Engine = None,
    as_json: Json = False,
) -> None:
    """Run a script for a tenant as one commit; the tenant is made if it is not there.

    A failure of any kind changes nothing. What the script prints is shown as it comes.
    """
    settings = _begin(engine)
    # Loading a job's modules takes longer than most jobs, so the run goes to a process that has loaded them.
    code = _forward(settings, script, as_json=as_json) if _is_command(sys.argv) else None
    if code is not None:
        raise typer.Exit(code)
    from freezeframe.runs.running import run as run_request

    files = {"config": config, "state": state, "catalog": catalog}
    names = {"connector_id": connector, "job_type": job_type, "sync_type": sync_type}
    asked = Asked(script, flow, input_dir, parameters, timeout, memory, message, who, files, names)
    name = job_id or f"run-{secrets.token_hex(8)}"
    request = replace(
        asked.request(root, environment or settings.environment, tenant, name),
        job_root=None if job_root is None else job_root.absolute(),
    )
    given = dict(map(_variable, variables or ()))
    with _cancel_on_signal() as is_cancelled, progress("", as_json=as_json) as line:
        run_it = partial(
            run_request, settings=settings, variables=given, on_line=_silent if as_json else _printer(line)
        )
        outcome = _run_as_listed_job(
            request, settings, lambda asked, ask: run_it(asked, is_cancelled=ask), is_cancelled
        )
    if output_dir is not None and outcome.is_success:
        _copy_output(outcome.job_root / "etl-output", output_dir)
    _end(request, outcome, Output(as_json=as_json))


def _run_as_listed_job(
    request: RunRequest,
    settings: Settings,
    run_it: Callable[[RunRequest, Callable[[], bool]], RunOutcome],
    is_cancelled: Callable[[], bool],
) -> RunOutcome:
    """Run the script as one of the store's jobs, if the store has a control database."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(present_control(request.root, request.environment))
        except FreezeframeError as error:
            _logger.warning("The run is not listed among the jobs: %s", error)
            found = None
        if found is None:
            return run_it(request, is_cancelled)
        from freezeframe.runs.queue.listed_run import run_listed

        return run_listed(found.queue, request, settings, run_it, is_cancelled)


def _end(request: RunRequest, outcome: RunOutcome, output: Output) -> None:
    """Print the outcome of the run; raise the error that the exit code follows from."""
    if output.as_json:
        output.record(outcome.to_json())
    else:
        report_run(request, outcome, output)
    if outcome.status == "cancelled":
        output.error(_error_of(outcome.error or {}))
        raise typer.Exit(INTERRUPTED)
    if outcome.error is not None:
        raise _error_of(outcome.error)


def _copy_output(written: Path, target: Path) -> None:
    """Copy what the script wrote for others; files of the same name are replaced."""
    if not written.is_dir():
        raise InputNotFound(
            f"There is no output to copy to {target}.",
            cause=f"{written} is gone: the job was run before, and its folder was cleaned away.",
            remedy="Run the script again under another --job-id.",
        )
    shutil.copytree(written, target, dirs_exist_ok=True)


def _begin(engine: str | None) -> Settings:
    from freezeframe.settings import load_settings
    from freezeframe.storage.local import keep_private

    keep_private()
    return load_settings(engine=engine)


def _forward(settings: Settings, script: Path, *, as_json: bool) -> int | None:
    """The outcome of the command in the warm runner; None if there is no runner."""
    from freezeframe.configuration.variables import unknown_variables
    from freezeframe.runs.process.early_spark import start_beside_runner
    from freezeframe.runs.warm.forwarding import forward

    for one in unknown_variables(os.environ, type(settings).model_fields):
        del os.environ[one.name]  # this process has warned of it already
    start_beside_runner(script, settings, _silent if as_json else partial(print, flush=True))
    return forward("freezeframe", sys.argv[1:], settings)


def _is_command(arguments: Sequence[str]) -> bool:
    """Whether this process is the command, not a program that calls it as a function."""
    return "run" in arguments[1:] and Path(arguments[0]).name in {"freezeframe", "__main__.py"}


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise InvalidOption(
            f"{text!r} is not a variable.", cause="It has no equals sign.", remedy="Write it as name=value."
        )
    return name, value


def _error_of(record: Mapping[str, Any]) -> FreezeframeError:
    """The error, of the class that its code names, if there is one: the exit code follows from it."""
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
    """Prints the script's output; if nobody reads it, the script goes on all the same."""
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
    """Whether this process was asked to end; the first request ends the script with time to clean up."""
    asked: list[int] = []
    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _: FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, before[number] or signal.SIG_DFL)

    with suppress(ValueError):  # not in the main thread, which gets no signals
        for number in before:
            signal.signal(number, ask)
    try:
        yield lambda: bool(asked)
    finally:
        with suppress(ValueError):
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)
