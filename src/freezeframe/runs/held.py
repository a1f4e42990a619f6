"""Held jobs of the queue: which checks hold them, and how they are published, discarded or run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freezeframe.control.groups import begin_rest
from freezeframe.control.job import QueuedJob
from freezeframe.control.queue import JobQueue
from freezeframe.errors import ConflictError, FreezeframeError, InvalidOption, JobRevoked, TenantNotFound
from freezeframe.runs.request import parse_run_request, request_folder, request_tenant
from freezeframe.runs.script_header import is_replay
from freezeframe.settings import Settings
from freezeframe.store.job import discard_job, publish_job
from freezeframe.store.model.update_options import Author, RequestContext
from freezeframe.store.tenant import with_request
from freezeframe.store.transaction.changes import TenantContext

_DISCARDED = "DISCARDED"


def failed_checks(outcome: Mapping[str, Any] | None) -> list[str]:
    """Return the checks that keep a job of that outcome from its commit, each in one line."""
    failed = ((outcome or {}).get("dry_run") or {}).get("failed_checks", ())
    return [f"{item['stream']}: {item['check']} ({item['reason']})" for item in failed]


@dataclass(frozen=True, slots=True)
class Decision:
    """Who decides about a held job, and the request that the tenant's history shows."""

    queue: JobQueue
    settings: Settings
    who: str = ""
    request_id: str = ""


def publish(job: QueuedJob, decision: Decision, *, again: bool = False) -> QueuedJob:
    """Commit what a held job has staged, and return the job; one that is published already stays as it is.

    With ``again`` a job that cannot be published (any more) is discarded and queued again under its id.

    Raises:
        InvalidOption: the job is not held, or is a replay that is to be run again.
        TenantNotFound: its tenant was deleted.
        ConflictError: another commit changed what it rests on; it stays held.
        JobRevoked: what it had staged is gone.
    """
    if job.status not in {"held", "succeeded"} or job.is_dry_run:
        raise InvalidOption(
            f"Job {job.job_id} cannot be published: it is {'a dry run' if job.is_dry_run else job.status}.",
            remedy="Publish a job that is held.",
        )
    if again and is_replay(parse_run_request(job.request).script):
        raise InvalidOption(
            f"The replay {job.job_id} cannot be run again by publishing it.",
            cause="Somebody has to see first what it would change then.",
            remedy="Discard it, and replay the jobs again.",
        )
    try:
        receipt = publish_job(_tenant_of(job, decision), job.job_id)
    except (ConflictError, JobRevoked):
        if not again:
            raise
        discard(job, decision)
        return decision.queue.retry(job.environment, job.tenant, job.job_id)
    outcome = {"status": "succeeded", "receipt": receipt.to_json(), "tenant_version": receipt.tenant_version}
    return _settle(job, decision, outcome)


def discard(job: QueuedJob, decision: Decision) -> QueuedJob:
    """Delete what a held job has staged, and return the job, which is cancelled; one that was stays as it is.

    Raises:
        InvalidOption: the job is not held, or published.
        TenantNotFound: its tenant was deleted.
    """
    if ((job.outcome or {}).get("error") or {}).get("code") == _DISCARDED:
        return job
    if job.status != "held":
        raise InvalidOption(
            f"Job {job.job_id} cannot be discarded: it is {job.status}.", remedy="Discard a job that is held."
        )
    discard_job(_tenant_of(job, decision), job.job_id, Author(decision.who))
    error = FreezeframeError(
        "The job was discarded; nothing of it was kept.", remedy="To run it, retry it.", code=_DISCARDED
    )
    return _settle(job, decision, {"status": "cancelled", "receipt": None, "error": error.to_json()})


def _settle(job: QueuedJob, decision: Decision, outcome: dict[str, Any]) -> QueuedJob:
    told = {**(job.outcome or {}), "dry_run": None, "held_until": None, **outcome}
    settled = decision.queue.settle(job, outcome["status"], json.dumps(told))
    if settled.group:
        begin_rest(decision.queue.database, settled.environment, settled.group)
    return settled


def _tenant_of(job: QueuedJob, decision: Decision) -> TenantContext:
    request = parse_run_request(job.request)
    found = request_tenant(request, decision.settings)
    if found is None or job.incarnation not in {"", request_folder(request, decision.settings)}:
        raise TenantNotFound(
            f"The tenant {job.tenant!r} that the job was for was deleted.",
            cause="What the job had staged was deleted with it.",
            remedy="If the job is meant for a tenant that has the id now, submit it again.",
            tenant=job.tenant,
        )
    return with_request(found, RequestContext(decision.request_id)).context
