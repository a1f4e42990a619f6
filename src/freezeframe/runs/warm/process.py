"""A process of a job: the part of `subprocess.Popen` that forked and spawned ones share."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from typing import Protocol

from freezeframe.runs.warm.messages import ConnectionLost, receive


class Process(Protocol):
    """What both a forked and a started process can be asked; the words are those of `subprocess`."""

    @property
    def pid(self) -> int:
        """The process id, which is its group's as well."""

    @property
    def returncode(self) -> int | None:
        """The exit code, minus the signal that ended it, or None if it was not seen to end."""

    def poll(self) -> int | None:
        """The exit code if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, waited for; `subprocess.TimeoutExpired` after ``timeout`` seconds."""

    def send_signal(self, sig: int) -> None:
        """Send a signal, to nobody if it has ended."""


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
        """The exit code if it has ended."""
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
        """Send a signal, to nobody if it has ended. May be called by a signal's handler."""
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
