"""Supervisor process of a warm Spark server: starts it, and stops it when it is idle.

It runs detached from the process that started it, holds `server.lock` for its whole life (which
proves that it is alive without process ids), and polls whether a client holds `clients.lock`.
Neither outlives the other: a guard ends Java after the watcher's death, and the watcher exits after
Java's.

`engine.server` runs it with the server's folder as its only argument. It uses the standard library alone, and
of the package the daemon's module, so it starts fast and stays small.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from freezeframe.engine.daemon import IdleTime, try_lock

LAST_USED = "last-used"
"""A file whose time of change is when the last client left."""
DATABASES = "databases"
"""A folder of files, each named for the database of a job, whose processes hold a lock of it."""
DATABASES_VARIABLE = "FREEZEFRAME_JOB_DATABASES"
"""The variable that names that folder to the server's Python workers."""

DEFAULT_CLOSED = "default.closed"
"""A file in the folder of a server in whose database ``default`` no table can be saved."""

_POLL_SECONDS = 0.1
_REMAINS_SECONDS = 1.0
_STOP_SECONDS = 60
_NICEST = 19

# The package may lie in site-packages, which is left out: what is appended to the path hides nothing.
_RUN = (
    "import sys; sys.path.append(sys.argv.pop(1)); from freezeframe.engine.server.watcher import main; main()"
)
# A guard reads a pipe from the watcher, which ends with the watcher, however the watcher ends.
_GUARD = 'read -r _; kill -9 "$1"'
# The guarded command waits for a line that the watcher writes once the guard runs, so a watcher that
# dies between the two starts leaves nothing behind.
_GUARDED = 'read -r _ && exec "$@" </dev/null'


def command(folder: Path) -> list[str]:
    """Return the command line of the watcher of a folder: isolated, and without site-packages."""
    return [sys.executable, "-I", "-S", "-c", _RUN, str(Path(__file__).parents[3]), str(folder)]


def whole_lines(classes: Path) -> bytes:
    """Return the complete lines of a list of classes: the server keeps appending to it."""
    return b"".join(classes.read_bytes().rpartition(b"\n")[:2])


def watch(folder: Path) -> None:
    """Run the server that ``launch.json`` describes until it is idle, retired, or dead."""
    with (folder / "server.lock").open("a") as life, (folder / "clients.lock").open("a") as clients:
        fcntl.flock(life, fcntl.LOCK_EX)
        launch = json.loads((folder / "launch.json").read_text())
        (folder / "launch.json").unlink()
        server, guard = _start(folder, launch)
        sharing = _ClassSharing(launch["class_sharing"])
        remains = _JobRemains(folder, launch["clear_remains"])
        try:
            if _announce(folder, launch, server):
                _wait_until_idle(folder, launch["idle_seconds"], server, clients, (sharing, remains))
        finally:
            (folder / "address.json").unlink(missing_ok=True)
            # From here on, a new client starts its own server and need not wait for this one.
            fcntl.flock(clients, fcntl.LOCK_UN)
            fcntl.flock(life, fcntl.LOCK_UN)
            sharing.give_up()
            remains.give_up()
            server.terminate()
            try:
                server.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            _dismiss(guard)
            shutil.rmtree(launch["remains"], ignore_errors=True)


class _ClassSharing:
    """The archive of loaded classes that makes later starts fast: made once, when no job runs.

    Java writes it from the list of classes that this server has loaded, in a process of the lowest
    priority, which goes on when a job comes. It appears under its name when it is whole.
    """

    def __init__(self, order: dict[str, Any] | None) -> None:
        self._order = order
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None
        self._is_looked_at = False

    def attend(self, idle_seconds: float) -> None:
        """Begin if the server was idle for long enough; finish a process that has ended."""
        if self._process:
            self._finish()
        elif self._order and idle_seconds < self._order["after_idle_seconds"]:
            self._is_looked_at = False
        elif self._order and not self._is_looked_at:
            self._is_looked_at = True  # once per idle time: the list is long, and grows only with work
            self._begin(self._order)

    def give_up(self) -> None:
        """Cancel the running step and delete its files."""
        self._order = None
        if self._process:
            self._process.kill()
            self._process.wait()
            self._finish()

    def _begin(self, order: dict[str, Any]) -> None:
        classes = Path(order["classes"])
        listed = whole_lines(classes) if classes.exists() else b""
        if f"\n{order['needed_class']}\n".encode() not in listed:
            return  # no job has moved rows yet, and their classes are most of the archive
        self._lock = Path(order["archive"]).with_suffix(".lock").open("a")
        # Another server's watcher may create the same archive, or have created it.
        if not try_lock(self._lock) or Path(order["archive"]).exists():
            self._let_go()
            return
        Path(order["classes_whole"]).write_bytes(listed)
        with Path(order["log"]).open("wb") as log:
            self._process, self._guard = _start_guarded(order["command"], log, preexec_fn=_stand_back)

    def _finish(self) -> None:
        """Once Java has ended, publish its archive, or give up without a retry."""
        if self._process is None or self._guard is None or self._process.poll() is None:
            return
        _dismiss(self._guard)
        if self._order and self._process.returncode == 0:
            with contextlib.suppress(FileNotFoundError):
                Path(self._order["draft"]).replace(self._order["archive"])
        self._process = None
        self._let_go()

    def _let_go(self) -> None:
        self._order = None
        if self._lock:
            self._lock.close()


