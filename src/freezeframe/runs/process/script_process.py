"""The process of a script."""

from __future__ import annotations

import concurrent.futures.thread
import functools
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from types import FrameType

from freezeframe.engine.java import jvm_stack
from freezeframe.errors import FreezeframeError
from freezeframe.extras import requires_extra
from freezeframe.progress import Unit, watched_by
from freezeframe.runs.dry_run_changes import review
from freezeframe.runs.job_root import JobRoot, ScriptPlan, ScriptResult, take_plan
from freezeframe.runs.process.environment import begin_session
from freezeframe.runs.process.script import (
    ScriptFailure,
    Stopped,
    failure_of,
    run_python,
    standard_stream,
)
from freezeframe.runs.process.target import TargetFailure, send_output
from freezeframe.runs.process.working_copy import apply_changes, capture, check_out
from freezeframe.runs.request import RunRequest, run_tenant
from freezeframe.runs.script_header import script_sha256
from freezeframe.script.adoption import adopt_written, refresh_copies
from freezeframe.script.current_job import current_job
from freezeframe.storage.local import keep_private
from freezeframe.storage.safe_open import open_regular
from freezeframe.store.model.receipt import JobReceipt
from freezeframe.store.snapshot_files import own_exports
from freezeframe.store.tenant import open_script_job
from freezeframe.store.transaction.dry_run import DryRun

_TEXT_MAX = 8_000


class WaitingFile:
    """A watcher that writes to a file what the script waits for and keeps remarks; it ignores the rest."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "waiting.txt"
        self.remarks: list[str] = []

    def begin(self, doing: str, unit: Unit, total: int | None) -> None:
        """See ``Watcher.begin``; the parts of a script's work are not shown."""

    def advance(self, count: int) -> None:
        """See ``Watcher.advance``."""

    def wait_for(self, what: str) -> None:
        """See ``Watcher.wait_for``."""
        with suppress(OSError):
            self._path.write_text(what, encoding="utf-8")

    def remark(self, text: str) -> None:
        """See ``Watcher.remark``: the run's report has it."""
        if text not in self.remarks:
            self.remarks.append(text)

    def read(self) -> str:
        """Return the description of what the script waits for; empty if nothing."""
        with suppress(OSError), open_regular(self._path.parent, self._path.name) as file:
            return file.read(_TEXT_MAX).decode("utf-8", "replace")
        return ""


# The process of one script: it opens the tenant's job, runs the script in it, and commits.
#
# ``python -m freezeframe.runs.process.script_process FOLDER``: the folder is a job's root that ``running``
# has made. ``main`` reads from it what to do, so the process may as well have been forked from one that was
# started long ago. The outcome of the job is written there as well. The waiting process relies on that
# outcome and on the tenant's log, not on what the script prints.

_SUPERVISION_SECONDS = 1.0


def main(job_folder: str) -> int:
    """Carry out the plan in a job's root and write the result there; return the process's exit code."""
    keep_private()
    root = JobRoot(Path(job_folder))
    plan = take_plan(root)
    process = os.getpid()
    _stop_by_sigterm(process)
    _end_with(plan.supervisor)
    _use_utf8()
    try:
        result = _result(root, plan)
    except BaseException as error:  # noqa: BLE001 - nothing handles it after this
        if os.getpid() != process:
            os._exit(1)
        result = ScriptResult(None, _to_dict(error), 1, jvm_stack(error))
    with suppress(FileNotFoundError):  # the root was removed, which the waiting process sees
        result.write(root)
    return result.exit_code


def _result(root: JobRoot, plan: ScriptPlan) -> ScriptResult:
    process, watcher = os.getpid(), WaitingFile(root.own)
    try:
        receipt, dry_run, streams = _commit(root, plan, process, watcher)
    except ScriptFailure as failure:
        stack = jvm_stack(failure)
        return ScriptResult(None, failure.error.to_json(), failure.exit_code, stack, watcher.remarks)
    changes = None if dry_run is None else dry_run.to_json()
    return ScriptResult(receipt.to_json(), None, 0, remarks=watcher.remarks, dry_run=changes, streams=streams)


