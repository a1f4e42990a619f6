"""Probes a storage for the required guarantees before the first commit.

All commits depend on one guarantee: of any number of writers that create the same name, exactly
one succeeds. Some network file systems and object stores claim it and break it, and so lose commits
silently. The probe lets writers race for names and checks the results.
"""

import errno
import hashlib
import json
import math
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from freezeframe.errors import FreezeframeError, OutcomeUnknown, StorageUnavailable, StorageUnsuitable
from freezeframe.progress import wait_for
from freezeframe.storage.base import Storage

WRITERS = 8
QUICK_ROUNDS = 2
_BROKEN_SHARE = 0.1
_MISSED_MAX = 1e-6
LONG_ROUNDS = math.ceil(math.log(_MISSED_MAX) / math.log1p(-_BROKEN_SHARE))
"""Races after which a store that breaks one in ten is missed once in a million probes: 132."""
_RACES_AT_ONCE = 8
_PASS_SECONDS = 30 * 24 * 60 * 60

# Error numbers of link(2) on a file system without hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})

_proven: set[str] = set()
"""Buckets that passed in this process, by access and name."""


def require_atomic_create(
    storage: Storage, folder: str, *, writers: int = WRITERS, rounds: int = QUICK_ROUNDS
) -> None:
    """Race ``writers`` threads for each of ``rounds`` new names in ``folder``, then delete the files."""

    def race(_: int) -> None:
        if failed.is_set():
            return
        name = f"{folder}/probe-{uuid.uuid4().hex}" if folder else f"probe-{uuid.uuid4().hex}"
        try:
            _race(storage, name, writers)
        except BaseException:
            failed.set()
            raise
        finally:
            with suppress(FreezeframeError):  # a few left-over bytes must not mask the probe's result
                storage.delete(name)

    failed = threading.Event()
    at_once = min(_RACES_AT_ONCE, max(1, rounds // _RACES_AT_ONCE))
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(race, range(rounds)))


def is_trusted(storage: Storage) -> bool:
    """Return whether the storage is a disk, or an object store that is known to create atomically."""
    return bool(getattr(storage, "is_trusted", True))


def rounds_for(storage: Storage) -> int:
    """Return the races that a storage has to pass before it is believed."""
    return QUICK_ROUNDS if is_trusted(storage) else LONG_ROUNDS


def require_proven(storage: Storage, folder: str) -> None:
    """``require_atomic_create`` with the rounds that the storage needs; a bucket once for each process."""
    bucket = _bucket(storage)
    if bucket in _proven:
        return
    require_atomic_create(storage, folder, rounds=rounds_for(storage))
    if bucket:
        _proven.add(bucket)


def require_remembered(storage: Storage, folder: str, memory: Path, *, is_asked_again: bool = False) -> None:
    """``require_proven`` for a bucket, whose outcome is kept in a file of the folder ``memory``.

    A pass counts for 30 days, a failure until ``is_asked_again``. A store that is not writable now passes:
    it can lose nothing, and a later write raises its own error.
    """
    bucket, file = (
        _bucket(storage),
        memory / f"{hashlib.sha256(_bucket_name(storage).encode()).hexdigest()[:32]}.json",
    )
    if not is_asked_again:
        try:
            found = json.loads(file.read_text())
            known = {
                "rounds": int(found.get("rounds", 0)),
                "failure": found.get("failure"),
                "time": found["time"],
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            known = {}
        if known.get("failure"):
            raise _unsuitable(storage, f"{known['failure']} It was seen when the bucket was opened before.")
        if known.get("rounds", 0) >= rounds_for(storage) and known["time"] > time.time() - _PASS_SECONDS:
            if bucket:
                _proven.add(bucket)
            return
    _proven.discard(bucket)
    wait_for(f"Testing the store of {storage.root} for lost writes (once for each machine)")
    try:
        require_proven(storage, folder)
    except StorageUnsuitable as error:
        _remember(file, {"failure": error.cause})
        raise
    except (StorageUnavailable, OutcomeUnknown):
        if is_asked_again:
            raise
        return
    finally:
        wait_for("")
    _remember(file, {"rounds": rounds_for(storage)})


def _bucket(storage: Storage) -> str:
    """What names a bucket in this process; empty for a storage that was not opened by a URL."""
    access = getattr(storage, "access", "")
    return f"{access} {_bucket_name(storage)}" if access else ""


def _bucket_name(storage: Storage) -> str:
    return urlsplit(storage.root).netloc or storage.root


def _remember(file: Path, outcome: Mapping[str, Any]) -> None:
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        new.write_text(json.dumps({**outcome, "time": int(time.time())}))
        new.replace(file)


def _race(storage: Storage, name: str, writers: int) -> None:
    contents = [f"writer {number} {uuid.uuid4().hex}".encode() for number in range(writers)]
    together = threading.Barrier(writers)

    def create(content: bytes) -> bool:
        together.wait()
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

    with ThreadPoolExecutor(writers) as pool:
        answers = list(pool.map(create, contents))
    winners = [content for content, won in zip(contents, answers, strict=True) if won]
    found = storage.read(name)
    if len(winners) != 1:
        raise _unsuitable(
            storage, f"Of {writers} writers that created the same name, {len(winners)} succeeded."
        )
    if found != winners[0]:
        raise _unsuitable(storage, "The storage acknowledged a create, and its bytes are gone.")
    folder, _, own = name.rpartition("/")
    if own not in [status.name for status in storage.list_from(folder, own)]:
        raise _unsuitable(storage, "A file was created and is not listed.")


def _unsuitable(storage: Storage, seen: str) -> StorageUnsuitable:
    return StorageUnsuitable(
        f"Commits would be lost on {storage.root}.",
        cause=seen,
        remedy="Use a local disk, or an object store with conditional writes (If-None-Match). Once the store "
        "is mended, run freezeframe doctor: it asks again.",
    )
