"""A schedule: the request that it submits for a tenant, and its times."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, get_args

from freezeframe.control.jobs.job import canonical_request, check_job_id, rfc3339
from freezeframe.control.jobs.submission import Submission
from freezeframe.control.jobs.timing import Missed, Timing
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName

_JOB_ID = "job_id"


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """A schedule to be made; the constructor refuses what cannot be one.

    ``request`` is a job's request as JSON text; its ``job_id`` is filled in for each run. Its jobs are for
    the ``incarnation`` of the tenant, and not for a later one with the same id; empty: whichever has it.
    """

    name: str
    environment: str
    tenant: str
    timing: Timing
    request: str = field(repr=False)
    missed: Missed = "latest"
    priority: int = 0
    attempts_max: int = 3
    running_max: int = 1
    incarnation: str = ""

    def __post_init__(self) -> None:
        # A schedule's name follows the rules of a stream's, so that it can stand in a path.
        object.__setattr__(self, "name", str(StreamName(self.name)))
        if self.missed not in get_args(Missed):
            raise InvalidOption(
                f"{self.missed!r} says nothing about missed runs.", remedy="Pass latest or all."
            )
        checked = self.submission(0, datetime.now(UTC))
        object.__setattr__(self, "request", canonical_request(self.request))
        object.__setattr__(self, "environment", checked.environment)
        object.__setattr__(self, "tenant", checked.tenant)

    def submission(self, sequence: int, due: datetime) -> Submission:
        """The submission of one due time; ``sequence`` distinguishes schedules that reused a name."""
        job_id = check_job_id(f"{self.name}-{sequence}-{due:%Y%m%dT%H%M%SZ}")
        request = {**json.loads(canonical_request(self.request)), _JOB_ID: job_id}
        return Submission(
            json.dumps(request),
            self.environment,
            self.tenant,
            job_id,
            attempts_max=self.attempts_max,
            priority=self.priority,
            running_max=self.running_max,
            schedule=self.name,
            incarnation=self.incarnation,
        )


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule at one moment; ``next_due`` is None where it is disabled."""

    sequence: int
    asked: ScheduleRequest
    is_enabled: bool
    created: datetime
    next_due: datetime | None
    last_due: datetime | None

    def to_json(self) -> dict[str, Any]:
        """What people and programs are shown: all but the request; moments in RFC 3339."""
        return {
            "name": self.asked.name,
            "environment": self.asked.environment,
            "tenant": self.asked.tenant,
            "cron": self.asked.timing.cron,
            "zone": self.asked.timing.zone,
            "missed": self.asked.missed,
            "priority": self.asked.priority,
            "attempts_max": self.asked.attempts_max,
            "enabled": self.is_enabled,
            "created": rfc3339(self.created),
            "next_due": rfc3339(self.next_due),
            "last_due": rfc3339(self.last_due),
        }
