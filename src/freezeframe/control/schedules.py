"""Schedules: cron expressions in a time zone, and the jobs that they submit.

Any number of workers may look for due times at once: a due time and its job are one transaction, and the
job's id is made of both, so each due time makes one job. A time of day that a clock change skips is due at
the first moment after the gap. A time that comes twice is due the first time, or both times if the hour is
``*``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from croniter import croniter
from croniter.croniter import CroniterBadDateError, CroniterError
from sqlalchemy import Connection, Row, delete, exists, select, tuple_, update

from freezeframe.clock import moment
from freezeframe.control.database import ControlDatabase, insert_if_absent, milliseconds
from freezeframe.control.job import QueuedJob, canonical_request, check_job_id
from freezeframe.control.submission import Submission, insert_job
from freezeframe.control.tables import schedules
from freezeframe.errors import ConflictError, InvalidOption, NotFound
from freezeframe.identifiers import StreamName

Missed = Literal["latest", "all"]
CAUGHT_UP_MAX = 100
_FIELDS = 5
_HOUR = 1
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
# Letters are names of months and days, or the last day; what croniter draws by lot is not among them.
_FIELD = re.compile(
    r"(?:[\d*,/#?\-]|L|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|SUN|MON|TUE|WED|THU|FRI|SAT)+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Timing:
    """A cron expression of five fields, or ``@daily`` and its like, in an IANA time zone."""

    cron: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        fields = _ALIASES.get(self.cron.strip().lower(), self.cron).split()
        if len(fields) != _FIELDS or not all(map(_FIELD.fullmatch, fields)):
            raise self._timing_error("It has five fields: minute, hour, day of month, month, day of week.")
        object.__setattr__(self, "cron", " ".join(fields))
        try:
            ZoneInfo(self.zone)
        except (KeyError, OSError, ValueError) as error:
            raise InvalidOption(
                f"There is no time zone {self.zone!r}.", remedy="Pass a name such as UTC or Europe/Berlin."
            ) from error
        try:
            self._cron(datetime.now(UTC)).get_next()
        except CroniterError as error:
            raise self._timing_error(str(error)) from error

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first due time after a moment, in UTC; None where there is none in many years."""
        return next(self._due(self._cron(moment).get_next), None)

    def due(self, since: datetime, now: datetime, missed: Missed) -> tuple[datetime, ...]:
        """Return the due times from ``since`` (a due time) to ``now`` for which a job is to be submitted.

        ``missed`` is ``latest`` (only the last due time) or ``all`` (at most the last 100).
        """
        limit = 1 if missed == "latest" else CAUGHT_UP_MAX
        found: list[datetime] = []
        # croniter goes by whole seconds and leaves out where it begins.
        end = self._cron(now.replace(microsecond=0) + timedelta(seconds=1))
        for due in self._due(end.get_prev):
            if due < since or len(found) == limit:
                break
            found.append(due)
        return tuple(reversed(found))

    def _due(self, step: Callable[[], datetime]) -> Iterator[datetime]:
        with suppress(CroniterBadDateError):
            while True:
                found = step()
                # Of a time of day that a clock change repeats, the second is not due.
                every_hour = self.cron.split()[_HOUR].startswith("*")
                if every_hour or found.utcoffset() == found.replace(fold=0).utcoffset():
                    yield found.astimezone(UTC)

    def _cron(self, moment: datetime) -> croniter[datetime]:
        return croniter(self.cron, moment.astimezone(ZoneInfo(self.zone)), ret_type=datetime)

    def _timing_error(self, cause: str) -> InvalidOption:
        return InvalidOption(
            f"{self.cron!r} is not a schedule.",
            cause=cause,
            remedy="Write it as cron does: 0 6 * * 1-5, or @daily.",
        )


