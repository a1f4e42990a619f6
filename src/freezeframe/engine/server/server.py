"""The user's warm Spark server: found or started once, held while in use; its status, and its end.

It is a daemon (`engine.daemon`), whose folder has besides ``clients.lock``, which every user of the server
holds, shared, and the address with the token (mode 0600). ``watcher`` runs the server itself, and holds the
daemon's lock. Nothing here loads Spark.
"""

import contextlib
import fcntl
import json
import math
import os
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from freezeframe.engine import daemon
from freezeframe.engine.configuration import server_configuration
from freezeframe.engine.java import Java, find_java, spark_jars, spark_version
from freezeframe.engine.server import watcher
from freezeframe.engine.server.launch import class_archive, worker_python, write_launch
from freezeframe.errors import EngineUnavailable, InvalidOption
from freezeframe.settings import Settings
from freezeframe.version import __version__

Progress = Callable[[str], None]

_PACKAGE = Path(__file__).resolve().parents[2]
_PRIVATE = "private-"
_LISTEN_SECONDS = 5
_POLL_SECONDS = 0.05
_LOG_LINES_MAX = 20
# What Ivy writes into the server's log when it begins to resolve spark.jars.packages, and when all are there.
_FETCHING, _FETCHED = b":: resolving dependencies ::", b":: retrieving ::"
_TOLD_AFTER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Address:
    """Port of a server on this machine, and its authentication token."""

    port: int
    token: str = field(repr=False)
    start: str
    """Names this start of the server: another start, another name."""
    process: int
    """Process id of its Java."""
    watcher: int
    """Process id of the watcher, which ends Java first when it is ended."""

    @property
    def url(self) -> str:
        """The URL for Spark's client, token included."""
        # Spark sends a token without TLS to a server called localhost only.
        return f"sc://localhost:{self.port}/;token={self.token}"


@dataclass(slots=True)
class Attachment:
    """A hold on the warm server, which prevents its idle stop while it is open."""

    address: Address
    folder: Path
    _clients: IO[str]

    def is_alive(self) -> bool:
        """Return whether the server that was found then still runs, and is held."""
        try:
            found = None if self._clients.closed else living_address(self.folder)
        except FileNotFoundError:
            return False  # the folder of a private server goes with it
        return found is not None and found.start == self.address.start

    def close(self) -> None:
        """Release the hold; the end of the process releases it as well."""
        self._clients.close()

    def log_tail(self) -> str:
        """Return the last lines of the server's log."""
        return _log_tail(self.folder)


# The newest hold of this process on a private server, by what the server was started with.
_private: dict[str, Attachment] = {}


class StartLimit(daemon.StartLimit):
    """How long the start of a server may take; while Spark fetches jars, each step of that counts anew."""

    def __init__(self, folder: Path, seconds: float, progress: Progress) -> None:
        super().__init__(seconds, "FREEZEFRAME_SPARK_START_SECONDS", self._start_error)
        self._folder, self._seconds, self._progress = folder, seconds, progress
        self._fetching_since: float | None = None
        self._size = -1

    def require(self) -> None:
        """Check that there is time left; give more for jars that are on their way."""
        with contextlib.suppress(FileNotFoundError):
            log = self._folder / "server.log"
            if (size := log.stat().st_size) != self._size:
                self._size = size
                self._look(log.read_bytes())
        super().require()

    def _look(self, log: bytes) -> None:
        now = time.monotonic()
        if _FETCHING not in log or _FETCHED in log:
            self._fetching_since = None
            return
        self._deadline = now + self._seconds
        if self._fetching_since is None:
            self._fetching_since = now
        elif now - self._fetching_since > _TOLD_AFTER_SECONDS:
            self._fetching_since = math.inf
            self._progress("Spark fetches jars (spark.jars.packages; once for each machine)")

    def _start_error(self, why: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"The local Spark server did not start: {why}.",
            cause=_log_tail(self._folder) or "Its log is empty.",
            remedy=f"The whole log is {self._folder / 'server.log'}.",
        )


def attach(settings: Settings, master: str, progress: Progress, *, is_private: bool = False) -> Attachment:
    """Hold the warm server for ``master``, started if there is none; safe from any number of processes.

    A private server is started for this process alone and stops as soon as the process lets go; what else
    the process holds meanwhile is the same one.
    """
    folder = _private_folder(settings, master) if is_private else server_folder(settings, master)
    limit = StartLimit(folder, settings.spark_start_seconds, progress)

    def start() -> Address:
        spark_jars()  # Java is required only where a Spark must be started
        java = find_java()
        progress("Starting Spark (once; later jobs find it running)")
        began = time.monotonic()
        is_private = folder.name.startswith(_PRIVATE)
        if not is_private:
            daemon.retire_others(folder)
        archive = class_archive(folder.parent, java)
        is_shared = archive.exists()
        try:
            address = _launch(folder, settings, master, java, archive, limit, is_private=is_private)
        except EngineUnavailable:
            # Java checks an archive only partly before use; a damaged one must never prevent a start.
            if not is_shared or limit.is_over():
                raise
            # That of an installation may be another user's: then each start fails once before it succeeds.
            with contextlib.suppress(OSError):
                archive.unlink(missing_ok=True)
            usable = None if archive.exists() else archive
            address = _launch(folder, settings, master, java, usable, limit, is_private=is_private)
        progress(f"Spark is up after {time.monotonic() - began:.1f} s")
        return address

    clients = (folder / "clients.lock").open("a")
    try:
        fcntl.flock(clients, fcntl.LOCK_SH)
        address = daemon.found_or_started(folder, lambda: living_address(folder), start, limit)
    except BaseException:
        clients.close()
        raise
    attachment = Attachment(address, folder, clients)
    if is_private:
        _private[_server_name(settings, master)] = attachment
    return attachment


