"""Jobs of the queue: their values, their rows, and filters of lists."""

from __future__ import annotations

import base64
import binascii
import json
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Connection, Row, select

from freezeframe.clock import moment
from freezeframe.control.database import milliseconds
from freezeframe.control.tables import jobs
from freezeframe.errors import InvalidOption, NotFound

JobStatus = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "dead", "held"]
FinalStatus = Literal["succeeded", "failed", "cancelled", "timed_out", "dead", "held"]

STATUSES: tuple[JobStatus, ...] = get_args(JobStatus)
FINAL_STATUSES: tuple[FinalStatus, ...] = get_args(FinalStatus)
FAILURES: tuple[FinalStatus, ...] = ("failed", "timed_out", "dead")
JOB_ID_LENGTH_MAX = 500
REQUEST_BYTES_MAX = 1024 * 1024
ATTEMPTS_MAX = 100
PRIORITY_MAX = 1000


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One job at one moment.

    ``environment``, ``tenant`` and ``job_id`` name it; ``sequence`` is its place in the order of submission.
    ``request`` is what was submitted, as JSON text. ``attempts`` counts the runs that were begun,
    ``lease_id`` names the present one (the fencing token), and ``worker`` has it or had it last.

    Of a job just claimed: ``taken_over_from`` is the worker whose lease ran out ("" for none), so that
    whatever that worker may still do has to be made void first; with ``only_close`` it must not be run
    again (it was cancelled, or its attempts are used up), only brought to its end.

    ``incarnation`` tells tenants apart that had the same id one after the other; empty: whichever has it.
    ``group`` is the id of the group that it was submitted with; empty: it was submitted alone.
    """

    sequence: int
    environment: str
    tenant: str
    job_id: str
    request: str = field(repr=False)  # may contain secrets
    status: JobStatus
    priority: int
    lane: str
    schedule: str
    run_at: datetime
    created: datetime
    started: datetime | None
    finished: datetime | None
    attempts: int
    attempts_max: int
    cancel_requested: bool
    worker: str
    lease_id: str | None
    lease_until: datetime | None
    taken_over_from: str
    only_close: bool
    outcome: Mapping[str, Any] | None
    incarnation: str = ""
    group: str = ""

    @property
    def is_final(self) -> bool:
        """Whether the status is final; only a retry changes it."""
        return self.status in FINAL_STATUSES

    @property
    def is_dry_run(self) -> bool:
        """Whether it commits nothing."""
        return bool(json.loads(self.request).get("dry_run"))


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs, newest first, and the cursor of the next page (None: this is the last)."""

    jobs: tuple[QueuedJob, ...]
    next_cursor: str | None


def check_job_id(job_id: str) -> str:
    """Return the id if it can be one: 1 to 500 printable characters."""
    odd = any(unicodedata.category(letter)[0] == "C" for letter in job_id)
    if not job_id.strip() or odd or len(job_id) > JOB_ID_LENGTH_MAX:
        raise InvalidOption(
            f"{job_id!r} cannot be a job's id.",
            cause=f"An id has 1 to {JOB_ID_LENGTH_MAX} printable characters.",
            remedy="Pass an id that only the tries of this run have.",
        )
    return job_id


def canonical_request(request_json: str) -> str:
    """Return the request in its canonical form, which is stored and compared."""
    if len(request_json) > REQUEST_BYTES_MAX:
        raise InvalidOption(
            f"A job's request has at most {REQUEST_BYTES_MAX} bytes; this one has {len(request_json)}.",
            remedy="Pass large input as files.",
        )
    try:
        request = json.loads(request_json)
    except ValueError as error:
        raise InvalidOption(
            "The job's request is not JSON.", cause=str(error), remedy="Pass a JSON object."
        ) from error
    if not isinstance(request, dict):
        raise InvalidOption("The job's request is not a JSON object.", remedy="Pass a JSON object.")
    return json.dumps(request, sort_keys=True, separators=(",", ":"))


def script_name(request: Mapping[str, Any]) -> str:
    """Return the name of the file of a request's script; empty where there is none."""
    return str(request.get("script") or "").rpartition("/")[2]


def require_between(name: str, value: int, low: int, high: int) -> None:
    """Refuse a number outside its bounds."""
    if not low <= value <= high:
        raise InvalidOption(
            f"{name} must be from {low} to {high}, not {value}.", remedy="Pass a number in that range."
        )


_PREFIX = "j1:"


def cursor_after(sequence: int, rank: int = 0) -> str:
    """Return the cursor of the page that follows the row of that sequence, and of that rank in its list."""
    return base64.urlsafe_b64encode(f"{_PREFIX}{rank}.{sequence}".encode()).decode().rstrip("=")


def position_of(cursor: str) -> tuple[int, int]:
    """Return the sequence and the rank after which the page begins."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        rank, sequence = map(int, text.removeprefix(_PREFIX).split("."))
        if sequence > 0 and cursor == cursor_after(sequence, rank):
            return sequence, rank
    except (ValueError, binascii.Error):
        pass
    raise InvalidOption(
        f"{cursor!r} is not a cursor.",
        remedy="Pass next_cursor of the page before, or none for the first page.",
    )


def job_of(row: Row[Any]) -> QueuedJob:
    """Return the job that a row holds."""
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
    """Return the job of that name; ``lock`` keeps others from changing it until the transaction ends.

    With an ``incarnation`` jobs of an earlier tenant with the same id are ignored.
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
            cause="No job with this id was submitted for the current tenant.",
            remedy="Look into the list of its jobs.",
            environment=environment,
            tenant=tenant,
            job_id=job_id,
            code="JOB_NOT_FOUND",
        )
    return job_of(row)


def of_incarnation(incarnation: str) -> ColumnElement[bool]:
    """Return the condition for jobs of that incarnation of a tenant, or without an incarnation."""
    return jobs.c.incarnation.in_(("", incarnation))


def job_at(connection: Connection, sequence: int, *, lock: bool = False) -> QueuedJob:
    """Return the job with that sequence number; ``lock`` as of ``find_job``."""
    query = select(jobs).where(jobs.c.sequence == sequence)
    return job_of(connection.execute(query.with_for_update() if lock else query).one())


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """A filter of jobs by all of its fields that are set; ``tenants`` selects the jobs of these tenants.

    They were submitted from ``since`` on and before ``until``; ``incarnation`` leaves out the jobs of an
    earlier tenant with the same id.
    """

    environment: str | None = None
    tenant: str | None = None
    tenants: Collection[str] | None = None
    status: JobStatus | None = None
    job_id: str | None = None
    schedule: str | None = None
    group: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    incarnation: str = ""

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATUSES:
            raise InvalidOption(
                f"{self.status!r} is not a status of a job.", remedy=f"Pass one of {', '.join(STATUSES)}."
            )

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions on rows of the jobs' table."""
        names = ("environment", "tenant", "status", "job_id", "schedule", "group")
        equal = {name: getattr(self, name) for name in names}
        found = [jobs.c[name] == value for name, value in equal.items() if value is not None]
        if self.tenants is not None:
            found.append(jobs.c.tenant.in_(self.tenants))
        if self.since is not None:
            found.append(jobs.c.created_ms >= milliseconds(self.since))
        if self.until is not None:
            found.append(jobs.c.created_ms < milliseconds(self.until))
        if self.incarnation:
            found.append(of_incarnation(self.incarnation))
        return found
