"""One attempt of a claimed job: its lease, takeover, run, report, and the notice of its failure."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self

from freezeframe.clock import rfc3339
from freezeframe.configuration.masking import SecretMask, secret_values
from freezeframe.control.job import FAILURES, FinalStatus, QueuedJob
from freezeframe.control.queue import JobQueue, LeaseState
from freezeframe.errors import (
    FixTheRequest,
    FreezeframeError,
    InvalidOption,
    ReportDamage,
    TenantNotFound,
    TryAgain,
    kinds_of,
)
from freezeframe.runs.held import failed_checks
from freezeframe.runs.request import (
    RunOutcome,
    RunRequest,
    dated_input,
    held_outcome,
    parse_run_request,
    request_folder,
    request_store,
    request_tenant,
)
from freezeframe.runs.script_header import with_permitted_script
from freezeframe.settings import Settings, load_settings
from freezeframe.store.job import find_committed_job, find_held_job, revoke_job


def attempt_token(job: QueuedJob, number: int) -> str:
    """Return the token of the job's attempt ``number`` (from 1), the same for every worker.

    It is no other job's: an id that is submitted again after its queue was lost has another moment.
    An attempt that was given back has ended, so that the next one may have its number.
    """
    return f"{job.job_id}/{round(job.created.timestamp() * 1000)}/{number}"


def revoke(
    request: RunRequest, reason: str, *, tokens: Iterable[str] = (), settings: Settings | None = None
) -> None:
    """Land a ``revoke`` in the tenant's log for every run of the request's job that is under way.

    Such a run's commit is refused with ``JobRevoked`` from then on: of runs that have announced
    themselves, and of those that ``tokens`` or the request's own token name, wherever they are. A run that
    had committed before stays committed: running the request again is then answered with its receipt.
    Nothing is written where there is nothing to revoke. A tenant that is not there yet is made where a
    token is named, as the run would make it: its log is the only place that keeps the run from committing.
    A dry run commits nothing, so nothing of it is revoked.
    """
    if request.dry_run:
        return
    settings = load_settings() if settings is None else settings
    named = {*tokens, request.token} - {""}
    if named:
        request_store(request, settings).tenant(request.tenant, create=True)
    tenant = request_tenant(request, settings)
    if tenant is not None:
        revoke_job(tenant.context, request.job_id, reason, tokens=named)


_logger = logging.getLogger(__name__)


class Heartbeat:
    """Renews a job's lease as long as the ``with`` block lasts.

    A queue that cannot be reached is tried again at the next beat. The queue then says whether the lease was
    lost meanwhile; the tenant's log refuses a commit that comes too late.
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


# One attempt of a claimed job: takeover, run, report to the queue.
#
# If another worker had the job before and fell silent, an entry in the tenant's log first prevents its
# commit. Only then is the job run, under the same id: if the other worker had committed after all, the run
# returns that commit and does nothing.

_WAITS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
FINAL_STATUS: dict[str, FinalStatus] = {
    "succeeded": "succeeded",
    "repeated": "succeeded",
    "failed": "failed",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
    "held": "held",
}


class RunFunction(Protocol):
    """Runs a request to its end, as ``freezeframe.runs.running.run`` does."""

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

    Once ``must_stop`` returns true, the run is ended and the job given back.
    """

    queue: JobQueue
    job: QueuedJob
    run: RunFunction
    settings: Settings
    times: Times
    must_stop: Callable[[], bool]

    def perform(self) -> QueuedJob | None:
        """Run the job, report its outcome, and return the job.

        None if another worker has the job by now, or if the outcome could not be reported.
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
            if report is _LEFT:
                return None
            for wait_seconds in (*_WAITS_SECONDS, 0.0):
                if heartbeat.state == "lost":
                    break
                try:
                    if report is None:
                        return self.queue.give_back(self.job)
                    outcome = None if report.outcome is None else json.dumps(report.outcome, default=str)
                    return self.queue.finish(self.job, report.status, outcome, may_retry=report.may_retry)
                except TryAgain as error:
                    # Including JobRevoked, which the next heartbeat reports as well.
                    _logger.warning("The end of job %s was not recorded: %s", self.job.job_id, error)
                    heartbeat.wait(wait_seconds)
            return None

    def _report(self, heartbeat: Heartbeat) -> _Report | None:
        """Return the outcome of the attempt; None if the job is to be given back."""
        request = self._request()
        if self.job.incarnation and self.job.incarnation != request_folder(request, self.settings):
            raise TenantNotFound(
                f"The tenant {request.tenant!r} that the job was for was deleted.",
                cause="If a tenant has that id now, it was created after the job was submitted.",
                remedy="If the job is meant for the current tenant, submit it again.",
                tenant=request.tenant,
            )
        if self.job.taken_over_from and not self._prevent_earlier_commit(request, heartbeat):
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
        return _Report(FINAL_STATUS[outcome.status], outcome.to_json(), _may_help(outcome.error, request))

    def _shown(self, error: FreezeframeError) -> Any:
        return SecretMask(secret_values(self.settings)).values(error.to_json())

    def _request(self) -> RunRequest:
        request = parse_run_request(self.job.request)
        named = (request.environment, request.tenant, request.job_id)
        if named != (self.job.environment, self.job.tenant, self.job.job_id):
            raise InvalidOption(
                f"Job {self.job.job_id} of {self.job.tenant} asks for job {named[2]} of {named[1]}.",
                cause="The request does not match the job in the queue.",
                remedy="Submit it with the tenant and id of its request.",
            )
        # Of every attempt the same day: a job that is tried again after midnight is still that day's.
        request = replace(request, input_dir=dated_input(request.input_dir, self.job.created.date()))
        return with_permitted_script(request, self.settings)

    def _prevent_earlier_commit(self, request: RunRequest, heartbeat: Heartbeat) -> bool:
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
        """Return the outcome of a job that may not be run again: it may have been committed all the same."""
        tenant = request_tenant(request, self.settings)
        receipt = None if tenant is None else find_committed_job(tenant.context, request.job_id)
        if receipt is not None:
            return _Report("succeeded", {"status": "repeated", "receipt": receipt.to_json()})
        held = None if tenant is None else find_held_job(tenant.context, request.job_id)
        if held is not None:
            return _Report("held", held_outcome(held))
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