_JOB_ID = "job_id"


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """A schedule to be made; the constructor refuses what cannot be one.

    ``request`` is a job's request as JSON text; each run gets its own ``job_id``, and for ``{date}`` in its
    ``input_dir`` the day of the due time in the schedule's zone. Its jobs are for the ``incarnation`` of the
    tenant, and not for a later one with the same id; empty: whichever has it.
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
                f"{self.missed!r} is not a rule for missed runs.", remedy="Pass latest or all."
            )
        checked = self.due_submission(0, datetime.now(UTC))
        object.__setattr__(self, "request", canonical_request(self.request))
        object.__setattr__(self, "environment", checked.environment)
        object.__setattr__(self, "tenant", checked.tenant)

    def due_submission(self, sequence: int, due: datetime) -> Submission:
        """Return the submission of one due time; ``sequence`` distinguishes schedules that reused a name."""
        return self.submission(check_job_id(f"{self.name}-{sequence}-{due:%Y%m%dT%H%M%SZ}"), due)

    def submission(self, job_id: str, due: datetime) -> Submission:
        """Return the submission of one run, whose day is that of ``due``."""
        request = {**json.loads(canonical_request(self.request)), _JOB_ID: job_id}
        if isinstance(folder := request.get("input_dir"), str):
            day = due.astimezone(ZoneInfo(self.timing.zone)).date()
            request["input_dir"] = folder.replace("{date}", day.isoformat())
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
    definition: ScheduleRequest
    is_enabled: bool
    created: datetime
    next_due: datetime | None
    last_due: datetime | None


_DEFINITION = (
    *("name", "environment", "tenant", "request", "missed"),
    *("priority", "attempts_max", "running_max", "incarnation"),
)
"""Columns of a schedule that are fields of its ``ScheduleRequest``."""


class Schedules:
    """Schedules by environment, tenant and name."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database

    def create(self, *definitions: ScheduleRequest) -> tuple[Schedule, ...]:
        """Store new schedules, enabled, or none of them; the first runs are at the next due times.

        One that exists with the same definition stays as it is.
        """
        with self._database.begin() as connection:
            now_ms = self._database.now_ms(connection)
            return tuple(_create(connection, definition, now_ms) for definition in definitions)

    def get(self, environment: str, tenant: str, name: str) -> Schedule:
        """Return the schedule of that name."""
        with self._database.read() as connection:
            return _find(connection, environment, tenant, name)

    def list(
        self,
        *,
        environment: str | None = None,
        tenant: str | None = None,
        tenants: Collection[str] | None = None,
        after: tuple[str, str] = ("", ""),
        limit: int | None = None,
    ) -> tuple[Schedule, ...]:
        """Return all schedules, or those of an environment, a tenant or some, by tenant and name.

        ``after`` is the tenant and the name of the last schedule of the page before.
        """
        query = select(schedules).order_by(schedules.c.environment, schedules.c.tenant, schedules.c.name)
        if environment is not None:
            query = query.where(schedules.c.environment == environment)
        if tenant is not None:
            query = query.where(schedules.c.tenant == tenant)
        if tenants is not None:
            query = query.where(schedules.c.tenant.in_(tenants))
        if any(after):
            query = query.where(tuple_(schedules.c.tenant, schedules.c.name) > tuple_(*after))
        if limit is not None:
            query = query.limit(limit)
        with self._database.read() as connection:
            return tuple(_schedule(row) for row in connection.execute(query))

    def enable(self, environment: str, tenant: str, name: str) -> Schedule:
        """Enable a schedule; runs that it missed while it was disabled are not submitted later."""
        return self._set(environment, tenant, name, is_enabled=True)

    def disable(self, environment: str, tenant: str, name: str) -> Schedule:
        """Disable a schedule; its jobs stay."""
        return self._set(environment, tenant, name, is_enabled=False)

    def delete(self, environment: str, tenant: str, name: str) -> None:
        """Delete a schedule; its jobs stay."""
        with self._database.begin() as connection:
            found = _find(connection, environment, tenant, name)
            connection.execute(delete(schedules).where(schedules.c.sequence == found.sequence))

    def forget(self, environment: str, tenant: str) -> tuple[str, ...]:
        """Delete the schedules of a tenant and return their names."""
        own = (schedules.c.environment == environment, schedules.c.tenant == tenant)
        with self._database.begin() as connection:
            gone = connection.execute(delete(schedules).where(*own).returning(schedules.c.name))
            return tuple(sorted(gone.scalars()))

    def end_with_tenant(self, job: QueuedJob) -> bool:
        """Delete the schedule of a job whose tenant is gone, and return whether it existed."""
        own = (
            schedules.c.environment == job.environment,
            schedules.c.tenant == job.tenant,
            schedules.c.name == job.schedule,
            # One created for a later tenant of the same id stays.
            schedules.c.incarnation == job.incarnation,
        )
        with self._database.begin() as connection:
            return bool(connection.execute(delete(schedules).where(*own)).rowcount)

    def submit_due(self) -> tuple[QueuedJob, ...]:
        """Put the jobs of all due times that have come into the queue, and return those.

        Each due time creates one job, also with concurrent callers.
        """
        made: tuple[QueuedJob, ...] = ()
        # Mostly nothing is due, which a read without a lock shows.
        while self._any_due():
            found = self._submit_next()
            if found is None:
                break
            made += found
        return made

    def _any_due(self) -> bool:
        with self._database.read() as connection:
            due = exists().where(
                schedules.c.is_enabled, schedules.c.next_due_ms <= self._database.now_ms(connection)
            )
            return bool(connection.execute(select(due)).scalar_one())

    def _submit_next(self) -> tuple[QueuedJob, ...] | None:
        with self._database.begin() as connection:
            now_ms = self._database.now_ms(connection)
            row = connection.execute(
                select(schedules)
                .where(schedules.c.is_enabled, schedules.c.next_due_ms <= now_ms)
                .order_by(schedules.c.next_due_ms, schedules.c.sequence)
                .limit(1)
                .with_for_update(skip_locked=True)
            ).one_or_none()
            if row is None:
                return None
            definition = _schedule(row).definition
            due = definition.timing.due(moment(row.next_due_ms), moment(now_ms), definition.missed)
            connection.execute(
                update(schedules)
                .where(schedules.c.sequence == row.sequence)
                .values(
                    next_due_ms=_next_due_ms(definition.timing, now_ms),
                    last_due_ms=milliseconds(due[-1]) if due else row.last_due_ms,
                )
            )
            return tuple(
                insert_job(connection, definition.due_submission(row.sequence, item), now_ms) for item in due
            )

    def _set(self, environment: str, tenant: str, name: str, *, is_enabled: bool) -> Schedule:
        with self._database.begin() as connection:
            found = _find(connection, environment, tenant, name)
            if found.is_enabled == is_enabled:
                return found
            now_ms = self._database.now_ms(connection)
            next_due_ms = _next_due_ms(found.definition.timing, now_ms) if is_enabled else None
            connection.execute(
                update(schedules)
                .where(schedules.c.sequence == found.sequence)
                .values(is_enabled=is_enabled, next_due_ms=next_due_ms)
            )
            return _find(connection, environment, tenant, name)


