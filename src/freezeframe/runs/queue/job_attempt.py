"""One attempt at a queued job, and the notification of its failure."""

from __future__ import annotations

import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from freezeframe.clock import rfc3339
from freezeframe.configuration.masking import SecretMask, secret_values
from freezeframe.control.job import FinalStatus, QueuedJob
from freezeframe.control.queue import JobQueue
from freezeframe.errors import (
    FixTheRequest,
    FreezeframeError,
    InvalidOption,
    ReportDamage,
    TenantNotFound,
    TryAgain,
    kinds_of,
)
from freezeframe.runs.model.outcome import RunOutcome
from freezeframe.runs.model.request import RunRequest, parse_run_request, request_folder, request_tenant
from freezeframe.runs.model.script_header import with_permitted_script
from freezeframe.runs.queue.attempt_token import attempt_token
from freezeframe.runs.queue.heartbeat import Heartbeat
from freezeframe.runs.queue.takeover import revoke
from freezeframe.settings import Settings
from freezeframe.store.transaction.job_status import find_committed_job

# One attempt of a claimed job: takeover, run, report to the queue.
#
# If another worker had the job before and fell silent, whatever it may still commit is made void first, by
# an entry in the tenant's log. Only then is the job run, under the same id: had the other one committed
# after all, the run is answered with that commit and does nothing.

_logger = logging.getLogger(__name__)
_WAITS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
FINAL_STATUS: dict[str, FinalStatus] = {
    "succeeded": "succeeded",
    "repeated": "succeeded",
    "failed": "failed",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
}


class RunFunction(Protocol):
    """Runs a request to its end; ``freezeframe.runs.running.run`` is the one."""

    def __call__(
        self,
        request: RunRequest,
        *,
        settings: Settings,
        on_line: Callable[[str], None] = ...,
        is_cancelled: Callable[[], bool] = ...,
    ) -> RunOutcome:
        """Run the job and return its outcome."""


@dataclass(frozen=True, slots=True)
class Times:
    """Duration of a lease and its renewal interval, in seconds."""

    lease_seconds: float = 30.0
    beat_seconds: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.beat_seconds * 2 <= self.lease_seconds:
            raise InvalidOption(
                f"A lease of {self.lease_seconds} s cannot be renewed every {self.beat_seconds} s.",
                remedy="Let the lease last at least two beats.",
            )


@dataclass(frozen=True, slots=True)
class JobAttempt:
    """A claimed job with all that its attempt needs.

    ``must_stop`` is asked again and again: once it says yes the run is ended and the job given back.
    """

    queue: JobQueue
    job: QueuedJob
    run: RunFunction
    settings: Settings
    times: Times
    must_stop: Callable[[], bool]

    def perform(self) -> QueuedJob | None:
        """Run the job, report its outcome, and return the job.

        Returns:
            None if it is another worker's by now, or could not be reported: then another one finds out.
        """
        job = self.job
        with Heartbeat(self.queue, job, self.times.lease_seconds, self.times.beat_seconds) as heartbeat:
            try:
                report = self._report(heartbeat)
            except FreezeframeError as error:
                _logger.warning("Job %s of %s cannot be run: %s", job.job_id, job.tenant, error)
                report = _Report("failed", {"error": self._shown(error)}, isinstance(error, TryAgain))
            except Exception as error:
                # A bug in this package must not stop the worker, nor be reported as the script's.
                _logger.exception("Job %s of %s met something unexpected", job.job_id, job.tenant)
                report = _Report("failed", {"error": self._shown(unexpected_error(error))}, may_retry=True)
            return self._send_report(heartbeat, report)

    def _report(self, heartbeat: Heartbeat) -> _Report | None:
        """The outcome of the attempt; None if the job is to be given back."""
        request = self._request()
        self._require_same_tenant(request)
        if self.job.taken_over_from and not self._make_void(request, heartbeat):
            return _LEFT
        if self.job.only_close:
            return self._close(request)
        outcome = self.run(
            replace(request, token=attempt_token(self.job, self.job.attempts)),
            settings=self.settings,
            is_cancelled=lambda: heartbeat.state != "held" or self.must_stop(),
        )
        if outcome.status == "cancelled" and heartbeat.state == "held":
            return None
        return _Report(FINAL_STATUS[outcome.status], outcome.to_json(), _may_help(outcome.error))

    def _shown(self, error: FreezeframeError) -> Any:
        return SecretMask(secret_values(self.settings)).values(error.to_json())

    def _request(self) -> RunRequest:
        request = parse_run_request(self.job.request)
        named = (request.environment, request.tenant, request.job_id)
        if named != (self.job.environment, self.job.tenant, self.job.job_id):
            raise InvalidOption(
                f"Job {self.job.job_id} of {self.job.tenant} asks for job {named[2]} of {named[1]}.",
                cause="A job may only be what the queue knows it as.",
                remedy="Submit it under the names that its request has.",
            )
        return with_permitted_script(request, self.settings)

    def _require_same_tenant(self, request: RunRequest) -> None:
        if self.job.incarnation and self.job.incarnation != request_folder(request, self.settings):
            raise TenantNotFound(
                f"The tenant {request.tenant!r} that the job was for was deleted.",
                cause="If there is one of that id, it was made after the job was submitted.",
                remedy="Submit the job again if it is meant for the tenant that is there now.",
                tenant=request.tenant,
            )

    def _make_void(self, request: RunRequest, heartbeat: Heartbeat) -> bool:
        """Prevent the former worker from committing, with retries; False if this worker is to stop."""
        reason = f"The worker {self.job.taken_over_from} fell silent; the job was taken over."
        # All earlier ones: the previous worker may have stopped before it could do this.
        begun = self.job.attempts + (1 if self.job.only_close else 0)
        tokens = [attempt_token(self.job, number) for number in range(1, begun)]
        tries = 0
        while heartbeat.state != "lost" and not self.must_stop():
            try:
                revoke(request, reason, tokens=tokens, settings=self.settings)
            except TryAgain as error:
                _logger.warning("Job %s cannot be taken over yet: %s", self.job.job_id, error)
                heartbeat.wait(_WAITS_SECONDS[min(tries, len(_WAITS_SECONDS) - 1)])
                tries += 1
            else:
                return True
        return False

    def _close(self, request: RunRequest) -> _Report:
        """The outcome of a job that may not be run again: it may have been committed all the same."""
        tenant = request_tenant(request, self.settings)
        receipt = None if tenant is None else find_committed_job(tenant.place, request.job_id)
        if receipt is not None:
            return _Report("succeeded", {"status": "repeated", "receipt": receipt.to_json()})
        if self.job.cancel_requested:
            return _Report("cancelled", None)
        error = TryAgain(
            f"The job's worker {self.job.taken_over_from} fell silent, and {self.job.attempts} attempts "
            "are all it has.",
            cause="A worker was killed or lost its machine each time, or the job brings it down.",
            remedy="See the job's log, then freezeframe job retry.",
            code="WORKER_LOST",
        )
        return _Report("dead", {"error": error.to_json()})

    def _send_report(self, heartbeat: Heartbeat, report: _Report | None) -> QueuedJob | None:
        if report is _LEFT:
            return None
        for wait_seconds in (*_WAITS_SECONDS, 0.0):
            if heartbeat.state == "lost":
                break
            try:
                return self._tell(report)
            except TryAgain as error:
                # Including JobRevoked, which the next heartbeat reports as well.
                _logger.warning("The end of job %s was not taken: %s", self.job.job_id, error)
                heartbeat.wait(wait_seconds)
        return None

    def _tell(self, report: _Report | None) -> QueuedJob:
        if report is None:
            return self.queue.give_back(self.job)
        outcome = None if report.outcome is None else json.dumps(report.outcome, default=str)
        return self.queue.finish(self.job, report.status, outcome, may_retry=report.may_retry)


