"""Runs a script for a tenant as one job, from the request to the outcome.

A job root is made and filled; a process opens the tenant's job and runs the script in it, and is watched
until its end. The tenant's log decides whether the job is committed, not the process's own report.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from freezeframe.clock import moment, now_ms, rfc3339
from freezeframe.configuration.masking import SecretMask, secret_values
from freezeframe.configuration.names import nearest
from freezeframe.errors import ConflictError, FreezeframeError, TryAgain
from freezeframe.progress import wait_for
from freezeframe.runs.job_root import (
    JobRoot,
    ScriptPlan,
    ScriptResult,
    latest_root,
    make_job_root,
    read_result,
    script_of,
)
from freezeframe.runs.kept_jobs import KeepingJob, removing_old_inputs
from freezeframe.runs.process.environment import require_variables, script_environment, script_spark
from freezeframe.runs.process.script_process import WaitingFile
from freezeframe.runs.process.target import signal_name
from freezeframe.runs.request import (
    RunOutcome,
    RunRequest,
    Status,
    given_file,
    held_outcome,
    input_folder,
    request_store,
    run_tenant,
)
from freezeframe.runs.script_header import interpreter, with_script_header
from freezeframe.runs.warm import spawn
from freezeframe.runs.watching import Ending, Limits, Reason, watch
from freezeframe.settings import Settings
from freezeframe.storage.local import make_private, write_durably
from freezeframe.storage.safe_open import open_regular, remove_beneath
from freezeframe.store.job import find_committed_job, find_held_job
from freezeframe.store.model.directory import (
    in_use,
    is_in_use,
    job_roots,
    job_roots_folder,
    remove_expired_roots,
    unlisted_roots,
)
from freezeframe.store.model.receipt import JobReceipt, parse_job_receipt
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.lease import HeldCommit, live_leases
from freezeframe.store.transaction.dry_run import parse_dry_run

_PIPE_BYTES = 1024 * 1024
_SECRET_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_MODULE = "freezeframe.runs.process.script_process"
_REPEATED = "Spark ended during the job, and with it the job's session: the job is run once more."
_STATUS: Mapping[Reason, Status] = {
    "ended": "failed",
    "memory": "failed",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
}


def run(
    request: RunRequest,
    *,
    settings: Settings,
    variables: Mapping[str, str] = MappingProxyType({}),
    on_line: Callable[[str], None] = lambda _: None,
    is_cancelled: Callable[[], bool] = lambda: False,
    is_new: bool = False,
) -> RunOutcome:
    """Run the request's script for its tenant, which is created if need be, and return the outcome.

    A success is one commit of all that the script changed, once its target has answered (``then`` of the
    request). Of anything else nothing is visible: an
    exception, an exit code, a signal, a limit, ``is_cancelled`` (asked twice a second). A script whose
    Spark session ended with its server is run once more, from its beginning in a new root, unless the
    request names the root. A job id that is committed already is answered (``repeated``) and not run
    again; nor is one that is held, whatever this request asks for: ``is_new`` says that the caller has made
    the id up, so that none can be. ``variables`` are environment variables that the caller gives the script
    beside its own.
    ``on_line`` gets each line that the script prints. A dry run commits nothing, makes no tenant and leaves
    the job's id free; the outcome's ``dry_run`` is what the script would change.

    Raises:
        InputNotFound: script, input or another file of the request is not there; nothing was written.
        InvalidOption, InvalidName: the store, the job's root or a parameter cannot be that.
        SetupError: the script's requirements could not be installed.
        TryAgain: the storage failed before the script began.
    """
    require_variables(variables)
    request = _resolve(request)
    if not request.dry_run:
        return _run(request, settings, variables, on_line, is_cancelled, may_be_held=not is_new)
    has_root = "://" in request.root or Path(request.root).exists()
    try:
        return _run(request, settings, variables, on_line, is_cancelled, may_be_held=False)
    finally:
        with suppress(FreezeframeError):  # what stays is removed by the store's sweep
            request_store(request, settings).remove_unlisted(request.token)
        if not has_root:
            with suppress(OSError):
                Path(request.root).rmdir()


def _run(
    request: RunRequest,
    settings: Settings,
    variables: Mapping[str, str],
    on_line: Callable[[str], None],
    is_cancelled: Callable[[], bool],
    *,
    may_be_held: bool,
) -> RunOutcome:
    started = time.monotonic()
    store = request_store(request, settings)
    is_new = store.folder(request.tenant) is None
    similar = nearest(request.tenant, store.tenants()) if is_new else ()
    tenant = run_tenant(request, settings, create=True)
    is_unlisted = is_new and request.dry_run
    folder = unlisted_roots(settings) if is_unlisted else job_roots_folder(tenant.context.storage, settings)
    known = find_committed_job(tenant.context, request.job_id)
    held = find_held_job(tenant.context, request.job_id) if may_be_held and known is None else None
    if known is not None or held is not None:
        root = latest_root(folder, request.job_id) or JobRoot(folder)
        outcome = RunOutcome(
            status="repeated",
            job_id=request.job_id,
            job_root=root.path,
            seconds=(time.monotonic() - started),
            tenant_version=None if known is None else known.tenant_version,
            receipt={} if known is None else known.to_json(),
            error=None,
            log=root.log,
            notebook=_notebook(request, root),
            exit_code=None,
        )
        if held is not None:
            return _as_held(outcome, held)
        return replace(outcome, remarks=_other_script(request, root, tenant))
    remove_expired_roots(folder, settings, now_ms())
    for path in job_roots(folder):
        if not is_in_use(path):
            JobRoot(path).remove_secrets()

    mask, erased = _mask(settings, os.environ), tenant.context.log.current_state().erased

    @removing_old_inputs(tenant.context, request)
    def attempt() -> RunOutcome:
        root = make_job_root(folder, request)
        try:
            with in_use(root.path):
                keeping = KeepingJob(tenant.context, root, request)
                environment = {**script_environment(request, root, settings, os.environ), **variables}
                ending = _run_process(request, root, settings, environment, on_line, is_cancelled, tenant)
        finally:
            root.remove_secrets()
        receipt = None if request.dry_run else find_receipt(tenant, request.job_id, root)
        # As with a commit: the process may have been killed after its job was held.
        is_held = request.may_be_held and receipt is None
        held = find_held_job(tenant.context, request.job_id) if is_held else None
        receipt = receipt if held is None else parse_job_receipt(held_outcome(held)["receipt"])
        outcome = _outcome(request, root, ending, receipt, time.monotonic() - started, mask)
        outcome = outcome if held is None else _as_held(outcome, held)
        keeping.end(outcome)
        if outcome.is_success and request.job_root is None:
            root.remove_copies()
        is_gone = not (outcome.is_success or root.own.is_dir())
        if is_gone and tenant.context.log.current_state().erased != erased:
            return replace(
                outcome,
                error=ConflictError(
                    "An erasure of the tenant's rows ended the run; nothing of it was kept.",
                    cause="The folder of the job had copies of the rows, and was removed.",
                    remedy="Run it again.",
                ).to_json(),
            )
        return outcome

    outcome = attempt()
    # Its Spark session was gone: it can run again.
    if (
        (outcome.error is not None and bool(outcome.error["details"].get("is_gone")))
        and request.job_root is None
        and not is_cancelled()
    ):
        on_line(_REPEATED)
        outcome = attempt()
    return replace(outcome, made_tenant=is_new, similar_tenants=tuple(similar))


def withdraw_tenant(request: RunRequest, outcome: RunOutcome, settings: Settings) -> tuple[RunOutcome, bool]:
    """Remove the tenant that a run has made and that is still without a version; its root is kept elsewhere.

    A mistyped id would stay as a tenant otherwise. Nothing is removed while another run works for the tenant,
    or a job of it is held.
    Returns where the outcome is now, and whether the tenant was removed.
    """
    store = request_store(request, settings)
    tenant = store.tenant(request.tenant)
    folder = job_roots_folder(tenant.context.storage, settings)
    leases = live_leases(
        tenant.context.storage
    )  # also of runs on other machines; a killed one leaves its own
    has_others = any(lease.commit is not None or lease.job_id != request.job_id for lease in leases)
    if has_others or tenant.version >= 0 or any(map(is_in_use, job_roots(folder))):
        return outcome, False
    if outcome.job_root.parent == folder.resolve() and outcome.job_root.is_dir():
        kept = unlisted_roots(settings) / outcome.job_root.name
        make_private(kept.parent)
        shutil.move(outcome.job_root, kept)
        notebook = None if outcome.notebook is None else kept / outcome.notebook.name
        outcome = replace(outcome, job_root=kept, log=JobRoot(kept).log, notebook=notebook)
    store.delete_tenant(request.tenant)
    return outcome, True


def _resolve(request: RunRequest) -> RunRequest:
    """Return the request with absolute paths and a token, after a check that its files exist."""
    request = with_script_header(replace(request, script=given_file(request.script, "script")))
    paths: dict[str, Any] = {}
    for name in ("config", "state", "catalog"):
        path = getattr(request, name)
        paths[name] = None if path is None else given_file(path, name)
    if request.input_dir is not None:
        paths["input_dir"] = input_folder(request.input_dir, request.tenant, datetime.now(UTC).date())
    if request.job_root is not None:
        paths["job_root"] = request.job_root.absolute()
    root = request.root if "://" in request.root else str(Path(request.root).resolve())
    return replace(request, root=root, token=request.token or uuid.uuid4().hex, **paths)


def _run_process(
    request: RunRequest,
    root: JobRoot,
    settings: Settings,
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    is_cancelled: Callable[[], bool],
    tenant: Tenant,
) -> Ending:
    python = interpreter(request.script, settings)
    if python != sys.executable and not (settings.spark_python or settings.spark.startswith("spark://")):
        # The packages of a script are available in its functions as well.
        settings = settings.model_copy(update={"spark_python": python})
        environment = {**environment, "FREEZEFRAME_SPARK_PYTHON": python}
    with script_spark(request.script, settings, environment, on_line, tenant) as spark:
        ScriptPlan(request, settings, os.getpid()).write(root)
        # A larger buffer, where the system allows it.
        reading, writing = os.pipe()
        with suppress(AttributeError, OSError):
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            process = spawn(
                [python, "-m", _MODULE, str(root.path)],
                environment={**environment, **spark},
                cwd=root.path,
                stdout=writing,
                settings=settings,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        mask = _mask(settings, environment)
        limits = Limits(request.timeout_seconds, request.memory_bytes)
        ending = watch(process, reading, root.log, limits, on_line, _with_waits(root, is_cancelled), mask)
    _log_jvm_stack(root, mask)
    _mask_files(root, request, mask)
    return ending


def _with_waits(root: JobRoot, is_cancelled: Callable[[], bool]) -> Callable[[], bool]:
    """Return the cancellation check, which also reports what the script waits for."""
    waiting = WaitingFile(root.own)

    def ask() -> bool:
        wait_for(waiting.read())
        return is_cancelled()

    return ask


def _mask(settings: Settings, environment: Mapping[str, str]) -> SecretMask:
    """Return what no output of a script may show: secret settings, also those that its environment has."""
    return SecretMask([*secret_values(settings), *(environment.get(name, "") for name in _SECRET_VARIABLES)])


def _mask_files(root: JobRoot, request: RunRequest, mask: SecretMask) -> None:
    """Take secrets out of the error that the script wrote, and of what its notebook's cells showed."""
    for path in (root.errors, root.executed_path(request.script)):
        with suppress(OSError):
            if path is not None:
                with open_regular(root.path, path.name) as file:
                    content = file.read()
                shown = mask.content(content)
                if shown != content:
                    remove_beneath(root.path, path.name)
                    write_durably(path, shown, synced=False)


