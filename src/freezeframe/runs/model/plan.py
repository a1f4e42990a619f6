"""Messages between a run and its script's process: two files in the job's root.

Both are written whole under another name first, so a reader finds all of one or nothing. The plan holds
what is secret (the settings with the way to the master key), so its mode is 0600 and the script's process
removes it before the script begins.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from freezeframe.errors import SetupError
from freezeframe.runs.model.job_root import JobRoot
from freezeframe.runs.model.request import RunRequest, parse_run_request
from freezeframe.settings import Settings
from freezeframe.storage.safe_open import open_regular

_PLAN, _RESULT = "plan.json", "result.json"


@dataclass(frozen=True, slots=True)
class ScriptPlan:
    """The request to carry out, the settings, and the process that watches over it."""

    request: RunRequest
    settings: Settings
    supervisor: int

    def write(self, root: JobRoot) -> None:
        """Write it for the script's process."""
        record = {
            "request": self.request.to_json(),
            "settings": self.settings.model_dump(mode="json"),
            "supervisor": self.supervisor,
        }
        _write(root.own / _PLAN, record)


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """How the script's process ended in its own words: a receipt, or an error and an exit code.

    ``jvm_stack`` is what Spark's JVM said of the error, for the end of the log; ``remarks`` are for the
    report.
    """

    receipt: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    exit_code: int
    jvm_stack: str = ""
    remarks: Sequence[str] = ()

    def write(self, root: JobRoot) -> None:
        """Write it for the run."""
        _write(root.own / _RESULT, asdict(self))


def take_plan(root: JobRoot) -> ScriptPlan:
    """Read the plan and remove it."""
    file = root.own / _PLAN
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        file.unlink()
        return ScriptPlan(
            parse_run_request(record["request"]), Settings(**record["settings"]), int(record["supervisor"])
        )
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise SetupError(
            f"{root.path} holds no job to run.",
            cause=str(error),
            remedy="Run scripts by freezeframe run; this program is a part of it.",
        ) from error


def read_result(root: JobRoot) -> ScriptResult | None:
    """The result that the script's process wrote; None if it ended without one."""
    try:
        with open_regular(root.path, f"{root.own.name}/{_RESULT}") as file:
            return ScriptResult(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, record: Mapping[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=False, default=str)
    draft.replace(path)