def _create(connection: Connection, definition: ScheduleRequest, now_ms: int) -> Schedule:
    insert_if_absent(
        connection,
        schedules,
        {
            **{name: getattr(definition, name) for name in _DEFINITION},
            "cron": definition.timing.cron,
            "zone": definition.timing.zone,
            "is_enabled": True,
            "created_ms": now_ms,
            "next_due_ms": _next_due_ms(definition.timing, now_ms),
        },
    )
    found = _find(connection, definition.environment, definition.tenant, definition.name)
    if found.definition != definition:
        raise ConflictError(
            f"Tenant {definition.tenant} has another schedule {definition.name}.",
            remedy="Choose another name, or delete that one first.",
        )
    return found


def _find(connection: Connection, environment: str, tenant: str, name: str) -> Schedule:
    row = connection.execute(
        select(schedules).where(
            schedules.c.environment == environment, schedules.c.tenant == tenant, schedules.c.name == name
        )
    ).one_or_none()
    if row is None:
        raise NotFound(
            f"Tenant {tenant} has no schedule {name}.",
            remedy="See freezeframe schedule list.",
            code="SCHEDULE_NOT_FOUND",
        )
    return _schedule(row)


def _schedule(row: Row[Any]) -> Schedule:
    definition = ScheduleRequest(
        timing=Timing(row.cron, row.zone), **{name: getattr(row, name) for name in _DEFINITION}
    )
    return Schedule(
        row.sequence,
        definition,
        row.is_enabled,
        moment(row.created_ms),
        None if row.next_due_ms is None else moment(row.next_due_ms),
        None if row.last_due_ms is None else moment(row.last_due_ms),
    )


def _next_due_ms(timing: Timing, now_ms: int) -> int | None:
    found = timing.next_after(moment(now_ms))
    return None if found is None else milliseconds(found)