def _log_jvm_stack(root: JobRoot, mask: SecretMask) -> None:
    """Append the stack of Spark's JVM to the log, if the error has one."""
    result = read_result(root)
    if result is not None and result.jvm_stack:
        with suppress(OSError), open_regular(root.path, root.log.name, appending=True) as log:
            log.write(
                f"\nThe stack of Spark's JVM:\n{mask.text(result.jvm_stack)}\n".encode(errors="replace")
            )


def find_receipt(tenant: Tenant, job_id: str, root: JobRoot) -> JobReceipt | None:
    """Return the job's receipt from the tenant's log; if that cannot be read, the one its process wrote."""
    try:
        found = find_committed_job(tenant.context, job_id)
    except TryAgain:
        result = read_result(root)
        if result is None or result.receipt is None or not result.receipt["committed"]:
            raise
        found = parse_job_receipt(result.receipt)
    return None if found is None else replace(found, repeated=False)


def _outcome(
    request: RunRequest,
    root: JobRoot,
    ending: Ending,
    committed: JobReceipt | None,
    seconds: float,
    mask: SecretMask,
) -> RunOutcome:
    status: Status = "succeeded"
    error, result = None, read_result(root)
    receipt: Mapping[str, Any] | None = None if committed is None else committed.to_json()
    dry_run = None
    if request.dry_run and result is not None:  # no log has its receipt
        receipt = result.receipt
        dry_run = None if result.dry_run is None else parse_dry_run(result.dry_run)
    # It may have been killed after its commit, and a committed job has succeeded.
    if receipt is None:
        status = _STATUS[ending.reason]
        error = run_error(request, root, ending, result, mask)
    elif request.dry_run and dry_run is None:
        status = "repeated"  # the id was committed by another run meanwhile
    return RunOutcome(
        status=status,
        job_id=request.job_id,
        job_root=root.path,
        seconds=seconds,
        tenant_version=None if receipt is None or dry_run else receipt["tenant_version"],
        receipt=receipt,
        error=error,
        log=root.log,
        notebook=_notebook(request, root),
        exit_code=ending.exit_code if ending.exit_code >= 0 else None,
        remarks=() if result is None else tuple(map(mask.text, result.remarks)),
        dry_run=dry_run,
    )


