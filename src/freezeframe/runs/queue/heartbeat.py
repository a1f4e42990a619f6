"""Heartbeat of a claimed job: a thread that renews the lease and receives cancellations."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

from freezeframe.control.job import QueuedJob
from freezeframe.control.queue import JobQueue, LeaseState
from freezeframe.errors import FreezeframeError

_logger = logging.getLogger(__name__)


class Heartbeat:
    """Renews a job's lease as long as the ``with`` block lasts.

    A queue that cannot be reached is asked again at the next beat: whether the lease was lost meanwhile is
    the queue's to say, and a commit that comes too late is refused by the tenant's log.
    """

    def __init__(self, queue: JobQueue, job: QueuedJob, lease_seconds: float, beat_seconds: float) -> None:
        self._queue = queue
        self._job = job
        self._lease_seconds = lease_seconds
        self._beat_seconds = beat_seconds
        self._stop = threading.Event()
        self._state: LeaseState = "cancel" if job.cancel_requested else "held"
        self._thread = threading.Thread(target=self._beat, name="freezeframe-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def state(self) -> LeaseState:
        """The job's state as the queue last reported it."""
        return self._state

    def wait(self, seconds: float) -> None:
        """Wait while the lease is renewed."""
        self._stop.wait(seconds)

    def _beat(self) -> None:
        while self._state != "lost" and not self._stop.wait(self._beat_seconds):
            try:
                self._state = self._queue.heartbeat(self._job, self._lease_seconds)
            except FreezeframeError:
                _logger.warning("The lease of job %s was not renewed", self._job.job_id, exc_info=True)
