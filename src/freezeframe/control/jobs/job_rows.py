"""Mapping between rows of the jobs' table and ``QueuedJob``."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from freezeframe.clock import moment
from freezeframe.control.jobs.job import QueuedJob
from freezeframe.control.tables import jobs
from freezeframe.errors import NotFound


def job_of(row: Row[Any]) -> QueuedJob:
    """The job that a row holds."""
    fields = row._asdict()
    for name in ("run_at", "created", "started", "finished", "lease_until"):
        stored = fields.pop(f"{name}_ms")
        fields[name] = None if stored is None else moment(stored)
    fields["outcome"] = None if fields["outcome"] is None else json.loads(fields["outcome"])
    return QueuedJob(**fields)


def find_job(
    connection: Connection,
    environment: str,
    tenant: str,
    job_id: str,
    *,
    incarnation: str = "",
    lock: bool = False,
) -> QueuedJob:
    """The job of that name; with ``lock`` nobody else changes it until the transaction's end.

    With an ``incarnation`` one of another tenant that had the id before is not there.
    """
    query = select(jobs).where(
        jobs.c.environment == environment, jobs.c.tenant == tenant, jobs.c.job_id == job_id
    )
    if incarnation:
        query = query.where(of_incarnation(incarnation))
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise NotFound(
            f"Tenant {tenant} has no job {job_id}.",
            cause="None of that id was submitted for the tenant that there is now.",
            remedy="Look into the list of its jobs.",
            environment=environment,
            tenant=tenant,
            job_id=job_id,
            code="JOB_NOT_FOUND",
        )
    return job_of(row)


def of_incarnation(incarnation: str) -> ColumnElement[bool]:
    """Jobs of that very tenant, and those of whichever tenant has the id."""
    return jobs.c.incarnation.in_(("", incarnation))


def job_at(connection: Connection, sequence: int) -> QueuedJob:
    """The job that is there at a known place."""
    return job_of(connection.execute(select(jobs).where(jobs.c.sequence == sequence)).one())
