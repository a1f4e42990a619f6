"""Runs the commands that send a job's output to its target: after the script, before the commit."""

import signal
import subprocess
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from freezeframe.errors import FreezeframeError
from freezeframe.runs.process.script import ScriptFailure

_LINES_KEPT = 20
_LINE_MAX = 2_000


def send_output(commands: Sequence[str], folder: Path) -> None:
    """Run the commands one after another in the job's root; what they print goes to the job's log.

    They have the script's environment, and belong to its process group, so a cancellation or a time limit
    ends them too.

    Raises:
        ScriptFailure: a command ended with another exit code than 0; those behind it were not run.
    """
    # The script may have left both otherwise: a target's end is then not told, or its output is lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    for command in commands:
        last: deque[str] = deque(maxlen=_LINES_KEPT)
        with subprocess.Popen(  # noqa: S602 - whoever submits a job may run its commands
            command,
            shell=True,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process:
            for line in process.stdout or ():
                output.write(line)
                output.flush()
                last.append(_shortened(line.rstrip()))
        if process.returncode:
            raise _failure(command, process.returncode, "\n".join(last))


def _shortened(line: str) -> str:
    # A part of a secret is not known as one, so no word is cut.
    return line if len(line) <= _LINE_MAX else f"{line[:_LINE_MAX].rpartition(' ')[0]} ..."


def signal_name(number: int) -> str:
    """Return what people call a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _failure(command: str, code: int, printed: str) -> ScriptFailure:
    how = f"exit code {code}" if code > 0 else signal_name(-code)
    return ScriptFailure(
        FreezeframeError(
            f"The job's target did not take its output: {command} ended with {how}; "
            "nothing of the run was kept.",
            cause=printed or "It printed nothing.",
            remedy="Correct the rows or the target's settings and run the job again; all that the command "
            "printed is in the job's log.",
            code="TARGET_FAILED",
        ),
        max(code, 1),
    )
