"""Entry point of ``freezeframe``: forwards runs and reads to the warm runner where there is one.

Loading the command line, its settings and the store takes several times as long as handing a command over.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

_HELP = {"-h", "--help"}
_READS = {
    "tenant": {"list", "show", "history", "diff"},
    "stream": {"list", "show", "history", "changes", "diff"},
    "file": {"list", "history"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an error is printed without a traceback.

    Without ``arguments`` the command line of this process counts, and the warm runner may run it. With them
    the command runs in this process.
    """
    is_read = arguments is None and _is_command(sys.argv) and _is_read(sys.argv)
    if is_read or (arguments is None and _is_command(sys.argv) and sys.argv[1:2] == ["run"]):
        from freezeframe.runs.warm.forwarding import forwarded_at_once

        try:
            code = forwarded_at_once("freezeframe", sys.argv[1:])
        except KeyboardInterrupt:
            from freezeframe.cli.output import INTERRUPTED

            return INTERRUPTED
        if code is not None:
            return code
    from freezeframe.cli.application import carry_out

    code = carry_out(list(sys.argv[1:] if arguments is None else arguments))
    if is_read and sys.stdout.isatty():  # a person will probably type another command
        from freezeframe.runs.warm.forwarding import start_for_later

        start_for_later()
    return code


def _is_command(line: Sequence[str]) -> bool:
    """Return whether this process is the command, not a program that calls it, and not only for help."""
    return Path(line[0]).name in {"freezeframe", "__main__.py"} and not _HELP.intersection(line)


def _is_read(line: Sequence[str]) -> bool:
    return len(line) > 2 and line[2] in _READS.get(line[1], ())  # noqa: PLR2004 - a group and its command
