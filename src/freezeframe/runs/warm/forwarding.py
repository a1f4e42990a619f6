"""Forwards a command to the warm runner, which runs it in a fork.

A command that runs a job loads the same modules as the job's process. In a fork of the runner they are loaded
already; this process only waits for the fork, passes signals on, and ends with its exit code.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from freezeframe.configuration.files import plain_value
from freezeframe.errors import FreezeframeError
from freezeframe.runs.warm.messages import Work, current_limits
from freezeframe.runs.warm.runner_folder import SOCKET_NAME, RunnerSettings, is_supported, runner_folder
from freezeframe.runs.warm.spawning import ForkedProcess, current_umask, fork, start_runner

_STREAMS = (0, 1, 2)
_PASSED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SIGNAL_EXIT = 128


def forward(module: str, arguments: Sequence[str], settings: RunnerSettings) -> int | None:
    """Run ``python -m MODULE ARGUMENTS`` in the warm runner, and return its exit code.

    It has this process's streams. None if nothing was run: there can be no runner here, or this process is a
    fork of one already.
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
    """Return whether this process has already loaded what a runner would save: it may be a fork of one."""
    return "pyarrow" in sys.modules


@contextmanager
def _pass_signals(process: ForkedProcess) -> Iterator[None]:
    """Pass each signal that asks this process to end to the process that does its work."""
    before = {
        number: signal.signal(number, lambda sent, _: process.send_signal(sent)) for number in _PASSED_SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class PlainSettings:
    """The settings that identify a runner, read without a check."""

    state_dir: Path
    runner_idle_seconds: int
    script_variables: str


def plain_settings() -> PlainSettings | None:
    """Return the three settings of a runner; None where they are not written in the plain way."""
    try:
        return PlainSettings(
            state_dir=plain_value("state_dir", Path.home() / ".cache" / "freezeframe"),
            runner_idle_seconds=plain_value("runner_idle_seconds", 1800),
            script_variables=plain_value("script_variables", ""),
        )
    except (ValueError, TypeError, RuntimeError, OSError, FreezeframeError):
        return None  # errors are reported where all settings are loaded


def forwarded_at_once(module: str, arguments: Sequence[str]) -> int | None:
    """Return what `forward` gives, if a runner of this user is there; None, and nothing done, if none is.

    A wrongly read setting costs only time: the runner's process reads the settings again and checks them.
    """
    if is_loaded():
        return None
    settings = plain_settings()
    if settings is None or not settings.runner_idle_seconds or not is_supported():
        return None
    try:
        Path.cwd()
        is_there = (
            settings.state_dir.is_dir() and (runner_folder(settings, os.environ) / SOCKET_NAME).exists()
        )
    except (OSError, FreezeframeError):
        return None
    return forward(module, arguments, settings) if is_there else None


def start_for_later() -> None:
    """Start a runner for later commands, if there can be one; a failure is ignored."""
    settings = plain_settings()
    if settings is not None:
        with suppress(FreezeframeError, OSError):
            start_runner(settings)
