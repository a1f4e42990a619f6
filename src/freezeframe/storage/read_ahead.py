"""Concurrent reads, reads ahead of their use, and failures of reads that pass."""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from freezeframe.errors import FreezeframeError, VersionNotFound
from freezeframe.storage import Storage
from freezeframe.storage.local import failure

_THREADS_MAX = 32
_CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")
_P = TypeVar("_P")
_T = TypeVar("_T")
_local: WeakKeyDictionary[Storage, bool] = WeakKeyDictionary()

# Kept, since to start a thread takes longer than a storage in the same place answers.
_ALL_THREADS_MAX = 128
_workers = ThreadPoolExecutor(_ALL_THREADS_MAX, "freezeframe-storage")
# A forked process has no threads but the one that forked, and locks in any state.
os.register_at_fork(after_in_child=partial(_workers.__init__, _ALL_THREADS_MAX, "freezeframe-storage"))  # type: ignore[misc]


def run_concurrently(storage: Storage, *calls: Callable[[], Any]) -> tuple[Any, ...]:
    """Return the result of each call, in order; returns or raises after all calls have ended.

    On a local disk, where a thread costs more than a call, they run in sequence up to the first error;
    else all of them run, and the first error in order is raised.
    """
    if len(calls) <= 1 or is_local(storage):
        return tuple(call() for call in calls)
    return tuple(_shared(calls, _THREADS_MAX, ends_at_error=False))


def map_concurrently(read: Callable[[_P], _T], parts: Sequence[_P], threads_max: int) -> list[_T]:
    """``read`` of each part, in order, on up to ``threads_max`` threads; raises the first error.

    The threads have the caller's context, its progress for example. After an error nothing new begins.
    """
    if len(parts) <= 1:
        return [read(part) for part in parts]
    calls = [partial(copy_context().run, read, part) for part in parts]
    return _shared(calls, threads_max, ends_at_error=True)


def _shared(calls: Sequence[Callable[[], _T]], threads_max: int, *, ends_at_error: bool) -> list[_T]:
    """Return what the calls return, or raise the first error in order, after all that began have ended.

    The caller's thread takes calls as the others do, so it is never held up because no thread is free, or
    because the system, or the end of the process, lets none begin.
    """
    futures: list[Future[_T]] = [Future() for _ in calls]
    waiting = deque(zip(futures, calls, strict=True))

    def take() -> None:
        with suppress(IndexError):  # no call is left
            while True:
                future, call = waiting.popleft()
                if future.set_running_or_notify_cancel() and not _settle(future, call) and ends_at_error:
                    _cancel(futures)

    try:
        with suppress(RuntimeError):
            for _ in range(min(threads_max, len(calls)) - 1):
                _workers.submit(take)
        take()
        wait(futures)
    except BaseException:
        _cancel(futures)
        wait([future for future in futures if not future.cancelled()])
        raise
    failed = next((future for future in futures if not future.cancelled() and future.exception()), None)
    if failed is not None:  # its error, also where an earlier call was cancelled because of it
        failed.result()
    return [future.result() for future in futures]


def _settle(future: Future[_T], call: Callable[[], _T]) -> bool:
    """Carry out the call; return whether it returned."""
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - the caller raises it once the others have ended
        future.set_exception(error)
        return False
    return True


def _cancel(futures: Sequence[Future[Any]]) -> None:
    """Let no call begin that has not begun."""
    for future in futures:
        future.cancel()


@cache
def processors() -> int:
    """Return the number of processors that this process may use, at least 1: fewer, in a container."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # without a limit there is no file, or a word
        quota, period = map(int, _CGROUP_LIMIT.read_text().split())
        own = min(own, math.ceil(quota / period))
    return max(1, own)


def is_local(storage: Storage) -> bool:
    """Return whether the storage is a local disk; cached, since the check is a call itself."""
    found = _local.get(storage)
    if found is None:
        found = _local[storage] = storage.local_path("") is not None
    return found


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


Deleted = Callable[[Storage, str], VersionNotFound | None]
"""Returns the error of a file that was deleted with the versions that needed it; None: of another file."""

# Neither a table's log nor Spark knows which versions are kept: who deletes files of the others does, here.
_deleted: list[Deleted] = []


def explain_missing_files(deleted: Deleted) -> None:
    """Ask ``deleted`` about every data file that is missing, before the file counts as damage."""
    _deleted.append(deleted)


def deletion_of(storage: Storage, name: str) -> VersionNotFound | None:
    """Return the error of a missing file that was deleted with its versions; None: it should be there."""
    return next(filter(None, (deleted(storage, name) for deleted in _deleted)), None)
