"""Probes a storage for the required guarantees before the first commit.

All commits depend on one guarantee: of any number of writers that create the same name, exactly
one succeeds. Some network file systems and object stores claim it and break it, and so lose commits
silently. The probe lets writers race for names and checks the results.
"""

from __future__ import annotations

import errno
import hashlib
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from freezeframe.errors import FreezeframeError, OutcomeUnknown, StorageUnavailable, StorageUnsuitable
from freezeframe.storage.base import Storage

WRITERS = 8
ROUNDS = 4
_DAILY_ROUNDS = 2
_DAY_SECONDS = 24 * 60 * 60

# Error numbers of link(2) on a file system without hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


def require_atomic_create(
    storage: Storage, folder: str, *, writers: int = WRITERS, rounds: int = ROUNDS
) -> None:
    """Race ``writers`` threads for each of ``rounds`` new names in ``folder``; the files are deleted after.

    Raises:
        StorageUnsuitable: a race had no winner or several, or the winner's bytes were lost, or the
            file system has no hard links; the message has the observation.
        StorageUnavailable: the storage is not writable.
    """
    for _ in range(rounds):
        name = f"{folder}/probe-{uuid.uuid4().hex}" if folder else f"probe-{uuid.uuid4().hex}"
        try:
            _race(storage, name, writers)
        finally:
            _tidy(storage, name)


def require_atomic_create_daily(storage: Storage, folder: str, memory: Path) -> None:
    """``require_atomic_create``, at most once a day for each machine and store.

    The folder ``memory`` caches the result. A store that is not writable now passes: it can lose
    nothing, and a later write raises its own error.

    Raises:
        StorageUnsuitable: as ``require_atomic_create``.
    """
    remembered = memory / hashlib.sha256(storage.root.encode()).hexdigest()[:32]
    oldest = time.time() - _DAY_SECONDS
    if remembered.exists() and remembered.stat().st_mtime > oldest:
        return
    try:
        require_atomic_create(storage, folder, rounds=_DAILY_ROUNDS)
    except (StorageUnavailable, OutcomeUnknown):
        return
    with suppress(OSError):
        memory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in memory.iterdir():
            if old.stat().st_mtime < oldest:
                old.unlink(missing_ok=True)
        remembered.touch()


def _race(storage: Storage, name: str, writers: int) -> None:
    contents = [f"writer {number} {uuid.uuid4().hex}".encode() for number in range(writers)]
    together = threading.Barrier(writers)
    with ThreadPoolExecutor(writers) as pool:
        answers = list(pool.map(lambda content: _create(storage, name, content, together.wait), contents))
    winners = [content for content, won in zip(contents, answers, strict=True) if won]
    found = storage.read(name)
    if len(winners) != 1:
        raise _unsuitable(
            storage, f"Of {writers} writers that created the same name, {len(winners)} succeeded."
        )
    if found != winners[0]:
        raise _unsuitable(storage, "The bytes of the writer that was told it had created the name are gone.")
    folder, _, own = name.rpartition("/")
    if own not in [status.name for status in storage.list_from(folder, own)]:
        raise _unsuitable(storage, "A file was created and is not listed.")


def _create(storage: Storage, name: str, content: bytes, wait: Callable[[], object]) -> bool:
    wait()
    try:
        storage.put_if_absent(name, content)
    except FileExistsError:
        return False
    except OutcomeUnknown as unknown:
        try:
            return storage.read(name) == content
        except FileNotFoundError:
            raise StorageUnavailable(
                f"Nothing could be written to {storage.root}.",
                cause=unknown.cause,
                remedy="Check that the bucket is there, and the credentials.",
            ) from unknown
    except StorageUnavailable as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_LINKS:
            raise _unsuitable(storage, f"The file system has no hard links: {error.cause}") from error
        raise
    return True


def _tidy(storage: Storage, name: str) -> None:
    try:
        storage.delete(name)
    except FreezeframeError:
        # A few left-over bytes are harmless; they must not mask the probe's result.
        return


def _unsuitable(storage: Storage, seen: str) -> StorageUnsuitable:
    return StorageUnsuitable(
        f"Commits would be lost on {storage.root}.",
        cause=seen,
        remedy="Use a local disk, or an object store with conditional writes (If-None-Match).",
    )
