"""Where the ``freezeframe`` command begins: a run goes to the warm runner if one is there.

Loading the command line and its settings takes several times as long as handing a run over.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from freezeframe.cli.terminal.exit_codes import INTERRUPTED

_HELP = {"-h", "--help"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; whatever happens, nobody sees a traceback.

    Without ``arguments`` they are those of this process. With them the command is carried out in it.
    """
    if arguments is None and _is_a_run(sys.argv):
        from freezeframe.runs.warm.shortcut import forwarded_at_once

        try:
            code = forwarded_at_once("freezeframe", sys.argv[1:])
        except KeyboardInterrupt:
            return INTERRUPTED
        if code is not None:
            return code
    from freezeframe.cli.application import carry_out

    return carry_out(list(sys.argv[1:] if arguments is None else arguments))


def _is_a_run(line: Sequence[str]) -> bool:
    """Whether this process is the command, not a program that calls it, and is to run a script."""
    is_command = Path(line[0]).name in {"freezeframe", "__main__.py"}
    return is_command and line[1:2] == ["run"] and not _HELP.intersection(line)