def _commit(
    root: JobRoot, plan: ScriptPlan, process: int, watcher: WaitingFile
) -> tuple[JobReceipt, DryRun | None, list[str]]:
    request = plan.request
    context = run_tenant(request, plan.settings).context
    ran = replace(context.request_context, script_sha256=script_sha256(request))
    context = replace(context, request_context=ran)
    if request.dry_run or request.may_be_held:
        trying = functools.partial(review, root, request)
        context = replace(context, review=trying, is_dry_run=request.dry_run)
    meaning = {"message": request.message, "who": request.who}
    with open_script_job(context, request.job_id, token=request.token, **meaning) as tenant:
        root.note_sealed(entry.path for entry in tenant.files.list(recursive=True) if entry.sealed)
        before = check_out(tenant.files, root.snapshots)
        names = {"root": request.root, "environment": request.environment}
        names |= {"tenant": request.tenant, "job": request.job_id}
        with current_job(root.snapshots, tenant, names), watched_by(watcher):
            refresh_copies(root.snapshots, tenant, before)
            begin_session(request.script)
            _run_script(plan, root, process)
            _send_output(request, root, watcher)
            changes = capture(root.snapshots, before, own_exports(root.snapshots))
            adopt_written(root.snapshots, tenant, {*changes.added, *changes.changed} - changes.sealed)
            apply_changes(tenant.files, root.snapshots, changes)
    return tenant.receipt, tenant.dry_run, tenant.streams_used


def _run_script(plan: ScriptPlan, root: JobRoot, process: int) -> None:
    """Run the script and wait for its threads and processes; a fork of it never returns."""
    request, script = plan.request, plan.request.script
    # As with `python etl.py`; its lib/ comes last, for scripts that import from there by bare name.
    sys.path[:1] = [str(script.parent)]
    sys.path.append(str(script.parent / "lib"))
    try:
        executed = root.executed_path(script)
        if executed is None:
            run_python(script, is_trace_whole=plan.settings.log_level == "debug")
        else:
            # Only a notebook needs papermill and IPython, which take long to load.
            with requires_extra("notebooks"):
                from freezeframe.runs.process.notebook import run_notebook  # noqa: PLC0415

            run_notebook(script, executed, request.parameters, root.temporary)
        _wait_for_others()
    except BaseException as error:
        if os.getpid() != process:
            _end_fork(error)
        raise
    if os.getpid() != process:
        _end_fork(None)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def _send_output(request: RunRequest, root: JobRoot, watcher: WaitingFile) -> None:
    """Send the output to the target, which may write files under ``snapshots/`` that are captured then."""
    if not request.then:
        return
    if request.dry_run:
        watcher.remark("The target's command was not run: a dry run sends nothing.")
        return
    try:
        send_output(request.then, root.path)
    except TargetFailure as failure:
        if not request.keep_on_failure:
            raise
        watcher.remark(f"{failure.reason}. What the script changed is kept all the same, as the job says.")


def _end_fork(error: BaseException | None) -> None:
    """End a process that the script forked and that came to the script's end: the job is its parent's."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(error.exit_code if isinstance(error, ScriptFailure) else int(error is not None))


def _wait_for_others() -> None:
    """Wait for the threads and processes that Python itself would wait for before it ends."""
    # Idle workers of a pool wait for ever; what a pool was given is waited for where it is shut down.
    pools = getattr(concurrent.futures.thread, "_threads_queues", {})
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon and thread not in pools:
            thread.join()
    for child in active_children():
        if not child.daemon:
            child.join()


def _stop_by_sigterm(process: int) -> None:
    """Let SIGTERM stop the script in ``process``, and end its forks as if there were no handler."""

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() == process:
            raise Stopped
        reset()
        os.kill(os.getpid(), number)

    def reset() -> None:
        if signal.getsignal(signal.SIGTERM) is stop:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, stop)
    # A pool ends its workers by SIGTERM. Python runs a handler once it is back from C: a worker that the
    # signal met just before it began to wait for its lock would wait for ever, and the script for it.
    os.register_at_fork(after_in_child=reset)


def _to_dict(error: BaseException) -> dict[str, object]:
    if isinstance(error, Stopped):
        return FreezeframeError("The script was stopped.", code="STOPPED").to_json()
    if isinstance(error, FreezeframeError):
        return error.to_json()
    return failure_of(error).error.to_json()


def _end_with(supervisor: int) -> None:
    """End this process and all that it started as soon as its supervisor has ended."""

    def watch() -> None:
        while True:
            time.sleep(_SUPERVISION_SECONDS)
            try:
                os.kill(supervisor, 0)
            except ProcessLookupError:
                os.killpg(0, signal.SIGKILL)
            except PermissionError:
                continue

    threading.Thread(target=watch, name="freezeframe-supervision", daemon=True).start()


def _use_utf8() -> None:
    """Print UTF-8, a line at a time, whatever this process was started or forked with."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        getattr(sys, name).flush()
        # Not `reconfigure`: in a forked process it would seek in the runner's file.
        stream = standard_stream(number)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
