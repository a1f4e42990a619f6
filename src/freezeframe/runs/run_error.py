"""The error of a failed run, for programs and, in ``errors.txt``, for people."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from freezeframe.configuration.masking import SecretMask
from freezeframe.errors import FreezeframeError
from freezeframe.runs.model.job_root import JobRoot
from freezeframe.runs.model.plan import ScriptResult
from freezeframe.runs.model.request import RunRequest
from freezeframe.runs.watching import Ending
from freezeframe.storage.local import write_durably
from freezeframe.storage.safe_open import open_regular, remove_beneath

_TEXT_MAX = 8_000
_LOOK = "Its log and what it wrote are in the job's root."


def run_error(
    request: RunRequest, root: JobRoot, ending: Ending, result: ScriptResult | None, mask: SecretMask
) -> Mapping[str, Any]:
    """The error as ``FreezeframeError.to_json`` gives it, and as text in the root's ``errors.txt``.

    What the script wrote there itself is its error, and stays.
    """
    written = _read_error(root)
    error = _limit_error(request, ending)
    if error is None:
        told = result.error if result is not None else None
        if not written and told is not None:
            error_json = told
        else:
            silent = _silent(ending) if root.own.is_dir() else _rootless()
            error_json = (_own_error(written) if written else silent).to_json()
    else:
        error_json = error.to_json()
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
            cause="That is the time it was given.",
            remedy=f"Give it more time, or less to do. {_LOOK}",
            code="TIMED_OUT",
        )
    if ending.reason == "cancelled":
        return FreezeframeError(
            "The run was cancelled; nothing of it was kept.",
            remedy=f"Run it again if it is wanted after all. {_LOOK}",
            code="CANCELLED",
        )
    if ending.reason == "memory":
        limit = request.memory_bytes or 0
        return FreezeframeError(
            f"The script took more memory than its {limit:,} bytes; nothing of the run was kept.",
            cause=f"It and the processes that it started had {ending.memory_bytes:,} bytes.",
            remedy=f"Give it more memory, or have it work in smaller pieces. {_LOOK}",
            code="MEMORY_LIMIT",
        )
    return None


def _own_error(written: str) -> FreezeframeError:
    return FreezeframeError(
        "The script failed and wrote errors.txt; nothing of the run was kept.",
        cause=written,
        remedy=f"Correct the script or its input and run it again. {_LOOK}",
        code="SCRIPT_FAILED",
    )


def _rootless() -> FreezeframeError:
    return FreezeframeError(
        "The script removed the job's root; nothing of the run was kept.",
        cause="How the script ended is told there, and so is what it changed.",
        remedy="Have the script remove what it made itself, and leave the folder ROOT_DIR.",
        code="SCRIPT_FAILED",
    )


def _silent(ending: Ending) -> FreezeframeError:
    code = ending.exit_code
    how = f"exit code {code}" if code >= 0 else _signal_name(-code)
    return FreezeframeError(
        f"The script's process ended with {how} before the script was through; nothing of the run was kept.",
        cause="It ended itself at once (os._exit), was killed, or died in native code.",
        remedy=f"Look at the end of its log, and whether the machine was out of memory. {_LOOK}",
        code="SCRIPT_DIED",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
