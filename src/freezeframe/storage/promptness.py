"""What is known or at hand is given at once; who would have to wait says so instead of waiting.

A service answers many requests on one thread and leaves what takes time to others. To hand a request over
costs more than many answers do, so these are tried first where nothing is waited for: no disk, no
database, no lock that somebody holds while they wait themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_of_thread = threading.local()


class WouldWait(Exception):
    """It cannot be done at once; nothing of it was done. Never leaves a block of ``at_once``'s caller."""


@contextmanager
def at_once() -> Iterator[None]:
    """In the block, whatever this thread would wait for raises ``WouldWait``."""
    _of_thread.is_asked = True
    try:
        yield
    finally:
        _of_thread.is_asked = False


def is_at_once() -> bool:
    """Whether this thread must not wait now."""
    return getattr(_of_thread, "is_asked", False)


def about_to_wait() -> None:
    """To be called before anything that may take its time.

    Raises:
        WouldWait: this thread must not wait now.
    """
    if is_at_once():
        raise WouldWait


@contextmanager
def held(lock: threading.Lock | threading.RLock) -> Iterator[None]:
    """Hold the lock in the block; who must not wait gives up where somebody else holds it.

    Raises:
        WouldWait: see ``about_to_wait``.
    """
    if not lock.acquire(blocking=not is_at_once()):
        raise WouldWait
    try:
        yield
    finally:
        lock.release()
