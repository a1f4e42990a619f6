"""A daemon: a process with a folder, by which others of this user find it, that outlives who starts it.

The warm Spark server and the warm runner are daemons. A folder is named for all that its daemon is started
with, so that other settings mean another daemon. In it: ``NAME.lock``, which the daemon NAME holds while it
lives; ``start.lock``, held while it is started; its log; and what it is told: ``retire`` (end as soon as
nobody uses it) and ``idle-seconds`` (how long to stay without use).

The watcher of a server imports this without site-packages, so the standard library has to do.
"""

import contextlib
import fcntl
import os
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

IDLE_SECONDS = "idle-seconds"
_RETIRE = "retire"
_POLL_SECONDS = 0.02

_Found = TypeVar("_Found")


def private_folder(path: Path) -> Path:
    """Create the folder if absent, and check that no other user can write into it."""
    from freezeframe.errors import SetupError  # noqa: PLC0415 - a watcher is told its folder
    from freezeframe.storage.local import make_private  # noqa: PLC0415 - the same

    make_private(path)
    status = path.stat()
    if status.st_uid != os.getuid():
        raise SetupError(
            f"The folder {path} belongs to another user, and a token would be kept in it.",
            remedy="Set FREEZEFRAME_STATE_DIR to a folder of your own.",
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        path.chmod(0o700)
    return path


def state_folder(state: Path, name: str) -> Path:
    """Return a folder of what this user's processes keep, created with mode 0700 as the one above it."""
    return private_folder(private_folder(state) / name)


def folder_name(daemon: str, identity: Mapping[str, object]) -> str:
    """Return the name of the folder of a daemon that is started with all this."""
    import hashlib  # noqa: PLC0415 - a watcher is told its folder
    import json  # noqa: PLC0415 - the same

    return f"{daemon}-{hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]}"


def try_lock(file: IO[str], operation: int = fcntl.LOCK_EX) -> bool:
    """Take the lock of a file unless another process holds it; return whether it was taken."""
    try:
        fcntl.flock(file, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_alive(lock: Path) -> bool:
    """Return whether the daemon lives whose lock this is; that takes no process id."""
    with lock.open("a") as life:
        return not try_lock(life, fcntl.LOCK_SH)


class StartLimit:
    """How long the start of a daemon may take; ``failure`` makes the error that says why it failed."""

    def __init__(self, seconds: float, named: str, failure: Callable[[str], Exception]) -> None:
        self._deadline = time.monotonic() + seconds
        self._named = named
        self.failure = failure

    def is_over(self) -> bool:
        """Return whether the time is over."""
        return time.monotonic() > self._deadline

    def require(self) -> None:
        """Check that there is time left."""
        if self.is_over():
            raise self.failure(f"it took longer than {self._named}")


def found_or_started(
    folder: Path, find: Callable[[], _Found | None], start: Callable[[], _Found], limit: StartLimit
) -> _Found:
    """Return what is found of a daemon, started if there is none; safe from any number of processes."""
    if found := find():
        return found
    with (folder / "start.lock").open("a") as lock:
        while not try_lock(lock):
            limit.require()
            time.sleep(_POLL_SECONDS)
        # The previous holder of the lock may have started it.
        return find() or start()


@contextlib.contextmanager
def started(
    folder: Path, command: Sequence[str], log: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon in its folder, in a session of its own; the block waits until it is ready."""
    for name in (_RETIRE, IDLE_SECONDS):
        (folder / name).unlink(missing_ok=True)
    with (folder / log).open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command line
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=folder,
            env=environment,
        )
    try:
        yield process
    finally:
        # It outlives this process on purpose, so Python's warning about that is suppressed.
        process.returncode = 0


def wait_until_ready(
    process: subprocess.Popen[bytes], find: Callable[[], _Found | None], limit: StartLimit
) -> _Found:
    """Return what is found of a daemon as soon as it is ready."""
    while not (found := find()):
        if process.poll() is not None:
            raise limit.failure("it ended")
        limit.require()
        time.sleep(_POLL_SECONDS)
    return found


def retire(*folders: Path) -> None:
    """Ask the daemons of these folders, where there are any, to end as soon as nobody uses them."""
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            (folder / _RETIRE).touch()


def retire_others(folder: Path) -> None:
    """Ask those to end that the daemon of this folder replaces: the memory suffices for one of a kind."""
    daemon = folder.name.partition("-")[0]
    retire(*(other for other in folder.parent.glob(f"{daemon}-*") if other != folder))


def is_retired(folder: Path) -> bool:
    """Return whether the daemon of this folder was asked to end."""
    return (folder / _RETIRE).exists()


class IdleTime:
    """How long a daemon has not been used, and whether it is therefore to end."""

    def __init__(self, folder: Path, seconds_max: float) -> None:
        self._folder = folder
        self._seconds_max = seconds_max
        self.begin()

    def begin(self) -> None:
        """Count from now: it is used, or was until now."""
        self._last_used = time.monotonic()

    @property
    def seconds(self) -> float:
        """The time since its last use."""
        return time.monotonic() - self._last_used

    def is_over(self) -> bool:
        """Return whether it was retired, its folder is gone, or it was idle for as long as it may be.

        How long that is can have been changed since the start.
        """
        if is_retired(self._folder) or not self._folder.exists():
            return True
        try:
            return self.seconds >= float((self._folder / IDLE_SECONDS).read_text())
        except (FileNotFoundError, ValueError):
            return self.seconds >= self._seconds_max
