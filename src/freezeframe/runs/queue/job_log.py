"""Logs and lists of queued jobs."""

from __future__ import annotations

import codecs
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from freezeframe.control.job import FinalStatus, QueuedJob
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import RUNNING_MAX, Submission
from freezeframe.errors import FreezeframeError
from freezeframe.runs.job_root import JobRoot, latest_root
from freezeframe.runs.queue.attempt import FINAL_STATUS, Heartbeat, Times, attempt_token, unexpected_error
from freezeframe.runs.request import RunOutcome, RunRequest, parse_run_request, request_folder, request_tenant
from freezeframe.settings import Settings
from freezeframe.storage.safe_open import open_regular
from freezeframe.store.model.directory import job_roots_folder

# The files that a queued job left in its root, and its log while it grows.
#
# A script may have put a link or a pipe in place of any of them: they are opened beneath the folder of
# roots.

_CHUNK_BYTES = 64 * 1024
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of a job: the folder that is known, and the file's name beneath it."""

    folder: Path
    name: str

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open it as ``open_regular`` does."""
        return open_regular(self.folder, self.name)

    def is_readable(self) -> bool:
        """Return whether there is a regular file."""
        try:
            with self.open():
                return True
        except OSError:
            return False


def log_file(job: QueuedJob, settings: Settings) -> JobFile | None:
    """Return the log of the job's last attempt, on this machine; None where there is none (yet)."""
    return _job_file(job, settings, lambda root: root.log)


def notebook_file(job: QueuedJob, settings: Settings) -> JobFile | None:
    """Return the executed notebook of the job's last attempt, on this machine; None where there is none."""
    named = (job.outcome or {}).get("notebook")
    if not isinstance(named, str) or not Path(named).name:
        return None
    return _job_file(job, settings, lambda root: root.path / Path(named).name)


def _job_file(job: QueuedJob, settings: Settings, path_of: Callable[[JobRoot], Path]) -> JobFile | None:
    """Return a file in the job's root: of the root that the outcome names, or of the job's newest root.

    A row of the queue cannot name another place than the tenant's folder of roots or the request's root.
    """
    request = parse_run_request(job.request)
    tenant = request_tenant(request, settings)
    if tenant is None:
        return None
    roots = job_roots_folder(tenant.context.storage, settings)
    named = (job.outcome or {}).get("job_root")
    root = latest_root(roots, job.job_id)
    if job.status != "running" and isinstance(named, str):
        if request.job_root is not None and Path(named) == request.job_root.resolve():
            roots, root = request.job_root.parent, JobRoot(request.job_root)
        elif Path(named).parent in {roots, roots.resolve()}:
            root = JobRoot(roots / Path(named).name)
    path = None if root is None else path_of(root)
    found = None if path is None else JobFile(roots, path.relative_to(roots).as_posix())
    return found if found is not None and found.is_readable() else None


def follow_log(current: Callable[[], QueuedJob], settings: Settings) -> Iterator[str]:
    """Yield the text of a job's log as it grows, until the job has ended; a new attempt begins anew.

    ``current`` gives the job as it is now.
    """
    file: JobFile | None = None
    offset = 0
    decoder = _decoder()
    while True:
        # The job is read before its log: what was written before the end is read then.
        job = current()
        found = log_file(job, settings)
        if found != file:
            file, offset, decoder = found, 0, _decoder()
        for chunk in _chunks(file, offset):
            offset += len(chunk)
            yield decoder.decode(chunk)
        if job.is_final:
            return
        time.sleep(_LOOK_SECONDS)


def _chunks(file: JobFile | None, offset: int) -> Iterator[bytes]:
    if file is None:
        return
    try:
        with file.open() as log:
            log.seek(offset)
            while chunk := log.read(_CHUNK_BYTES):
                yield chunk
    except OSError:
        return  # cleaned away while it was read, or replaced by a link


def _decoder() -> codecs.IncrementalDecoder:
    # A script may print anything, and a chunk may end within a letter.
    return codecs.getincrementaldecoder("utf-8")("replace")


# Lists a ``freezeframe run`` as a job of the control database.
#
# The process that runs it has the job's lease, as a worker has. If it is killed, a worker finds the lease
# expired and ends the job as ``dead``.

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
    """Call ``run(request, is_cancelled)`` at once, as a listed job of the queue; return its outcome.

    A queue that cannot be reached, or that has a job of that id which waits, runs, is held or has succeeded,
    does not keep the script from running: it is run without being listed.
    """
    job = _begin(queue, request, settings, times)
    if job is None:
        outcome = run(request, is_cancelled)
        if outcome.status == "held":
            _tell_held(queue, request, outcome)
        return outcome
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


def _tell_held(queue: JobQueue, request: RunRequest, outcome: RunOutcome) -> None:
    """Record what is held now: the hold that the queue knows may have ended, by an erasure for example."""
    try:
        job = queue.get(request.environment, request.tenant, request.job_id)
        queue.settle(job, "held", json.dumps(outcome.to_json(), default=str))
    except FreezeframeError as error:
        _logger.warning("The held job %s was not recorded: %s", request.job_id, error)


def _end(queue: JobQueue, job: QueuedJob, status: FinalStatus, outcome: Mapping[str, Any]) -> None:
    try:
        queue.finish(job, status, json.dumps(outcome, default=str))
    except FreezeframeError as error:
        _logger.warning("The end of job %s was not recorded: %s", job.job_id, error)
