"""The result of one proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ProofResult:
    """Result of a proof: the promise, counts, and violations."""

    name: str
    promise: str
    counts: Mapping[str, int]
    violations: tuple[str, ...]
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether something was tried and no violation was seen."""
        return bool(self.counts) and not self.violations

    def to_json(self) -> dict[str, Any]:
        """All fields by name, and the verdict."""
        return {
            "name": self.name,
            "verdict": "kept" if self.is_kept else "broken",
            "promise": self.promise,
            "counts": dict(self.counts),
            "violations": list(self.violations),
            "seconds": round(self.seconds, 1),
        }
