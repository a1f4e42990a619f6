"""Runs the commands that send a job's output to its target: after the script, before the commit."""

import signal
import subprocess
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from freezeframe.errors import FreezeframeError
from freezeframe.runs.process.script import ScriptFailure, standard_stream

_LINES_KEPT = 20
_LINE_MAX = 2_000


class TargetFailure(ScriptFailure):
    """A command ended with another exit code than 0, or by a signal; ``reason`` says which and how."""

    def __init__(self, command: str, code: int, printed: str) -> None:
        how = f"exit code {code}" if code > 0 else signal_name(-code)
        self.reason = f"The job's target did not take its output: {command} ended with {how}"
        error = FreezeframeError(
            f"{self.reason}; nothing of the run was kept.",
            cause=printed or "It printed nothing.",
            remedy="Correct the rows or the target's settings and run the job again; all that the command "
            "printed is in the job's log.",
            code="TARGET_FAILED",
        )
        super().__init__(error, max(code, 1))


def send_output(commands: Sequence[str], folder: Path) -> None:
    """Run the commands one after another in the job's root; what they print goes to the job's log.

    They have the script's environment, and belong to its process group, so a cancellation or a time limit
    ends them too.

    Raises:
        TargetFailure: a command ended with another exit code than 0; those behind it were not run.
    """
    # The script may have left both otherwise: a target's end is then not told, or its output is lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with standard_stream(1) as output:
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
                    last.append(_shortened(line.rstrip()))
            if process.returncode:
                raise TargetFailure(command, process.returncode, "\n".join(last))


def _shortened(line: str) -> str:
    # A part of a secret is not known as one, so no word is cut.
    return line if len(line) <= _LINE_MAX else f"{line[:_LINE_MAX].rpartition(' ')[0]} ..."


def signal_name(number: int) -> str:
    """Return what people call a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
