"""Starts a process for a job: a fork of the warm runner where possible, else a new process.

The first job of a user starts the runner and is forked from it: it waits for the imports that it would
have to do itself. Whatever is wrong with a runner, a job never fails for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from freezeframe.errors import SetupError
from freezeframe.runs.warm.forked import Work, current_limits
from freezeframe.runs.warm.messages import ConnectionLost, receive, send
from freezeframe.runs.warm.place import (
    RunnerSettings,
    ask,
    connect,
    is_supported,
    other_runners,
    runner_folder,
    runner_variables,
    startup_variables,
)
from freezeframe.runs.warm.process import ForkedProcess, Process

_RUNNER = "freezeframe.runs.warm.runner"
_ANSWER_SECONDS = 60.0
_START_SECONDS = 10.0
_RETIRE_SECONDS = 1.0
_POLL_SECONDS = 0.01
# The caller's variables that a runner needs itself; its children have their own.
_KEPT = ("HOME", "PATH", "TMPDIR", "USER", "LOGNAME", "VIRTUAL_ENV")
# Threads of an allocator do not survive a fork.
_QUIET_ALLOCATOR = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


def spawn(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path,
    stdout: int,
    settings: RunnerSettings,
) -> Process:
    """Start ``command`` in a session and process group of its own, without input.

    ``python -m MODULE ...`` with this process's interpreter is forked from the warm runner, which is
    started if there is none; everything else, and everything where the runner cannot be had, is a
    plain child process. To the command there is no difference but the time it takes.

    Args:
        command: what to run.
        environment: all its variables.
        cwd: its working folder.
        stdout: an open file for its output and its errors.
        settings: ``runner_idle_seconds`` 0 means plain processes only.
    """
    if _can_fork(command, environment, settings):
        work = Work(command[2], tuple(command[3:]), environment, current_umask(), current_limits())
        if process := fork(work, cwd, (subprocess.DEVNULL, stdout, subprocess.STDOUT), settings):
            return process
    return subprocess.Popen(  # noqa: S603 - the caller's command is what is asked for
        command,
        env=dict(environment),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def fork(
    work: Work,
    cwd: Path,
    streams: tuple[int, int, int],
    settings: RunnerSettings,
    on_forked: Callable[[ForkedProcess], object] = lambda _: None,
) -> ForkedProcess | None:
    """The work as a process that the warm runner forked, None where there can be no runner.

    ``on_forked`` is called when there is the process and it does nothing yet.
    """
    if not is_supported() or not settings.runner_idle_seconds:
        return None
    with _open_streams(streams, cwd) as descriptors:
        # A runner of another user, or one that dies, must not prevent a job from running.
        with contextlib.suppress(SetupError, ConnectionLost, TimeoutError, ConnectionError):
            return _request_fork(work, descriptors, settings, on_forked)
        return None


def start_runner(settings: RunnerSettings) -> bool:
    """Whether there is a runner, which is started if there was none; it may still be loading."""
    if not is_supported() or not settings.runner_idle_seconds:
        return False
    with contextlib.suppress(OSError):
        _reach(runner_folder(settings, os.environ), settings).close()
        return True
    return False


def _can_fork(command: Sequence[str], environment: Mapping[str, str], settings: RunnerSettings) -> bool:
    """Whether a fork of this user's runner would be equivalent to the command."""
    is_module = len(command) > 2 and command[0] == sys.executable and command[1] == "-m"  # noqa: PLR2004
    return is_module and startup_variables(environment) == runner_variables(os.environ, settings)


def _request_fork(
    work: Work, descriptors: list[int], settings: RunnerSettings, on_forked: Callable[[ForkedProcess], object]
) -> ForkedProcess:
    folder = runner_folder(settings, os.environ)
    connection = _reach(folder, settings)
    try:
        connection.settimeout(_ANSWER_SECONDS)
        send(connection, work.to_json(), descriptors)
        number, (holder,) = _answer(connection)
    except BaseException:
        connection.close()
        raise
    process = ForkedProcess([work.module, *work.arguments], number, holder, connection)
    on_forked(process)
    # The process does nothing before it gets this, so a lost answer cannot run a job twice.
    send(connection, {"go": True})
    return process


def _answer(connection: socket.socket) -> tuple[int, list[int]]:
    message, descriptors = receive(connection)
    if len(descriptors) != 1 or not isinstance(message.get("process"), int):
        for descriptor in descriptors:
            os.close(descriptor)
        raise ConnectionLost("an answer that names no process")
    return message["process"], descriptors


@contextlib.contextmanager
def _open_streams(streams: tuple[int, int, int], cwd: Path) -> Iterator[list[int]]:
    """Standard input, output and error as open files, and the working folder."""
    with contextlib.ExitStack() as stack:
        nothing = os.open(os.devnull, os.O_RDWR)
        stack.callback(os.close, nothing)
        folder = os.open(cwd, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, folder)
        meant = [nothing if stream == subprocess.DEVNULL else stream for stream in streams]
        meant[2] = meant[1] if streams[2] == subprocess.STDOUT else meant[2]
        yield [*meant, folder]


def current_umask() -> int:
    """The umask of this process, read without changing it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022


def _reach(folder: Path, settings: RunnerSettings) -> socket.socket:
    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        return connect(folder, _ANSWER_SECONDS)
    deadline = time.monotonic() + _START_SECONDS
    with (folder / "start.lock").open("a") as start:
        # The file is a lock for the time of a start, however long the wait of those who come second.
        fcntl.flock(start, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return connect(folder, _ANSWER_SECONDS)
        for other in other_runners(folder):
            ask(other, {"retire": True}, _RETIRE_SECONDS)
        process = _start(folder, settings)
        try:
            return _listening(folder, process, deadline)
        finally:
            # It outlives this process on purpose, so Python's warning about that is suppressed.
            process.returncode = 0


def _listening(folder: Path, process: subprocess.Popen[bytes], deadline: float) -> socket.socket:
    while True:
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return connect(folder, _ANSWER_SECONDS)
        if process.poll() is not None or time.monotonic() > deadline:
            raise ConnectionLost(f"the runner did not start; see {folder / 'runner.log'}")
        time.sleep(_POLL_SECONDS)


def _start(folder: Path, settings: RunnerSettings) -> subprocess.Popen[bytes]:
    variables = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with (folder / "runner.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", _RUNNER, str(folder), str(settings.runner_idle_seconds)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=folder,
            env={**_QUIET_ALLOCATOR, **variables, **runner_variables(os.environ, settings)},
        )
