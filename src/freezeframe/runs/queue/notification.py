"""Posts a job that ended without success to the address of the settings."""

from __future__ import annotations

import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from freezeframe.clock import rfc3339
from freezeframe.control.jobs.job import QueuedJob

_logger = logging.getLogger(__name__)
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
