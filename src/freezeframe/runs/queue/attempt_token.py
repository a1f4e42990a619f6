"""The token of a queued job's attempt, by which it can be revoked before it has begun."""

from __future__ import annotations

from freezeframe.control.job import QueuedJob


def attempt_token(job: QueuedJob, number: int) -> str:
    """The token of the job's attempt ``number`` (from 1), the same to every worker that asks.

    It is no other job's: an id that is submitted again after its queue was lost has another moment.
    An attempt that was given back has ended, so that the next one may have its number.
    """
    return f"{job.job_id}/{round(job.created.timestamp() * 1000)}/{number}"
