"""Runs storage calls concurrently on remote storage, sequentially on a local disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from freezeframe.storage import Storage

_THREADS_MAX = 32
_P = TypeVar("_P")
_T = TypeVar("_T")
_local: WeakKeyDictionary[Storage, bool] = WeakKeyDictionary()


def run_concurrently(storage: Storage, *calls: Callable[[], Any]) -> tuple[Any, ...]:
    """The result of each call, in order; returns or raises after all calls have ended.

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
    """Whether the storage is a local disk; cached, since the check is a call itself."""
    found = _local.get(storage)
    if found is None:
        found = _local[storage] = storage.local_path("") is not None
    return found
