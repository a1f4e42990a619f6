"""Which jobs of the queue a list shows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement

from freezeframe.control.jobs.job import STATUSES, JobStatus
from freezeframe.control.jobs.job_rows import of_incarnation
from freezeframe.control.tables import jobs
from freezeframe.errors import InvalidOption


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """The jobs that fit all that is given; ``tenants`` leaves only jobs of some of them.

    With an ``incarnation`` the jobs of a tenant that had the id before are left out.
    """

    environment: str | None = None
    tenant: str | None = None
    tenants: Collection[str] | None = None
    status: JobStatus | None = None
    job_id: str | None = None
    schedule: str | None = None
    incarnation: str = ""

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATUSES:
            raise InvalidOption(
                f"{self.status!r} is not a status of a job.", remedy=f"Pass one of {', '.join(STATUSES)}."
            )

    def conditions(self) -> list[ColumnElement[bool]]:
        """What a row of the jobs' table has to meet."""
        equal = {
            name: getattr(self, name) for name in ("environment", "tenant", "status", "job_id", "schedule")
        }
        found = [jobs.c[name] == value for name, value in equal.items() if value is not None]
        if self.tenants is not None:
            found.append(jobs.c.tenant.in_(self.tenants))
        if self.incarnation:
            found.append(of_incarnation(self.incarnation))
        return found