def _as_held(outcome: RunOutcome, held: HeldCommit) -> RunOutcome:
    return replace(outcome, **{**held_outcome(held), "dry_run": parse_dry_run(held.effects)})


def _notebook(request: RunRequest, root: JobRoot) -> Path | None:
    executed = root.executed_path(request.script)
    return executed if executed is not None and executed.is_file() else None


def _other_script(request: RunRequest, root: JobRoot, tenant: Tenant) -> tuple[str, ...]:
    """Return a warning if the committed job of this id ran another script, so this one was not run."""
    earlier, log = script_of(root), tenant.context.log
    record = log.known_job(log.current_state(), request.job_id)
    if earlier is None or record is None or earlier == request.script:
        return ()
    warning = (
        f"Warning: {request.script} was not run. The job {request.job_id} ran {earlier} and was committed "
        f"at {rfc3339(moment(record.timestamp_ms))}; another script needs another job id."
    )
    return (warning,)


_TEXT_MAX = 8_000
_LOOK = "Its log and what it wrote are in the job's root."


def run_error(
    request: RunRequest, root: JobRoot, ending: Ending, result: ScriptResult | None, mask: SecretMask
) -> Mapping[str, Any]:
    """Return the error as ``FreezeframeError.to_json`` gives it, and as text in the root's ``errors.txt``.

    If the script wrote that file itself, it is the error, and stays.
    """
    written = _read_error(root)
    error = _limit_error(request, ending)
    reported = result.error if result is not None else None
    if error is None and written:
        error = FreezeframeError(
            "The script failed and wrote errors.txt; nothing of the run was kept.",
            cause=written,
            remedy=f"Correct the script or its input and run it again. {_LOOK}",
            code="SCRIPT_FAILED",
        )
    elif error is None and reported is None and root.own.is_dir():
        error = _silent(ending)
    elif error is None and reported is None:
        error = FreezeframeError(
            "The script removed the job's root; nothing of the run was kept.",
            cause="The script's result and its changes are read from there.",
            remedy="Let the script delete its own files only, and keep the folder ROOT_DIR.",
            code="SCRIPT_FAILED",
        )
    error_json = (reported or {}) if error is None else error.to_json()
    shown: Mapping[str, Any] = mask.values(error_json)
    if not written:
        text = " ".join(filter(None, (shown["problem"], shown["cause"])))
        with suppress(OSError):
            remove_beneath(root.path, root.errors.name)  # a link or a pipe, if it is there
            write_durably(root.errors, f"{text}\n".encode(), synced=False)
    return shown


