"""A run without scripts or Spark: a real job of a real tenant that adds its id to a file.

What else it does is said by the request's parameters, so that any process that reads the queue can do it.
"""

import time
from pathlib import Path

from freezeframe.errors import FixTheRequest, FreezeframeError, TryAgain
from freezeframe.runs.request import RunOutcome, RunRequest, request_store
from freezeframe.store.job import find_committed_job

LEDGER = "ledger.txt"
ERRORS = {"bad": FixTheRequest, "busy": TryAgain, "script": FreezeframeError, "other": FreezeframeError}


def file_run(request, *, settings, on_line=print, is_cancelled=lambda: False):
    """Add the job's id to the tenant's ledger, in one commit; see ``order`` for the parameters."""
    started = time.monotonic()
    tenant = request_store(request, settings).tenant(request.tenant, create=True)
    known = find_committed_job(tenant.context, request.job_id)
    if known is not None:
        return outcome(request, "repeated", started, receipt=known.to_json())
    wish = request.parameters
    if wish.get("crash"):
        raise ZeroDivisionError
    if wish.get("error"):
        details = {"is_permanent": True} if wish["error"] == "script" else {}
        error = ERRORS[wish["error"]]("It failed on purpose.", **details)
        return outcome(request, "failed", started, error=error.to_json())
    try:
        with tenant.job(request.job_id) as job:
            paths = [file.path for file in job.files.list()]
            before = job.files.read(LEDGER) if LEDGER in paths else b""
            job.files.write(LEDGER, before + f"{request.job_id}\n".encode())
            mark(wish.get("began"))
            while not until(wish) and time.monotonic() < started + wish.get("seconds", 0.0):
                go_on(is_cancelled)
    except InterruptedError:
        error = FreezeframeError("It was cancelled.")
        return outcome(request, "cancelled", started, error=error.to_json())
    except FreezeframeError as error:
        mark(wish.get("refused"), error.error_code)
        return outcome(request, "failed", started, error=error.to_json())
    return outcome(request, "succeeded", started, receipt=job.receipt.to_json())


def go_on(is_cancelled):
    """Let a little time pass, unless the run is to end."""
    if is_cancelled():
        raise InterruptedError
    time.sleep(0.01)


def until(wish):
    """Whether the file that ends the wait is there."""
    return "until" in wish and Path(wish["until"]).exists()


def mark(path, text=""):
    """Say something by a file."""
    if path:
        Path(f"{path}.new").write_text(text)
        Path(f"{path}.new").replace(path)


def outcome(request, status, started, receipt=None, error=None):
    """The outcome of such a run."""
    return RunOutcome(
        status=status,
        job_id=request.job_id,
        job_root=Path(request.root),
        seconds=time.monotonic() - started,
        tenant_version=receipt and receipt["tenant_version"],
        receipt=receipt,
        error=error,
        log=Path(request.root) / "log",
        notebook=None,
        exit_code=None,
    )


def order(root, tenant, job_id, **parameters):
    """A request for such a run: ``seconds`` to take, or ``until`` a file is there; ``began`` is a file to be
    made in the open job, ``refused`` one for the code of its error; ``error`` or ``crash`` instead of work.
    """
    return RunRequest(
        root=str(root),
        environment="dev",
        tenant=tenant,
        script=Path("none.py"),
        job_id=job_id,
        parameters={
            name: value if isinstance(value, float) else str(value) for name, value in parameters.items()
        },
    )


def ledger(root, tenant, settings):
    """The ids of the tenant's jobs, in the order of their commits."""
    return (
        request_store(order(root, tenant, "-"), settings).tenant(tenant).files.read(LEDGER).decode().split()
    )
