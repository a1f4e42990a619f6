"""One job of the demo: its folder, its script's process, and its receipt."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from freezeframe.errors import FreezeframeError
from freezeframe.script.tenant.tenants import open_tenant
from freezeframe.store import Tenant
from freezeframe.store.model.row_counts import Counts

_ERROR_LINES_MAX = 12


@dataclass(frozen=True, slots=True)
class StreamChange:
    """What one job did to one stream; ``seconds`` is the update alone."""

    stream: str
    version: int
    rows: int
    counts: Counts
    seconds: float


@dataclass(frozen=True, slots=True)
class JobReport:
    """What one job did to its tenant.

    ``seconds`` is the whole process, Python's start included; ``spark_seconds`` is the part until it had a
    Spark session.
    """

    tenant: str
    job: int
    seconds: float
    changes: tuple[StreamChange, ...]
    spark_version: str
    spark_seconds: float


class TenantFolder:
    """A tenant of the demo: the folder that its jobs find as ``ROOT_DIR``."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.path = root / name
        self._jobs = 0

    @property
    def snapshots(self) -> Path:
        """The folder of what is kept between two jobs."""
        return self.path / "snapshots"

    def tenant(self) -> Tenant:
        """The tenant, opened on its snapshots folder."""
        return open_tenant(self.snapshots)

    def run(self, bring_input: Callable[[Path], None]) -> JobReport:
        """Empty ``sync-output``, let the sync fill it, run the script, and say what changed.

        Raises:
            FreezeframeError: the script failed; the cause holds the end of what it printed.
        """
        self._jobs += 1
        shutil.rmtree(self.path / "sync-output", ignore_errors=True)
        self.path.mkdir(parents=True, exist_ok=True)
        bring_input(self.path / "sync-output")
        script = self.path / "etl.py"
        script.write_text(files("freezeframe.cli.demo").joinpath("etl.py").read_text(encoding="utf-8"))
        before = self.tenant().version
        started = time.monotonic()
        self._run_script(script)
        seconds = time.monotonic() - started
        spark = json.loads((self.path / "etl-output" / "spark.json").read_text(encoding="utf-8"))
        changes = tuple(self._changes_since(before))
        return JobReport(self.name, self._jobs, seconds, changes, spark["version"], spark["seconds"])

    def _run_script(self, script: Path) -> None:
        environment = {
            **os.environ,
            "ROOT_DIR": str(self.path),
            "TENANT": self.name,
            "JOB_ID": f"{self.name}-{self._jobs}",
        }
        done = subprocess.run(  # noqa: S603 - the script is the one written above
            [sys.executable, str(script)],
            env=environment,
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            printed = (done.stdout + done.stderr).strip().splitlines()
            raise FreezeframeError(
                f"The script of tenant {self.name} failed in job {self._jobs}.",
                cause="\n".join(printed[-_ERROR_LINES_MAX:]),
                remedy="Correct what it says and run the demo again.",
            )

    def _changes_since(self, version: int) -> list[StreamChange]:
        tenant = self.tenant()
        counts = {
            stream: changed
            for entry in tenant.history(limit=tenant.version - version)
            for stream, changed in entry.streams.items()
        }
        with (self.path / "etl-output" / "updates.csv").open(encoding="utf-8", newline="") as text:
            updates = list(csv.DictReader(text))
        return [
            StreamChange(
                stream=update["stream"],
                version=tenant.stream(update["stream"]).version(),
                rows=tenant.stream(update["stream"]).row_count(),
                # An update that changes nothing makes no version: all that was sent is as it was.
                counts=counts.get(update["stream"], Counts(unchanged=int(update["rows_sent"]))),
                seconds=float(update["seconds"]),
            )
            for update in updates
        ]
