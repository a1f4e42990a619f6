"""The worker: claims jobs, runs some of them at once, and lets due schedules make new ones.

Any number of workers share a queue. A worker that is to stop finishes its jobs or gives them back. The jobs
of a killed worker go to the first worker that finds their leases expired.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import time
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal

from freezeframe.control.database import ControlDatabase
from freezeframe.control.job import QueuedJob
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import Schedules
from freezeframe.errors import InvalidOption, TenantNotFound, TryAgain
from freezeframe.observation import log_context, observe
from freezeframe.runs.queue.attempt import JobAttempt, RunFunction, Times, notify
from freezeframe.settings import Settings

_logger = logging.getLogger(__name__)
_LOOK_SECONDS = 0.25  # how soon a request to stop is noticed

Until = Literal["stopped", "empty", "one"]


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Options of a worker: concurrency, poll interval in seconds, leases, grace period.

    ``grace_seconds`` is how long jobs may go on after the first wish to stop.
    """

    concurrency: int = 1
    poll_seconds: float = 1.0
    grace_seconds: float = 20.0
    times: Times = field(default_factory=Times)

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.poll_seconds <= 0 or self.grace_seconds < 0:
            raise InvalidOption(
                "A worker runs at least one job at once, and looks for jobs in times greater than 0.",
                remedy="Check concurrency, poll and grace.",
            )


class Worker:
    """A worker of a queue; ``work`` is its main loop.

    ``on_change`` is called with each job that begins or ends here, ``tidy`` at each look for jobs. ``stop``
    and ``give_up`` may be called from a signal handler: they only set a moment.
    """

    def __init__(
        self,
        database: ControlDatabase,
        run: RunFunction,
        settings: Settings,
        options: WorkerOptions | None = None,
        on_change: Callable[[QueuedJob], None] = lambda _: None,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._queue = JobQueue(database)
        self._schedules = Schedules(database)
        self._run = run
        self._settings = settings
        self._options = options or WorkerOptions()
        self._on_change = on_change
        self._tidy = tidy
        self._stops_at: float | None = None

    def stop(self) -> None:
        """Claim no more jobs; running ones may finish within the grace, then they are given back."""
        if self._stops_at is None:
            self._stops_at = time.monotonic() + self._options.grace_seconds

    def give_up(self) -> None:
        """Claim no more jobs, and give back the running ones."""
        self._stops_at = time.monotonic()

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._stops_at is not None

    def work(self, until: Until = "stopped") -> int:
        """Work until ``stop``; with ``empty`` until no job can be had; with ``one`` for at most one.

        ``empty`` waits for jobs that run elsewhere too: their worker may be dead. Return how many attempts
        were made here.
        """
        claimed = 0
        running: set[Future[None]] = set()
        with ThreadPoolExecutor(self._options.concurrency, "freezeframe-job") as pool:
            try:
                while not self.is_stopping:
                    try:
                        self._schedules.submit_due()
                    except TryAgain as error:
                        _logger.warning("Due schedules were not looked for: %s", error)
                    self._tidy()
                    found = self._claim(1 if until == "one" else self._options.concurrency - len(running))
                    running |= {pool.submit(self._attempt, job) for job in found}
                    claimed += len(found)
                    if until == "one" or (until == "empty" and not running and not self._is_awaited()):
                        break
                    running = self._wait(running)
                while running:
                    running = _wait_for_one(running, _LOOK_SECONDS)
            except BaseException:
                # The pool waits for its jobs, which would otherwise run to their end.
                self.give_up()
                raise
        return claimed

    def _claim(self, count: int) -> list[QueuedJob]:
        """Claim at most ``count`` jobs; none if the queue cannot be reached, which is tried again."""
        found: list[QueuedJob] = []
        try:
            while len(found) < count and not self.is_stopping:
                job = self._queue.claim(self.name, self._options.times.lease_seconds)
                if job is None:
                    break
                found.append(job)
        except TryAgain as error:
            _logger.warning("No job was claimed: %s", error)
        return found

    def _is_awaited(self) -> bool:
        """Return whether a job runs elsewhere: its worker may be dead, and its lease not over yet."""
        try:
            return self._queue.counts()["running"] > 0
        except TryAgain as error:
            _logger.warning("The queue was not looked at: %s", error)
            return True

    def _wait(self, running: set[Future[None]]) -> set[Future[None]]:
        """Wait for a job's end, the next poll, or a stop."""
        # Spreads the polls of workers that started together.
        end = time.monotonic() + self._options.poll_seconds * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
        while not self.is_stopping and (left := end - time.monotonic()) > 0:
            if not running:
                time.sleep(min(left, _LOOK_SECONDS))
                continue
            before, running = running, _wait_for_one(running, min(left, _LOOK_SECONDS))
            if len(running) < len(before):
                break
        return running

    def _attempt(self, job: QueuedJob) -> None:
        with log_context(
            environment=job.environment, tenant=job.tenant, job=job.job_id, attempt=job.attempts
        ):
            self._on_change(job)
            attempt = JobAttempt(
                self._queue, job, self._run, self._settings, self._options.times, self._must_stop
            )
            with observe("job") as operation:
                ended = attempt.perform()
                operation.outcome = "lost" if ended is None else ended.status
            fields: dict[str, Any] = {"seconds": round(operation.seconds, 3)}
            version = None if ended is None or ended.outcome is None else ended.outcome.get("tenant_version")
            _logger.info(
                "The attempt ended: %s",
                operation.outcome,
                extra=fields if version is None else {**fields, "version": version},
            )
            if ended is not None:
                self._on_change(ended)
                notify(self._settings.notify_url, ended)
                self._end_schedule_of_gone_tenant(ended)

    def _end_schedule_of_gone_tenant(self, ended: QueuedJob) -> None:
        """Remove the schedule of a tenant that was deleted by a program without the queue."""
        error = (ended.outcome or {}).get("error") or {}
        if not (ended.schedule and ended.incarnation and error.get("code") == TenantNotFound.code):
            return
        try:
            if self._schedules.end_with_tenant(ended):
                _logger.warning("Schedule %s of %s ended with its tenant", ended.schedule, ended.tenant)
        except TryAgain as failed:
            _logger.warning("Schedule %s was not removed, its next job will: %s", ended.schedule, failed)

    def _must_stop(self) -> bool:
        return self._stops_at is not None and time.monotonic() >= self._stops_at


def _wait_for_one(running: set[Future[None]], seconds: float) -> set[Future[None]]:
    """Wait until one has ended or the time is over; return those that still run, raise the error of one."""
    done, others = wait(running, timeout=seconds, return_when=FIRST_COMPLETED)
    for item in done:
        item.result()
    return others
