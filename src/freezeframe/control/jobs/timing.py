"""Due times of a cron expression in a time zone (pure, on top of croniter).

Days on which the clock is changed follow the rule of the usual cron daemons. A time of day that is skipped
is due at the first moment after the gap. A time that comes twice is due once, at its first coming; but where
the hour is ``*`` (every hour, every ten minutes) it is due at each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from croniter import croniter
from croniter.croniter import CroniterBadDateError, CroniterError

from freezeframe.errors import InvalidOption

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
        """The first due time after a moment, in UTC; None where there is none in many years."""
        return next(self._due(self._cron(moment).get_next), None)

    def due(self, since: datetime, now: datetime, missed: Missed) -> tuple[datetime, ...]:
        """The due times from ``since`` to ``now``, both included, that are to be made good.

        Args:
            since: a due time.
            now: not before it.
            missed: ``latest``, the last of them alone; ``all``, each, but at most the last 100.
        """
        limit = 1 if missed == "latest" else CAUGHT_UP_MAX
        found: list[datetime] = []
        # croniter goes by whole seconds and leaves out where it begins.
        end = self._cron(now.replace(microsecond=0) + timedelta(seconds=1))
        for moment in self._due(end.get_prev):
            if moment < since or len(found) == limit:
                break
            found.append(moment)
        return tuple(reversed(found))

    def _due(self, step: Callable[[], datetime]) -> Iterator[datetime]:
        with suppress(CroniterBadDateError):
            while True:
                found = step()
                if self._counts(found):
                    yield found.astimezone(UTC)

    def _cron(self, moment: datetime) -> croniter[datetime]:
        return croniter(self.cron, moment.astimezone(ZoneInfo(self.zone)), ret_type=datetime)

    def _counts(self, found: datetime) -> bool:
        """Whether it is not the second coming of a time of day that is due once."""
        every_hour = self.cron.split()[_HOUR].startswith("*")
        return every_hour or found.utcoffset() == found.replace(fold=0).utcoffset()

    def _timing_error(self, cause: str) -> InvalidOption:
        return InvalidOption(
            f"{self.cron!r} is not a schedule.",
            cause=cause,
            remedy="Write it as cron does: 0 6 * * 1-5, or @daily.",
        )
