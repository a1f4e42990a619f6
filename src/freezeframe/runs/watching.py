"""Supervises a script's process: output, time-out, memory, cancellation.

One thread does all of it: a script that prints faster than it is read waits, and the output is not kept in
memory.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, Self

from freezeframe.configuration.masking import SecretMask
from freezeframe.runs.warm import Process

Reason = Literal["ended", "timed_out", "cancelled", "memory"]

LOG_BYTES_MAX = 64 * 1024 * 1024
_LINE_BYTES_MAX = 16 * 1024
_READ_BYTES = 1024 * 1024
_POLL_SECONDS = 0.05
_LOOK_SECONDS = 0.5
_STOP_SECONDS = 5.0
_DRAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a process; None is no limit."""

    timeout_seconds: float | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a process has ended. ``exit_code``: its own, or minus the signal that ended it."""

    reason: Reason
    exit_code: int
    memory_bytes: int = 0
    """Its memory, if that exceeded the limit."""


def watch(
    process: Process,
    output: int,
    log: Path,
    limits: Limits,
    on_line: Callable[[str], None],
    is_cancelled: Callable[[], bool],
    mask: SecretMask | None = None,
) -> Ending:
    """Watch over a process (the leader of its group) to its end, and end all that it started with it.

    ``output`` is the reading end of a pipe with what it prints: ``log`` gets its bytes, up to 64 MiB, and
    ``on_line`` each line, without the secrets of ``mask``. What the two callbacks raise ends the process
    and is raised here.
    """
    with (
        log.open("ab") as file,
        _Output(output, _unbuffered_writer(file), on_line, mask or SecretMask()) as printed,
    ):
        watch = _Watch(process, limits, is_cancelled)
        try:
            while process.poll() is None:
                if printed.is_open:
                    printed.take(_POLL_SECONDS)
                else:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL_SECONDS)
                watch.look()
        finally:
            _kill_group(process)
            code = process.wait()
            printed.drain()
    return Ending(watch.reason, code, watch.memory_bytes)


def _unbuffered_writer(file: IO[bytes]) -> Callable[[bytes], object]:
    """Return a writer that does not buffer, since others follow the log while the script runs."""

    def write(chunk: bytes) -> None:
        file.write(chunk)
        file.flush()

    return write


@dataclass(slots=True)
class _Watch:
    """Polls the clock, memory and cancellation, and stops the process."""

    process: Process
    limits: Limits
    is_cancelled: Callable[[], bool]
    reason: Reason = "ended"
    memory_bytes: int = 0
    _started: float = field(default_factory=time.monotonic)
    _looked: float = 0.0
    _killed_at: float | None = None

    def look(self) -> None:
        now = time.monotonic()
        if self._killed_at is not None:
            if now > self._killed_at:
                _kill_group(self.process)
            return
        if self.limits.timeout_seconds is not None and now - self._started > self.limits.timeout_seconds:
            self._stop("timed_out", now + _STOP_SECONDS)
        elif now - self._looked > _LOOK_SECONDS:
            self._looked = now
            if self.is_cancelled():
                self._stop("cancelled", now + _STOP_SECONDS)
            elif self._takes_too_much():
                # It would continue reading while it cleans up.
                self._stop("memory", now)

    def _takes_too_much(self) -> bool:
        if self.limits.memory_bytes is None:
            return False
        found = group_memory_bytes(self.process.pid)
        if found <= self.limits.memory_bytes:
            return False
        self.memory_bytes = found
        return True

    def _stop(self, reason: Reason, killed_at: float) -> None:
        self.reason = reason
        self._killed_at = killed_at
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)


def group_memory_bytes(pid: int) -> int:
    """Return the memory of a process and all below it; pages that several share are counted once."""
    import psutil  # noqa: PLC0415 - only a limit needs it

    total = 0
    with contextlib.suppress(psutil.Error):
        leader = psutil.Process(pid)
        for child in (leader, *leader.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                found = child.memory_full_info()
                total += getattr(found, "pss", found.rss)
    return total


class _Output:
    """Reads a pipe: bytes for the log, lines for followers."""

    def __init__(
        self,
        pipe: int,
        write: Callable[[bytes], object],
        on_line: Callable[[str], None],
        mask: SecretMask,
    ) -> None:
        self._mask = mask
        self._pipe = pipe
        self._write = write
        self._on_line = on_line
        self._left = LOG_BYTES_MAX
        self._begun = b""
        self.is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pipe)

    def take(self, seconds: float) -> None:
        """Read what there is, waiting for it up to ``seconds``."""
        ready, _, _ = select.select([self._pipe], [], [], seconds)
        if not ready:
            return
        chunk = os.read(self._pipe, _READ_BYTES)
        self.is_open = bool(chunk)
        shown = self._mask.take(chunk)
        self._log(shown)
        self._say(shown)

    def drain(self) -> None:
        """Read the rest; a process that left the group may hold the pipe open for ever."""
        until = time.monotonic() + _DRAIN_SECONDS
        while self.is_open and time.monotonic() < until:
            self.take(_POLL_SECONDS)
        rest = self._mask.take(b"")  # what a process that left the group may go on with
        self._log(rest)
        self._say(rest)
        if self._begun:
            self._line(self._begun)

    def _log(self, chunk: bytes) -> None:
        if self._left <= 0:
            return
        self._write(chunk[: self._left])
        self._left -= len(chunk)
        if self._left <= 0:
            self._write(b"\n[the log ends here: the script printed more than 64 MiB]\n")

    def _say(self, chunk: bytes) -> None:
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._begun) > _LINE_BYTES_MAX:
            line, self._begun = self._begun, b""
            self._line(line)

    def _line(self, line: bytes) -> None:
        # An overlong line is delivered in pieces.
        for begin in range(0, max(1, len(line)), _LINE_BYTES_MAX):
            piece = line[begin : begin + _LINE_BYTES_MAX]
            self._on_line(piece.decode("utf-8", "replace").rstrip("\r"))


def _kill_group(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
