"""The result of one check of a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from freezeframe.errors import FreezeframeError

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: ``ok``, ``warning`` (jobs run, with a defect) or ``error`` (they do not)."""

    part: str
    level: Level
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """All fields by name, and whether jobs can run."""
        return {
            "part": self.part,
            "ok": self.level != "error",
            "level": self.level,
            "found": self.found,
            "remedy": self.remedy,
        }


def looked_at(part: str, look: Callable[[], Finding]) -> Finding:
    """The finding of a check; an error of the check itself is a finding too."""
    try:
        return look()
    except FreezeframeError as error:
        return Finding(part, "error", f"{error.problem} {error.cause}".strip(), error.remedy)
    except OSError as error:
        return Finding(part, "error", str(error), "check who may read and write there, and the disk itself")