def server_folder(settings: Settings, master: str) -> Path:
    """Return the folder of the server that these settings mean, created with mode 0700."""
    return daemon.state_folder(settings.state_dir, _server_name(settings, master))


def _server_name(settings: Settings, master: str) -> str:
    identity = {
        "configuration": server_configuration(settings, master),
        "pyspark": spark_version(),
        # Its Python workers have loaded the package: another one, or another version, needs others.
        "freezeframe": [__version__, str(_PACKAGE)],
        # All paths of one environment's Python count as the same.
        "python": worker_python(settings, master, sys.prefix),
        "environment": {name: os.environ.get(name, "") for name in ("JAVA_HOME", "SPARK_CONF_DIR")},
    }
    return daemon.folder_name("spark", identity)


def _private_folder(settings: Settings, master: str) -> Path:
    held = _private.get(_server_name(settings, master))
    if held is not None and held.is_alive() and held.folder.parent == settings.state_dir:
        return held.folder
    return daemon.state_folder(settings.state_dir, f"{_PRIVATE}{secrets.token_hex(8)}")


def living_address(folder: Path) -> Address | None:
    """Return the address of the server of a folder if its watcher lives and it listens.

    What dead ones left is not believed.
    """
    address = _address(folder) if daemon.is_alive(folder / "server.lock") else None
    # Java may have died before its watcher noticed.
    return address if address and _listens(address) else None


def _listens(address: Address) -> bool:
    """Return whether the server takes a connection and keeps it."""
    try:
        connection = socket.create_connection(("127.0.0.1", address.port), _LISTEN_SECONDS)
    except OSError:
        return False
    # The system takes connections for a Java that was killed until its memory is freed, and resets them then;
    # a server speaks first (RFC 9113, section 3.4), and a busy one later.
    with connection:
        try:
            return bool(connection.recv(1))
        except TimeoutError:
            return True
        except OSError:
            return False


def _address(folder: Path) -> Address | None:
    try:
        return Address(**json.loads((folder / "address.json").read_text()))
    except FileNotFoundError:
        return None


def _launch(
    folder: Path,
    settings: Settings,
    master: str,
    java: Java,
    archive: Path | None,
    limit: StartLimit,
    *,
    is_private: bool,
) -> Address:
    for remains in (*folder.glob("work-*"), folder / watcher.DATABASES):
        shutil.rmtree(remains, ignore_errors=True)
    sockets = (path.name for path in folder.glob(".*.sock"))
    for name in ("address.json", watcher.DEFAULT_CLOSED, *sockets):
        (folder / name).unlink(missing_ok=True)
    write_launch(folder, settings, master, java, archive, is_private=is_private)
    with daemon.started(folder, watcher.command(folder), "watcher.log") as process:
        try:
            return daemon.wait_until_ready(process, lambda: _address(folder), limit)
        except BaseException:
            process.terminate()
            raise


def _log_tail(folder: Path) -> str:
    lines: list[str] = []
    for name in ("server.log", "watcher.log"):
        with contextlib.suppress(FileNotFoundError):
            lines += (folder / name).read_text(errors="replace").splitlines()[-_LOG_LINES_MAX:]
    return "\n".join(lines)


_LOCKS = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A running server. Times are seconds since 1970, sizes bytes.

    ``clients`` is the number of processes that use it, None where the system does not say; ``idle_seconds``
    is 0 while there are any. ``memory_bytes`` is its share of the machine's memory, None if unknown.
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
        """Return all fields by name."""
        return {**asdict(self), "folder": str(self.folder), "log": str(self.log)}

    @property
    def log(self) -> Path:
        """Its log."""
        return self.folder / "server.log"


def running_servers(settings: Settings) -> list[ServerStatus]:
    """Return the servers of this user that run, the newest first."""
    found = (_status(folder) for folder in settings.state_dir.glob("spark-*") if folder.is_dir())
    return sorted((item for item in found if item), key=lambda item: item.started_at, reverse=True)


def keep_idle(folder: Path, seconds: int) -> None:
    """Let the server in ``folder`` stay for so long without a job, whatever it was started with."""
    if seconds < 1:
        raise InvalidOption(
            f"A server cannot be idle for {seconds} seconds.", remedy="Pass a number of seconds from 1 on."
        )
    (folder / daemon.IDLE_SECONDS).write_text(str(seconds))


def stop(server: ServerStatus, wait_seconds: float, *, at_once: bool = False) -> bool:
    """Stop a server when it is unused, or at once; returns whether it stopped within the wait."""
    if at_once:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.watcher, signal.SIGTERM)
    else:
        daemon.retire(server.folder)
    deadline = time.monotonic() + wait_seconds
    while _is_alive(server.process):
        is_waited_for = not at_once and _clients(server.folder)
        if is_waited_for or time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def follow_lines(log: Path, *, follow: bool) -> Iterator[str]:
    """Yield the lines of a log; with ``follow`` those to come as well, also of the next server's."""
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


def _status(folder: Path) -> ServerStatus | None:
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
            idle_seconds=0.0 if clients else time.time() - (folder / watcher.LAST_USED).stat().st_mtime,
            is_retiring=daemon.is_retired(folder),
        )
    except FileNotFoundError:
        return None  # it stopped during the check


def _memory_bytes(process: int) -> int | None:
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
    """Return the number of holders of the clients' lock, from the system's list of locks by inode."""
    if not _LOCKS.exists():
        return None
    number = f":{(folder / 'clients.lock').stat().st_ino}"
    lines = (line.split() for line in _LOCKS.read_text().splitlines())
    return sum("READ" in line and any(word.endswith(number) for word in line) for line in lines)
