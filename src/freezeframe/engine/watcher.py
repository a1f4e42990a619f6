"""The process that stands behind a warm Spark server: starts it, stops it when nobody needs it.

It runs detached from whoever asked for the server, holds `server.lock` for its whole life (so a
dead one is told from a living one without trusting process ids), and asks every moment whether a
client still holds `clients.lock`. Neither can outlive the other: a guard ends Java when the
watcher is gone, and the watcher leaves when Java is gone.

Run as a script by `engine.server` with the server's folder as its only argument. It uses the
standard library alone, so it starts fast and stays small.
"""

from __future__ import annotations

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

LAST_USED = "last-used"
"""A file whose time of change is when the last client left."""
IDLE_SECONDS = "idle-seconds"
"""A file that says otherwise than the launch how long the server may be idle."""

_POLL_SECONDS = 0.1
_STOP_SECONDS = 60

# The pipe to the guard ends with the watcher, however the watcher ends.
_GUARD = 'read -r _; kill -9 "$1"'


def watch(folder: Path) -> None:
    """Run the server that ``launch.json`` describes until it is idle, told to retire, or dead."""
    with (folder / "server.lock").open("a") as life, (folder / "clients.lock").open("a") as clients:
        fcntl.flock(life, fcntl.LOCK_EX)
        launch = json.loads((folder / "launch.json").read_text())
        (folder / "launch.json").unlink()
        server = _start(folder, launch)
        guard = subprocess.Popen(  # noqa: S603 - a fixed command
            ["/bin/sh", "-c", _GUARD, "guard", str(server.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            if _announce(folder, launch, server):
                _wait_until_idle(folder, launch["idle_seconds"], server, clients)
        finally:
            (folder / "address.json").unlink(missing_ok=True)
            # From here on a newcomer starts a server of its own and need not wait for this one.
            fcntl.flock(clients, fcntl.LOCK_UN)
            fcntl.flock(life, fcntl.LOCK_UN)
            _stop(server, launch)
            # The guard first: the process id it would kill is nobody's, or somebody else's, by now.
            guard.kill()
            guard.wait()
            shutil.rmtree(launch["remains"], ignore_errors=True)


def _start(folder: Path, launch: dict[str, Any]) -> subprocess.Popen[bytes]:
    # A new file: a server that is still stopping keeps writing into its own.
    (folder / "server.log").unlink(missing_ok=True)
    with (folder / "server.log").open("xb") as log:
        return subprocess.Popen(  # noqa: S603 - our own command line, from a folder of mode 0700
            launch["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=launch["work"],
            env=launch["environment"],
            start_new_session=True,
        )


def _announce(folder: Path, launch: dict[str, Any], server: subprocess.Popen[bytes]) -> bool:
    """Write the address once the log tells the port; False if the server died before."""
    pattern = re.compile(launch["started_pattern"])
    while not (told := pattern.search((folder / "server.log").read_text(errors="replace"))):
        if server.poll() is not None:
            return False
        time.sleep(_POLL_SECONDS)
    address = {
        "port": int(told[1]),
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
    folder: Path, idle_seconds: float, server: subprocess.Popen[bytes], clients: IO[str]
) -> None:
    """Return when the server died, or when it is to stop: then the clients' lock is held."""
    last_used = time.monotonic()
    was_used = False
    while server.poll() is None:
        is_used = not _lock_alone(clients)
        if is_used:
            last_used = time.monotonic()
        elif (folder / "retire").exists() or _is_over(folder, idle_seconds, last_used):
            return
        else:
            fcntl.flock(clients, fcntl.LOCK_UN)
        if was_used and not is_used:
            (folder / LAST_USED).touch()
        was_used = is_used
        time.sleep(_POLL_SECONDS)


def _is_over(folder: Path, idle_seconds: float, last_used: float) -> bool:
    """Whether it was idle for as long as it may be: as it was started, or as somebody has told since."""
    idle = time.monotonic() - last_used
    try:
        return idle >= float((folder / IDLE_SECONDS).read_text())
    except (FileNotFoundError, ValueError):
        return idle >= idle_seconds


def _lock_alone(clients: IO[str]) -> bool:
    try:
        fcntl.flock(clients, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(server: subprocess.Popen[bytes], launch: dict[str, Any]) -> None:
    """End Java; on its way out it writes the class archive that makes the next start fast."""
    server.terminate()
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    archive = Path(launch["archive"])
    draft = Path(launch["archive_draft"])
    # Killed while writing, Java leaves half an archive.
    if draft.exists() and server.returncode != -signal.SIGKILL:
        draft.replace(archive)
    draft.unlink(missing_ok=True)


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _leave)
    watch(Path(sys.argv[1]))
