"""Status of this user's warm servers (running, users, idle since), and stopping them.

This module neither starts servers nor loads Spark: the status comes from files in the servers' folders.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from freezeframe.engine.server.server import living_address
from freezeframe.engine.server.watcher import IDLE_SECONDS, LAST_USED
from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings

_POLL_SECONDS = 0.05
_LOCKS = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A running server. Times are seconds since 1970, sizes bytes.

    ``clients`` is how many processes hold it, None where the system does not tell; ``idle_seconds`` is 0
    while somebody does. ``memory_bytes`` is its share of the machine's memory, None where that is not told.
    """

    folder: Path
    master: str
    spark_memory: str
    java: str
    port: int
    process: int
    watcher: int
    memory_bytes: int | None
    started_at: float
    clients: int | None
    idle_seconds: float
    is_retiring: bool

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return {**asdict(self), "folder": str(self.folder), "log": str(self.log)}

    @property
    def log(self) -> Path:
        """Its log."""
        return self.folder / "server.log"


def standings(settings: Settings) -> list[ServerStatus]:
    """The servers of this user that run, the newest first."""
    found = (_standing(folder) for folder in settings.state_dir.glob("spark-*") if folder.is_dir())
    return sorted((item for item in found if item), key=lambda item: item.started_at, reverse=True)


def keep_idle(folder: Path, seconds: int) -> None:
    """Let the server in ``folder`` stay for so long without a job, whatever it was started with."""
    if seconds < 1:
        raise InvalidOption(
            f"A server cannot be idle for {seconds} seconds.", remedy="Pass a number of seconds from 1 on."
        )
    (folder / IDLE_SECONDS).write_text(str(seconds))


def stop(server: ServerStatus, wait_seconds: float, *, at_once: bool = False) -> bool:
    """Stop a server when it is unused, or at once; returns whether it stopped within the wait."""
    if at_once:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.watcher, signal.SIGTERM)
    else:
        (server.folder / "retire").touch()
    deadline = time.monotonic() + wait_seconds
    while _is_alive(server.process):
        is_waited_for = not at_once and _clients(server.folder)
        if is_waited_for or time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def follow_lines(log: Path, *, follow: bool) -> Iterator[str]:
    """The lines of a log; with ``follow`` those to come as well, also of the next server's."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(log.open(errors="replace"))
        while True:
            yield from file
            if not follow:
                return
            time.sleep(_POLL_SECONDS)
            with contextlib.suppress(FileNotFoundError):
                if log.stat().st_ino != os.fstat(file.fileno()).st_ino:
                    file = stack.enter_context(log.open(errors="replace"))


def _standing(folder: Path) -> ServerStatus | None:
    try:
        address = living_address(folder)
        if address is None:
            return None
        about = json.loads((folder / "about.json").read_text())
        clients = _clients(folder)
        return ServerStatus(
            folder=folder,
            master=about["master"],
            spark_memory=about["spark_memory"],
            java=about["java"],
            port=address.port,
            process=address.process,
            watcher=address.watcher,
            memory_bytes=_memory_bytes(address.process),
            started_at=about["started_at"],
            clients=clients,
            idle_seconds=0.0 if clients else time.time() - (folder / LAST_USED).stat().st_mtime,
            is_retiring=(folder / "retire").exists(),
        )
    except FileNotFoundError:
        return None  # it stopped during the check


def _memory_bytes(process: int) -> int | None:
    """The proportional set size (PSS) of the process."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _clients(folder: Path) -> int | None:
    """The number of holders of the clients' lock, from the system's list of locks by inode."""
    if not _LOCKS.exists():
        return None
    number = f":{(folder / 'clients.lock').stat().st_ino}"
    lines = (line.split() for line in _LOCKS.read_text().splitlines())
    return sum("READ" in line and any(word.endswith(number) for word in line) for line in lines)
