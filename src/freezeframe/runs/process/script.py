"""Runs a Python file as `python etl.py` would, and converts its exception to an error."""

from __future__ import annotations

import builtins
import itertools
import os
import sys
import traceback
import types
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from freezeframe.engine.java import without_jvm_stack
from freezeframe.errors import FreezeframeError

_TEXT_MAX = 8_000
_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"
_REMEDY = "Correct the script or its input and run it again; its log and output are in the job's root."
_SPARK_REMEDIES = {
    "PATH_NOT_FOUND": "Name a path that Spark sees; those of the job's own folders begin with ROOT_DIR.",
}


def standard_stream(number: int) -> TextIO:
    """Open the standard output (1) or error (2) of this process: UTF-8, a line at a time."""
    return os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


class Stopped(BaseException):
    """Raised in a script that the run stops. No ``Exception``, so that the script's handlers let it pass."""


class ScriptFailure(Exception):
    """The script ended with an exception or an exit code; ``error`` is what the run reports."""

    def __init__(self, error: FreezeframeError, exit_code: int) -> None:
        super().__init__(error.problem)
        self.error = error
        self.exit_code = exit_code


def failure_of(error: BaseException) -> ScriptFailure:
    """Return the failure that an exception out of a script means; one of ours stays what it is.

    The detail ``script_line`` names the script's last line on the way to the exception.
    """
    failure, script = _failure_of(error), sys.argv[0]
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == script]
    if lines:
        failure.error.details["script_line"] = f"{Path(script).name}, line {lines[-1]}"
    return failure


def _failure_of(error: BaseException) -> ScriptFailure:
    if isinstance(error, FreezeframeError):
        return ScriptFailure(error, 1)
    if isinstance(error, SystemExit):
        code = exit_code_of(error)
        said = f": {error.code}" if isinstance(error.code, str) else ""
        return ScriptFailure(_failure(f"SystemExit with code {code}{said}"), code)
    if type(error).__module__.startswith("pyspark.errors"):
        return ScriptFailure(_spark_error(error), 1)
    text = without_jvm_stack("".join(traceback.format_exception_only(error))).strip()
    return ScriptFailure(_failure(text, exception=type(error).__name__), 1)


def exit_code_of(end: SystemExit) -> int:
    """Return the exit code that the process would end with."""
    if end.code is None:
        return 0
    return end.code & 0xFF if isinstance(end.code, int) else 1


def script_trace(error: BaseException, file: str, *, is_whole: bool = False) -> str:
    """Return the traceback as the script alone would have printed it, without what runs it.

    Of an error of ours it ends with the script's own line, unless ``is_whole``: what went wrong is in the
    error's text, and where this package noticed it says nothing of the script.
    """
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    printed = traceback.TracebackException(type(error), error, trace)
    if isinstance(error, FreezeframeError) and not is_whole:
        printed.stack[:] = itertools.takewhile(
            lambda frame: not frame.filename.startswith(_PACKAGE), printed.stack
        )
        printed.__cause__, printed.__suppress_context__ = None, True
    return without_jvm_stack("".join(printed.format()))


def _spark_error(error: BaseException) -> FreezeframeError:
    """Return a script's Spark error as one of this library; its stack goes to the log."""
    # Only if PySpark is loaded: a script without Spark must not load it just to fail.
    from freezeframe.engine.spark_errors import (  # noqa: PLC0415
        cause_of,
        error_class,
        is_fault_of_request,
        machine_error,
    )

    return machine_error(error) or FreezeframeError(
        "Spark could not execute a step of the script; nothing of the run was kept.",
        cause=cause_of(error),
        remedy=_SPARK_REMEDIES.get(error_class(error), _REMEDY),
        code="SCRIPT_FAILED",
        exception=type(error).__name__,
        is_permanent=is_fault_of_request(error),
    )


def _failure(text: str, **details: Any) -> FreezeframeError:
    return FreezeframeError(
        "The script failed; nothing of the run was kept.",
        cause=text[:_TEXT_MAX],
        remedy=_REMEDY,
        code="SCRIPT_FAILED",
        **details,
    )


def run_python(script: Path, *, is_trace_whole: bool = False) -> None:
    """Run the file as ``__main__``; an exit with code 0 is a good end.

    ``is_trace_whole``: errors of this package are printed with its own frames.
    """
    file = str(script)
    sys.argv[:] = [file]
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=file, __builtins__=builtins)
    # It stays the main module: threads and processes of the script look names up in it.
    sys.modules["__main__"] = main
    try:
        code = compile(script.read_bytes(), file, "exec", dont_inherit=True)
        exec(code, main.__dict__)  # noqa: S102 - running the script is the point
    except Stopped:
        raise
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        if exit_code_of(end) != 0:
            raise failure_of(end) from None
    except BaseException as error:
        sys.stderr.write(script_trace(error, file, is_whole=is_trace_whole))
        raise failure_of(error) from error
