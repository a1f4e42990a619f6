"""Lists a ``freezeframe run`` as a job of the control database.

The process that runs it has the job's lease, as a worker has one. If it is killed, a worker finds the lease
run out and ends the job as ``dead``.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from freezeframe.control.jobs.job import FinalStatus, QueuedJob
from freezeframe.control.jobs.queue import JobQueue
from freezeframe.control.jobs.submission import RUNNING_MAX, Submission
from freezeframe.errors import FreezeframeError
from freezeframe.runs.model.outcome import RunOutcome
from freezeframe.runs.model.request import RunRequest
from freezeframe.runs.model.tenants import request_folder
from freezeframe.runs.queue.attempt_token import attempt_token
from freezeframe.runs.queue.heartbeat import Heartbeat
from freezeframe.runs.queue.job_attempt import FINAL_STATUS, Times, unexpected_error
from freezeframe.settings import Settings

_logger = logging.getLogger(__name__)
# Longer than a worker's: no other worker waits for it, and a machine may be suspended for a while.
_TIMES = Times(lease_seconds=120.0)

Cancelled = Callable[[], bool]


def run_listed(
    queue: JobQueue,
    request: RunRequest,
    settings: Settings,
    run: Callable[[RunRequest, Cancelled], RunOutcome],
    is_cancelled: Cancelled,
    times: Times = _TIMES,
) -> RunOutcome:
    """The outcome of ``run(request, is_cancelled)``, which runs at once and is a job of the queue meanwhile.

    A queue that cannot be reached, or that has a job of that id which waits, runs or has succeeded, does not
    keep the script from running: it is run without being listed.
    """
    job = _begin(queue, request, settings, times)
    if job is None:
        return run(request, is_cancelled)
    with Heartbeat(queue, job, times.lease_seconds, times.beat_seconds) as heartbeat:
        try:
            outcome = run(
                replace(request, token=attempt_token(job, job.attempts)),
                lambda: is_cancelled() or heartbeat.state != "held",
            )
        except BaseException as error:
            known = error if isinstance(error, FreezeframeError) else unexpected_error(error)
            _end(queue, job, "failed", {"error": known.to_json()})
            raise
    _end(queue, job, FINAL_STATUS[outcome.status], outcome.to_json())
    return outcome


def _begin(queue: JobQueue, request: RunRequest, settings: Settings, times: Times) -> QueuedJob | None:
    try:
        submission = Submission(
            json.dumps(request.to_json()),
            request.environment,
            request.tenant,
            request.job_id,
            attempts_max=1,
            # A lane of its own: runs and the tenant's queued jobs do not wait for each other.
            lane=f"{request.environment}/{request.tenant}/run",
            running_max=RUNNING_MAX,
            incarnation=request_folder(request, settings) or "",
        )
        return queue.begin(submission, f"{socket.gethostname()}:{os.getpid()}", times.lease_seconds)
    except FreezeframeError as error:
        _logger.warning("The run is not listed among the jobs: %s", error)
        return None


def _end(queue: JobQueue, job: QueuedJob, status: FinalStatus, outcome: Mapping[str, Any]) -> None:
    try:
        queue.finish(job, status, json.dumps(outcome, default=str))
    except FreezeframeError as error:
        _logger.warning("The end of job %s was not taken: %s", job.job_id, error)