def unexpected_error(error: BaseException) -> FreezeframeError:
    """The error of a job that ended by an unexpected exception."""
    return FreezeframeError(
        "The run met something that it did not expect.",
        cause=f"{type(error).__name__}: {error}",
        remedy="See the log of what ran it, and report it.",
    )


@dataclass(frozen=True, slots=True)
class _Report:
    status: FinalStatus
    outcome: Mapping[str, Any] | None
    may_retry: bool = False


# The job's status stays: its lease expires, and another worker takes it over.
_LEFT = _Report("failed", None)


def _may_help(error: Mapping[str, Any] | None) -> bool:
    """Whether another attempt could succeed: not if the request or the data must change."""
    code = None if error is None else error.get("code")
    if error is not None and error.get("details", {}).get("is_permanent"):
        return False
    return not any(code == kind.code for root in (FixTheRequest, ReportDamage) for kind in kinds_of(root))


# Posts a job that ended without success to the address of the settings.


_PAUSES_SECONDS = (1.0, 3.0, 0.0)
_TIMEOUT_SECONDS = 5.0
_FAILURES = frozenset({"failed", "timed_out", "dead"})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the error that it is: the address of the settings is the one that is meant."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """See ``HTTPRedirectHandler``."""


_opener = urllib.request.build_opener(_NoRedirects)


def notify_failure(url: str, job: QueuedJob) -> bool:
    """Post the job if it ended without success; whether the receiver took it.

    It is tried three times; then a warning is logged.
    """
    if not url or job.status not in _FAILURES:
        return False
    headers = {"content-type": "application/json"}
    problem = ""
    for pause_seconds in _PAUSES_SECONDS:
        try:
            request = urllib.request.Request(url, json.dumps(_event(job)).encode(), headers)  # noqa: S310 - of the settings
            with _opener.open(request, timeout=_TIMEOUT_SECONDS):
                return True
        except (OSError, ValueError) as error:
            # Neither the address, which may hold a token, nor the answer's text.
            problem = str(error.code) if isinstance(error, urllib.error.HTTPError) else type(error).__name__
            time.sleep(pause_seconds)
    _logger.warning("The end of job %s of %s was not posted: %s", job.job_id, job.tenant, problem)
    return False


def _event(job: QueuedJob) -> dict[str, Any]:
    return {
        "type": "job.failed",
        "environment": job.environment,
        "tenant": job.tenant,
        "job_id": job.job_id,
        "status": job.status,
        "attempts": job.attempts,
        "error": first_line(job.outcome),
        "error_code": ((job.outcome or {}).get("error") or {}).get("code"),
        "finished": None if job.finished is None else rfc3339(job.finished),
    }


def first_line(outcome: Mapping[str, Any] | None) -> str:
    """The first line of the error in a job's outcome: a script's own words where it failed; empty: none."""
    error = (outcome or {}).get("error") or {}
    told = error.get("cause") if error.get("code") == "SCRIPT_FAILED" else None
    return next(iter(str(told or error.get("problem") or "").splitlines()), "")
