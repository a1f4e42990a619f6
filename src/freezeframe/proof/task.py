"""The context of a running proof: its scratch folder, deadline and counts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from freezeframe.proof.place import Place, clear

_TOLD_MAX = 10  # one violation is enough


@dataclass(slots=True)
class Task:
    """Context of a proof, which also counts its trials and violations."""

    place: Place
    seed: str
    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic

    def rounds(self) -> Iterator[tuple[Place, Random]]:
        """A new folder and a random source for each round: one, and more while there is time for the longest.

        Ends after a round in which a violation was seen. The folders are cleared.
        """
        began = self.clock()
        ends, longest, number = began + self.seconds, 0.0, 0
        while number == 0 or (began + longest <= ends and not self.violations):
            place = self.place.within(f"round-{number}")
            yield place, Random(f"{self.seed}/{number}")  # noqa: S311 - repeated by its seed
            clear(place)
            began, last = self.clock(), began
            longest = max(longest, began - last)
            number += 1

    def require(self, kept: bool, seen: str) -> None:  # noqa: FBT001 - reads as the sentence that it is
        """Report ``seen`` unless ``kept``."""
        if not kept:
            self.report(seen)

    def report(self, seen: str) -> None:
        """Note a violation."""
        if len(self.violations) < _TOLD_MAX:
            self.violations.append(seen)