class _JobRemains:
    """The remains of killed jobs in the server's catalog, cleared by a process that has Spark's client."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self._folder = folder
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._looked = 0.0

    def attend(self, _idle_seconds: float) -> None:
        """Look, once a second, whether there is a job whose processes have all ended."""
        if self._process and self._process.poll() is None:
            return
        now = time.monotonic()
        if now - self._looked < _REMAINS_SECONDS:
            return
        self._looked = now
        if any(map(_is_left, (self._folder / DATABASES).glob("*"))):
            # Retried with the next check, not at once.
            self._looked += 10 * _REMAINS_SECONDS
            with (self._folder / "watcher.log").open("ab") as log:
                self._process = subprocess.Popen(  # noqa: S603 - our own command line
                    self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )

    def give_up(self) -> None:
        """End the running cleanup: the catalog ends with the server."""
        if self._process:
            self._process.kill()
            self._process.wait()


def _is_left(file: Path) -> bool:
    try:
        with file.open() as lock:
            return try_lock(lock)
    except FileNotFoundError:
        return False


def _stand_back() -> None:
    """Take the lowest priority among processes, and among their sessions where Linux groups them so."""
    os.setpriority(os.PRIO_PROCESS, 0, _NICEST)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_NICEST))


def _start_guarded(
    command: list[str], log: IO[bytes], **options: Any
) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    """Start a process, and the guard that kills it when this process is gone; return both."""
    process = subprocess.Popen(  # noqa: S603 - our own command line
        ["/bin/sh", "-c", _GUARDED, "guarded", *command],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        start_new_session=True,
        **options,
    )
    guard = subprocess.Popen(  # noqa: S603 - a fixed command
        ["/bin/sh", "-c", _GUARD, "guard", str(process.pid)], stdin=subprocess.PIPE, start_new_session=True
    )
    if process.stdin:
        with contextlib.suppress(BrokenPipeError), process.stdin as begin:
            begin.write(b"\n")
    return process, guard


def _dismiss(guard: subprocess.Popen[bytes]) -> None:
    # Killed rather than terminated: on SIGTERM it would kill a process id that may be another's by now.
    guard.kill()
    guard.wait()
    if guard.stdin:
        guard.stdin.close()


def _start(folder: Path, launch: dict[str, Any]) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    # A new file, because a server that is still stopping keeps writing to its own.
    (folder / "server.log").unlink(missing_ok=True)
    with (folder / "server.log").open("xb") as log:
        options_of_start = {"cwd": launch["working_folder"], "env": launch["environment"], "umask": 0o077}
        return _start_guarded(launch["command"], log, **options_of_start)


def _announce(folder: Path, launch: dict[str, Any], server: subprocess.Popen[bytes]) -> bool:
    """Write the address once the log contains the port; False if the server died before."""
    pattern = re.compile(launch["started_pattern"])
    while not (started := pattern.search((folder / "server.log").read_text(errors="replace"))):
        if server.poll() is not None:
            return False
        time.sleep(_POLL_SECONDS)
    address = {
        "port": int(started[1]),
        "token": launch["token"],
        "start": launch["start"],
        "process": server.pid,
        "watcher": os.getpid(),
    }
    (folder / "about.json").write_text(json.dumps(launch["about"]))
    (folder / LAST_USED).touch()
    draft = folder / "address.json.new"
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(address))
    draft.rename(folder / "address.json")
    return True


def _wait_until_idle(
    folder: Path,
    idle_seconds: float,
    server: subprocess.Popen[bytes],
    clients: IO[str],
    chores: tuple[_ClassSharing, _JobRemains],
) -> None:
    """Return when the server died, or when it is to stop: then the clients' lock is held."""
    idle = IdleTime(folder, idle_seconds)
    was_used = False
    while server.poll() is None:
        is_used = not try_lock(clients)
        if is_used:
            idle.begin()
        elif idle.is_over():
            return
        else:
            fcntl.flock(clients, fcntl.LOCK_UN)
        if was_used and not is_used:
            (folder / LAST_USED).touch()
        was_used = is_used
        for chore in chores:
            chore.attend(idle.seconds)
        time.sleep(_POLL_SECONDS)


def main() -> None:
    """Watch over the server of the folder that the command line names; SIGTERM stops it in order."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    watch(Path(sys.argv[1]))
