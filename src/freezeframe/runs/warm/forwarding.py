"""Forwards a command to the warm runner, which runs it in a fork.

A command that runs a job has to load what the job's own process loads. Forwarded, it finds all that
loaded; this process only waits for it, hands signals on, and ends as it ended.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from freezeframe.runs.warm.forked import Work, current_limits
from freezeframe.runs.warm.place import RunnerSettings
from freezeframe.runs.warm.process import ForkedProcess
from freezeframe.runs.warm.spawning import current_umask, fork

_STREAMS = (0, 1, 2)
_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SIGNAL_EXIT = 128


def forward(module: str, arguments: Sequence[str], settings: RunnerSettings) -> int | None:
    """The exit code of ``python -m MODULE ARGUMENTS``, run by the warm runner with this process's streams.

    None where nothing was run: there can be no runner here, or this process is a fork of it already.
    """
    if is_loaded():
        return None
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    work = Work(module, tuple(arguments), os.environ, current_umask(), current_limits(), is_bound=True)
    with ExitStack() as stack:
        # Before it begins: no signal may come in between and end this process alone.
        process = fork(
            work, Path.cwd(), _STREAMS, settings, lambda item: stack.enter_context(_pass_signals(item))
        )
        if process is None:
            return None
        code = process.wait()
    return code if code >= 0 else _SIGNAL_EXIT - code


def is_loaded() -> bool:
    """Whether this process has already loaded what a runner would save: it may be a fork of one."""
    return "pyarrow" in sys.modules


@contextmanager
def _pass_signals(process: ForkedProcess) -> Iterator[None]:
    """Pass each signal that asks this process to end to the process that does its work."""
    before = {
        number: signal.signal(number, lambda sent, _: process.send_signal(sent)) for number in _HANDED_ON
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
