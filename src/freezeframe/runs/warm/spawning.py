"""Starts a process for a job: a fork of the warm runner where possible, else a new process.

The first job of a user starts the runner and is forked from it: it waits for imports that it would have to do
itself. A job never fails because of a runner.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from freezeframe.engine import daemon
from freezeframe.errors import SetupError
from freezeframe.runs.warm.messages import ConnectionLost, Work, current_limits, receive, send
from freezeframe.runs.warm.runner_folder import (
    RunnerSettings,
    connect,
    is_supported,
    runner_folder,
    runner_variables,
    startup_variables,
)


class Process(Protocol):
    """The part of `subprocess.Popen` that forked and started processes share."""

    @property
    def pid(self) -> int:
        """The process id, which is its group's as well."""

    @property
    def returncode(self) -> int | None:
        """The exit code, minus the signal that ended it, or None if it was not seen to end."""

    def poll(self) -> int | None:
        """Return the exit code if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, waited for; `subprocess.TimeoutExpired` after ``timeout`` seconds."""

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless the process has ended."""


class ForkedProcess:
    """A process that the runner forked. Its group can be killed by `os.killpg` as a started one's."""

    def __init__(self, args: Sequence[str], pid: int, holder: int, connection: socket.socket) -> None:
        self.args = list(args)
        self.pid = pid
        self.returncode: int | None = None
        self._holder = holder
        self._connection: socket.socket | None = connection
        self._told: int | None = None
        connection.settimeout(None)

    def poll(self) -> int | None:
        """Return the exit code if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code; minus SIGKILL if the runner died first."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not self._heard(left) and end is not None and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless the process has ended. Safe to call in a signal handler."""
        if self._holder >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._holder, sig)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _heard(self, seconds: float | None) -> bool:
        """Wait for a message of the runner, or without a runner for the process's end."""
        source = self._holder if self._connection is None else self._connection.fileno()
        poller = select.poll()
        poller.register(source, select.POLLIN)
        if not poller.poll(None if seconds is None else seconds * 1000):
            return False
        if self._connection is None:
            self._end(-signal.SIGKILL if self._told is None else self._told)
        else:
            self._listen(self._connection)
        return True

    def _listen(self, connection: socket.socket) -> None:
        try:
            message, descriptors = receive(connection)
        except (ConnectionLost, OSError):
            # The runner ended; the process continues without it.
            connection.close()
            self._connection = None
            return
        for descriptor in descriptors:
            os.close(descriptor)
        if "status" in message:
            self._end(int(message["status"]))
        elif "exit" in message:
            self._told = int(message["exit"])

    def _end(self, code: int) -> None:
        self.returncode = code
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        os.close(self._holder)
        self._holder = -1

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._holder >= 0:
            os.close(self._holder)


_NO_RUNNER = (SetupError, ConnectionLost, OSError)
_RUNNER = "freezeframe.runs.warm.runner"
_ANSWER_SECONDS = 60.0
_START_SECONDS = 10.0
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
    started if there is none; any other command, or any command without a runner, is a plain child process.
    The command itself sees no difference but the time. ``stdout`` is an open file for its output and its
    errors; ``runner_idle_seconds`` 0 in the settings means plain processes only.
    """
    # Else a fork of the runner would be another process than the command.
    is_module = len(command) > 2 and command[0] == sys.executable and command[1] == "-m"  # noqa: PLR2004
    if is_module and startup_variables(environment) == runner_variables(os.environ, settings):
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
    """Return the work as a process that the warm runner forked, None where there can be no runner.

    ``on_forked`` is called when there is the process and it does nothing yet.
    """
    if not is_supported() or not settings.runner_idle_seconds:
        return None
    process = None
    # A folder that cannot be used, a runner of another user, or one that dies, must not fail a job.
    with _open_streams(streams, cwd) as descriptors, contextlib.suppress(*_NO_RUNNER):
        connection = _reach(runner_folder(settings, os.environ), settings)
        try:
            connection.settimeout(_ANSWER_SECONDS)
            send(connection, work.to_json(), descriptors)
            number, (holder,) = _answer(connection)
        except BaseException:
            connection.close()
            raise
        process = ForkedProcess([work.module, *work.arguments], number, holder, connection)
    if process is not None:
        with contextlib.suppress(ConnectionLost, TimeoutError, ConnectionError):
            on_forked(process)
            # The process does nothing before it gets this, so a lost answer cannot run a job twice.
            send(connection, {"go": True})
            return process
    return None


def start_runner(settings: RunnerSettings) -> bool:
    """Return whether there is a runner, which is started if there was none; it may still be loading."""
    if not is_supported() or not settings.runner_idle_seconds:
        return False
    with contextlib.suppress(*_NO_RUNNER):
        _reach(runner_folder(settings, os.environ), settings).close()
        return True
    return False


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
    """Return the umask of this process, read without changing it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022


def _reach(folder: Path, settings: RunnerSettings) -> socket.socket:
    log = "runner.log"
    failure = f"the runner did not start; see {folder / log}"
    limit = daemon.StartLimit(_START_SECONDS, f"{_START_SECONDS} s", lambda _: ConnectionLost(failure))

    def find() -> socket.socket | None:
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return connect(folder, _ANSWER_SECONDS)
        return None

    def start() -> socket.socket:
        daemon.retire_others(folder)
        command = [sys.executable, "-m", _RUNNER, str(folder), str(settings.runner_idle_seconds)]
        variables = {name: os.environ[name] for name in _KEPT if name in os.environ}
        variables = {**_QUIET_ALLOCATOR, **variables, **runner_variables(os.environ, settings)}
        with daemon.started(folder, command, log, variables) as process:
            return daemon.wait_until_ready(process, find, limit)

    return daemon.found_or_started(folder, find, start, limit)
