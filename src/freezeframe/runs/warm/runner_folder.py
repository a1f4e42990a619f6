"""The runner's folder, named by a hash of the environment that its children inherit.

A forked process has the imports of the runner, so code, interpreter and the variables that Python and its
libraries read at their start must be the same. It gets all else (other variables, the working folder, open
files) when it is forked.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from freezeframe.engine.daemon import folder_name, is_alive, retire, state_folder
from freezeframe.runs.warm.messages import receive, require_own_user, send

SOCKET_NAME = "socket"
LOCK_NAME = "runner.lock"
_DAEMON = "runner"
_POLL_SECONDS = 0.02
# Linux stores a socket's path in 108 bytes, including the terminating zero.
_SOCKET_PATH_MAX = 107
_STARTUP_PREFIXES = (
    "PYTHON",
    "LD_",
    "LC_",
    "LANG",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "NUMEXPR_",
    "ARROW_",
    "JE_",
    "MALLOC_",
    "MIMALLOC_",
    "GLIBC_",
    "GRPC_",
)
# The environment variables that a forked process applies itself.
_MADE_UP_FOR = ("PYTHONUNBUFFERED",)
# As `runs.process.environment` passes them to scripts; a test compares.
_INHERITED = frozenset(
    {
        *("LANG", "LANGUAGE", "LD_LIBRARY_PATH"),
        *("PYTHONPATH", "PYTHONWARNINGS", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"),
    }
)


class RunnerSettings(Protocol):
    """The settings that identify a runner and limit its idle time: a part of `Settings`."""

    @property
    def state_dir(self) -> Path:
        """The folder that has the runner's socket."""

    @property
    def runner_idle_seconds(self) -> int:
        """The idle time after which the runner ends; 0: there is no runner."""

    @property
    def script_variables(self) -> str:
        """Names, separated by commas."""


def is_supported() -> bool:
    """Return whether this system has peer credentials of sockets and file descriptors of processes."""
    return hasattr(socket, "SO_PEERCRED") and hasattr(os, "pidfd_open")


def startup_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python reads only when a process starts."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_STARTUP_PREFIXES) and name not in _MADE_UP_FOR
    }


def runner_variables(environment: Mapping[str, str], settings: RunnerSettings) -> dict[str, str]:
    """Return the startup variables of a user that the scripts of jobs inherit; a runner has the same ones."""
    named = {name.strip() for name in settings.script_variables.split(",")} | _INHERITED
    found = startup_variables(environment)
    return {name: value for name, value in found.items() if name in named or name.startswith("LC_")}


def runner_folder(settings: RunnerSettings, environment: Mapping[str, str]) -> Path:
    """Return the folder of the runner of a user with this environment, created with mode 0700."""
    identity = {
        "code": _code(),
        "environment": runner_variables(environment, settings),
        "idle": settings.runner_idle_seconds,
    }
    return state_folder(settings.state_dir, folder_name(_DAEMON, identity))


def stop_runners(settings: RunnerSettings, seconds_max: float) -> None:
    """Ask all of this user's runners to end, and wait up to ``seconds_max`` for those that no job uses.

    Without the wait the next command would reach one that is about to end, and leave none to those after it.
    """
    folders = [*settings.state_dir.glob(f"{_DAEMON}-*")]
    retire(*folders)
    # A question also wakes a runner, which else sees once a second whether it was asked to end.
    ending = [folder for folder in folders if not (ask(folder, {"about": True}, 1.0) or {}).get("jobs")]
    deadline = time.monotonic() + seconds_max
    while any(is_alive(folder / LOCK_NAME) for folder in ending) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _code() -> list[object]:
    """Return a digest of the installed code: of freezeframe's files and of the installed packages."""
    package = Path(__file__).parents[2]
    installed = [Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    return [
        sys.executable,
        sys.version,
        max(
            os.stat(os.path.join(folder, name)).st_mtime_ns  # noqa: PTH116, PTH118 - half the time of a Path
            for folder, _, names in os.walk(package)
            for name in names
            if name.endswith(".py")
        ),
        [folder.stat().st_mtime_ns for folder in installed if folder.exists()],
    ]


def connect(folder: Path, timeout_seconds: float) -> socket.socket:
    """Return a connection to the runner of this folder."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_seconds)
        with _short(folder) as path:
            connection.connect(path)
        require_own_user(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def listen(folder: Path) -> socket.socket:
    """Return a listening socket in this folder; one that a dead runner left is removed."""
    (folder / SOCKET_NAME).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short(folder) as path:
        listener.bind(path)
    listener.listen(socket.SOMAXCONN)
    return listener


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """Yield the socket's path, by way of an open folder where the whole one is too long for the system."""
    whole = str(folder / SOCKET_NAME)
    if len(os.fsencode(whole)) <= _SOCKET_PATH_MAX:
        yield whole
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)


def ask(folder: Path, message: Mapping[str, object], timeout_seconds: float) -> dict[str, Any] | None:
    """Return the runner's answer to a question, None if there is no runner."""
    try:
        with closing(connect(folder, timeout_seconds)) as connection:
            send(connection, message)
            return receive(connection)[0]
    except OSError:
        return None
