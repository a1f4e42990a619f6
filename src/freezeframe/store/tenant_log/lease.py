"""Lease of an open transaction, whose files ``gc`` retains.

``_freezeframe/staging/<writeId>.json`` is written before anything is staged and removed after the
roll-forward. All files of a transaction have its ``writeId`` in the name: ``<table>/<writeId>-…/``
and ``_freezeframe/blobs/<writeId>/``. A missing heartbeat proves nothing (clocks differ, machines sleep), so
``gc`` first commits a ``revoke``, after which the transaction can no longer commit.
"""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from freezeframe.clock import now_ms
from freezeframe.errors import FreezeframeError, OutcomeUnknown
from freezeframe.storage import Storage
from freezeframe.store.model.directory import STAGING_FOLDER, lease_file

_logger = logging.getLogger(__name__)
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class LiveLease:
    """A lease read from storage: its owner and its last renewal in ms."""

    write_id: str
    heartbeat_ms: int
    job_id: str | None = None


class Lease:
    """Lease of one transaction; nothing is written before ``hold``."""

    def __init__(self, storage: Storage, write_id: str, job_id: str | None, heartbeat_seconds: float) -> None:
        self._storage = storage
        self._name = lease_file(write_id)
        self._record = {
            "writeId": write_id,
            "jobId": job_id,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "folders": [f"*/{write_id}-*", f"_freezeframe/blobs/{write_id}"],
        }
        self._seconds = heartbeat_seconds
        self._stop = threading.Event()
        self._heartbeat: object | None = None

    def hold(self) -> None:
        """Write the lease and start its heartbeat, unless already done."""
        if self._heartbeat is not None:
            return
        try:
            self._renew()
        except OutcomeUnknown:
            # The last writer does not matter, so an uncertain write is repeated.
            self._renew()
        self._heartbeat = late_threads().begin(self._seconds, self._beat)

    def release(self) -> None:
        """End the heartbeat and delete the lease; never raises, since gc would delete it too."""
        self.stop()
        if self._heartbeat is None:
            return
        try:
            self._storage.delete(self._name, durable=False)
        except FreezeframeError:
            _logger.warning("The lease %s was not removed; gc will do it", self._name, exc_info=True)

    def stop(self) -> None:
        """End the heartbeat and retain the lease: gc decides about the protected files."""
        self._stop.set()
        if self._heartbeat is not None:
            late_threads().end(self._heartbeat)

    def _beat(self) -> None:
        while not self._stop.is_set():
            try:
                self._renew()
            except FreezeframeError:
                _logger.warning("The lease %s was not renewed", self._name, exc_info=True)
            self._stop.wait(self._seconds)

    def _renew(self) -> None:
        # The lease protects the files of a live process from gc. A power loss ends that process too.
        self._storage.replace(self._name, self._content(), durable=False)

    def _content(self) -> bytes:
        record: dict[str, Any] = {**self._record, "heartbeat": now_ms()}
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def live_leases(storage: Storage) -> tuple[LiveLease, ...]:
    """Return all leases; an unreadable lease has the modification time of its file."""
    return tuple(
        _live_lease(storage, status.name, status.modified_ms)
        for status in storage.list_from(STAGING_FOLDER)
        if status.name.endswith(_SUFFIX)
    )


def _live_lease(storage: Storage, name: str, modified_ms: int) -> LiveLease:
    write_id = name.removesuffix(_SUFFIX)
    try:
        record = json.loads(storage.read(f"{STAGING_FOLDER}/{name}"))
        return LiveLease(write_id, int(record["heartbeat"]), record.get("jobId"))
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        return LiveLease(write_id, modified_ms)


# Most transactions end within milliseconds, so a thread for each would be expensive. One thread waits for
# all deadlines; each due callback runs in its own thread, so a slow callback delays no other.

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
        """Schedule ``work`` for its own thread in ``seconds``; return the token for ``end``."""
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
        """Cancel a task that has not started; a running task continues."""
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
    """Return the process's scheduler; a forked process has none of its parent's threads and gets its own."""
    process = os.getpid()
    found = _of_process.get(process)
    return _of_process.setdefault(process, DelayedTaskScheduler()) if found is None else found
