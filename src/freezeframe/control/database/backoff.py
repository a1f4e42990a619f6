"""Delay of a failed job's next attempt (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.errors import InvalidOption

_DOUBLINGS_MAX = 32


@dataclass(frozen=True, slots=True)
class Backoff:
    """``first_seconds`` after the first attempt, twice as long after each further one, up to a limit."""

    first_seconds: float = 10.0
    seconds_max: float = 600.0

    def __post_init__(self) -> None:
        if not 0 <= self.first_seconds <= self.seconds_max:
            raise InvalidOption(
                f"A wait of {self.first_seconds} s cannot grow to {self.seconds_max} s.",
                remedy="Pass a first wait of at least 0 that is no longer than the longest.",
            )

    def seconds_after(self, attempts: int) -> float:
        """The wait after so many attempts, 1 or more."""
        return min(self.first_seconds * 2.0 ** min(attempts - 1, _DOUBLINGS_MAX), self.seconds_max)