def unexpected_error(error: BaseException) -> FreezeframeError:
    """Return the error of a job that ended by an unexpected exception."""
    return FreezeframeError(
        "The run failed with an unexpected error.",
        cause=f"{type(error).__name__}: {error}",
        remedy="See the log of the process that ran it, and report the error.",
    )


@dataclass(frozen=True, slots=True)
class _Report:
    status: FinalStatus
    outcome: Mapping[str, Any] | None
    may_retry: bool = False


# The job's status stays: its lease expires, and another worker takes it over.
_LEFT = _Report("failed", None)


def _may_help(error: Mapping[str, Any] | None, request: RunRequest) -> bool:
    """Return whether another attempt could succeed: not if the request or the data must change.

    A dry run is tried again only after a fault of storage or server, because somebody waits to see its error.
    """
    code = None if error is None else error.get("code")
    if request.dry_run:
        return any(code == kind.code for kind in kinds_of(TryAgain))
    if error is not None and error.get("details", {}).get("is_permanent"):
        return False
    return not any(code == kind.code for root in (FixTheRequest, ReportDamage) for kind in kinds_of(root))


_PAUSES_SECONDS = (1.0, 3.0, 0.0)
_TIMEOUT_SECONDS = 5.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the error that it is: a request goes only to the address of the settings."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """See ``HTTPRedirectHandler``."""


_opener = urllib.request.build_opener(_NoRedirects)


def notify(url: str, job: QueuedJob) -> bool:
    """Post the job if it ended without success or is held; return whether the receiver accepted it.

    It is tried three times; then a warning is logged.
    """
    is_held = job.status == "held"
    if not url or not (is_held or job.status in FAILURES):
        return False
    event = json.dumps(
        {
            "type": "job.held" if is_held else "job.failed",
            "environment": job.environment,
            "tenant": job.tenant,
            "job_id": job.job_id,
            "status": job.status,
            "attempts": job.attempts,
            "error": next(iter(failed_checks(job.outcome)), "") if is_held else first_line(job.outcome),
            "error_code": ((job.outcome or {}).get("error") or {}).get("code"),
            "finished": None if job.finished is None else rfc3339(job.finished),
        }
    ).encode()
    headers = {"content-type": "application/json"}
    problem = ""
    for pause_seconds in _PAUSES_SECONDS:
        try:
            request = urllib.request.Request(url, event, headers)  # noqa: S310 - of the settings
            with _opener.open(request, timeout=_TIMEOUT_SECONDS):
                return True
        except (OSError, ValueError) as error:
            # Neither the address, which may hold a token, nor the answer's text.
            problem = str(error.code) if isinstance(error, urllib.error.HTTPError) else type(error).__name__
            time.sleep(pause_seconds)
    _logger.warning("Job %s of %s was not posted: %s", job.job_id, job.tenant, problem)
    return False


def first_line(outcome: Mapping[str, Any] | None) -> str:
    """Return the first line of the error in a job's outcome, or the last of its target's; empty: none."""
    error = (outcome or {}).get("error") or {}
    lines = {name: str(error.get(name) or "").splitlines() for name in ("cause", "problem")}
    if error.get("code") == "TARGET_FAILED" and lines["cause"]:
        return lines["cause"][-1]
    is_script = error.get("code") == "SCRIPT_FAILED"
    return next(iter((is_script and lines["cause"]) or lines["problem"]), "")