def _read_error(root: JobRoot) -> str:
    try:
        with open_regular(root.path, root.errors.name) as file:
            return file.read(_TEXT_MAX).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _limit_error(request: RunRequest, ending: Ending) -> FreezeframeError | None:
    if ending.reason == "timed_out":
        return FreezeframeError(
            f"The script was ended after {request.timeout_seconds:g} seconds; nothing of the run was kept.",
            cause="That is the time limit of the run.",
            remedy=f"Increase the time limit, or reduce the script's work. {_LOOK}",
            code="TIMED_OUT",
        )
    if ending.reason == "cancelled":
        return FreezeframeError(
            "The run was cancelled; nothing of it was kept.",
            remedy=f"To run it, submit it again. {_LOOK}",
            code="CANCELLED",
        )
    if ending.reason == "memory":
        limit = request.memory_bytes or 0
        return FreezeframeError(
            f"The script took more memory than its {limit:,} bytes; nothing of the run was kept.",
            cause=f"It and the processes that it started had {ending.memory_bytes:,} bytes.",
            remedy=f"Increase the memory limit, or process smaller pieces. {_LOOK}",
            code="MEMORY_LIMIT",
        )
    return None


def _silent(ending: Ending) -> FreezeframeError:
    code = ending.exit_code
    how = f"exit code {code}" if code >= 0 else signal_name(-code)
    return FreezeframeError(
        f"The script's process ended with {how} before the script was through; nothing of the run was kept.",
        cause="It ended itself at once (os._exit), was killed, or died in native code.",
        remedy=f"Look at the end of its log, and whether the machine was out of memory. {_LOOK}",
        code="SCRIPT_DIED",
    )
