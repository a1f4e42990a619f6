"""Concurrent reads, reads ahead of their use, and failures of reads that pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from freezeframe.errors import FreezeframeError
from freezeframe.storage import Storage
from freezeframe.storage.local import failure

# Reads of many files at once, and ahead of their use.

# Runs storage calls concurrently on remote storage, sequentially on a local disk.

_THREADS_MAX = 32
_P = TypeVar("_P")
_T = TypeVar("_T")
_local: WeakKeyDictionary[Storage, bool] = WeakKeyDictionary()


def run_concurrently(storage: Storage, *calls: Callable[[], Any]) -> tuple[Any, ...]:
    """Return the result of each call, in order; returns or raises after all calls have ended.

    On a local disk, where a thread costs more than a call, they run in sequence up to the first error;
    else all of them run, and the first error in order is raised.
    """
    if len(calls) <= 1 or is_local(storage):
        return tuple(call() for call in calls)
    with ThreadPoolExecutor(min(_THREADS_MAX, len(calls)), "freezeframe-storage") as pool:
        futures = [pool.submit(call) for call in calls]
    return tuple(future.result() for future in futures)


def map_concurrently(read: Callable[[_P], _T], parts: Sequence[_P], threads_max: int) -> list[_T]:
    """``read`` of each part, in order, on up to ``threads_max`` threads; raises the first error.

    The threads have the caller's context, its progress for example. After an error nothing new begins.
    """
    if len(parts) <= 1:
        return [read(part) for part in parts]
    with ThreadPoolExecutor(min(threads_max, len(parts)), "freezeframe-read") as pool:
        contexts = [copy_context() for _ in parts]
        return list(pool.map(lambda context, part: context.run(read, part), contexts, parts))


def is_local(storage: Storage) -> bool:
    """Return whether the storage is a local disk; cached, since the check is a call itself."""
    found = _local.get(storage)
    if found is None:
        found = _local[storage] = storage.local_path("") is not None
    return found


# Concurrent reads of files of a remote storage before their use.

HELD_BYTES_MAX = 8 << 20


class ReadAhead:
    """A storage's files, of which some were fetched whole; on a local disk nothing is fetched.

    The first read of a whole fetched file releases it.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._held: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def fetch(self, files: Sequence[tuple[str, int]]) -> None:
        """Read those of the files (name, bytes) that are not held at once, the first that fit.

        A failed read is repeated, and raises, at its use.
        """
        with self._lock:
            room = HELD_BYTES_MAX - sum(len(item) for item in self._held.values())
            missing = [(name, size) for name, size in files if name not in self._held]
        if len(missing) <= 1 or is_local(self._storage):
            return
        calls: list[Callable[[], None]] = []
        for name, size in missing:
            if size <= room:
                calls.append(partial(self._fetch, name))
                room -= size
        run_concurrently(self._storage, *calls)

    def _fetch(self, name: str) -> None:
        try:
            content = self._storage.read(name)
        except Exception:  # noqa: BLE001 - the read that needs it raises it again, where it has a meaning
            return
        with self._lock:
            self._held[name] = content

    def forget(self) -> None:
        """Release fetched files that were not read."""
        with self._lock:
            self._held = {}

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        with self._lock:
            held = self._held.get(name)
            if held is not None and offset == 0 and (length is None or length >= len(held)):
                del self._held[name]
        if held is None:
            return self._storage.read(name, offset, length)
        return held[offset:] if length is None else held[offset : offset + length]

    def local_path(self, name: str) -> Path | None:
        """See ``Storage.local_path``."""
        return self._storage.local_path(name)


# Distinguishes transient read failures from damaged data.
#
# An operating system error has a number: a disk, limit or permission stopped the read, and the same
# call may succeed later. An error without a number comes from a parser that has read the bytes.


def passing_failure(name: str, error: BaseException) -> FreezeframeError | None:
    """Return the typed error for a transient failure to read ``name``; None for damage or a missing file."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return failure("read", name, error)
    return None


@contextmanager
def reads_of(name: str) -> Iterator[None]:
    """Convert read failures in the block to typed errors."""
    try:
        yield
    except OSError as error:
        passing = passing_failure(name, error)
        if passing is None:
            raise
        raise passing from error
