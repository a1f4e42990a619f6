"""Runs a Python file in this process as ``python etl.py`` would."""

from __future__ import annotations

import builtins
import sys
import types
from pathlib import Path

from freezeframe.runs.process.script_failure import Stopped, exit_code_of, failure_of, script_trace


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
