"""The thread pool for background updates, shared by all logs of a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

THREADS_MAX = 4

_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


def run_in_background(work: Callable[[], None]) -> Future[None]:
    """Run ``work`` on the pool of at most ``THREADS_MAX`` threads that all logs share.

    A forked process has a pool of its own.
    """
    with _lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            _pools.clear()
            pool = _pools[os.getpid()] = ThreadPoolExecutor(THREADS_MAX, "freezeframe-state-update")
    return pool.submit(work)
