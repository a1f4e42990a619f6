"""Runs a callback in its own thread unless cancelled before its deadline.

Most transactions end within milliseconds, and starting a thread for each would cost more than much of
their work. One thread of the process waits for all deadlines and does nothing else: each due callback
runs in its own thread, so a slow one delays no other.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

_NEVER = float("inf")


class DelayedTaskScheduler:
    """Starts a thread for each task that is not cancelled before its deadline. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[object, tuple[float, Callable[[], None]]] = {}
        self._looks_again = 0.0
        self._shortest_seconds = _NEVER
        self._thread: threading.Thread | None = None

    def begin(self, seconds: float, work: Callable[[], None]) -> object:
        """Schedule ``work`` for its own thread in ``seconds``; returns the token for ``end``."""
        token = object()
        due = time.monotonic() + seconds
        with self._changed:
            self._due[token] = (due, work)
            self._shortest_seconds = min(self._shortest_seconds, seconds)
            if self._thread is None:
                self._looks_again = due
                self._thread = threading.Thread(target=self._run, name="freezeframe-late", daemon=True)
                self._thread.start()
            elif due < self._looks_again:
                self._changed.notify()
        return token

    def end(self, token: object) -> None:
        """Cancel a task that has not started; a running one continues."""
        with self._changed:
            self._due.pop(token, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                ripe = [token for token, (due, _) in self._due.items() if due <= now]
                works = [self._due.pop(token)[1] for token in ripe]
            for work in works:
                threading.Thread(target=work, name="freezeframe-lease", daemon=True).start()
            with self._changed:
                # Polling is cheaper than a wake-up for every new task.
                idle = time.monotonic() + self._shortest_seconds
                self._looks_again = min((due for due, _ in self._due.values()), default=idle)
                self._changed.wait(max(0.0, self._looks_again - time.monotonic()))


_of_process: dict[int, DelayedTaskScheduler] = {}


def late_threads() -> DelayedTaskScheduler:
    """The process's scheduler; a forked process has none of its parent's threads and gets its own."""
    process = os.getpid()
    found = _of_process.get(process)
    return _of_process.setdefault(process, DelayedTaskScheduler()) if found is None else found
