"""How long does `freezeframe run` take: the first job of a day, the second, the third, and four at once?

The script is of the seed's shape: it reads a sync's CSV of 10,000 rows, brings it into a snapshot and
writes the whole content out, once in PySpark with the engine ``spark``, and once in pandas with ``auto``,
which starts no Spark. "Cold" is a day's first job with nothing running. The machine is set up as documented:
`freezeframe spark archive` is run before the first job ever. The whole command is measured, as a shell sees
it. `--runs N` repeats the warm ones; processor time of all that is below a command is beside the wall time,
because on a machine that does other things only that can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measured import RESULTS, batch, keep, rows, summary

ROWS, CHANGED = 10_000, 1_000
LIMITS_SECONDS = {"second": 1.5, "cold": 10.0, "four_at_once": 3.0}
TENANTS_AT_ONCE = 4
OF_THE_RUN = ("question", "machine", "python", "versions")
PYSPARK = """
import os
from pyspark.sql import functions as F
from freezeframe import update_snapshot
from freezeframe.gluestick import to_export
from freezeframe.script import read_csv_folder

root = os.environ["ROOT_DIR"]
leads = read_csv_folder(f"{root}/sync-output", as_="spark")["Lead"].where(F.col("Id") != "")
content = update_snapshot(f"{root}/snapshots", "Lead", "Id", leads)
to_export(content, "Lead", f"{root}/etl-output", export_format="csv")
"""
PANDAS = """
import os
import pandas as pd
from freezeframe import update_snapshot

root = os.environ["ROOT_DIR"]
leads = pd.read_csv(f"{root}/sync-output/Lead.csv", dtype={"Id": "string"}, parse_dates=["ModifiedAt"])
content = update_snapshot(f"{root}/snapshots", "Lead", "Id", leads)
content.to_csv(f"{root}/etl-output/Lead.csv", index=False)
print(len(content), "leads")
"""


class Farm:
    """A store, a script, and inputs of which each has other rows."""

    def __init__(self, folder: Path, script: str, **environment: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.script = folder / "etl.py"
        self.script.write_text(script)
        self.numbers = iter(range(1, 1000))
        self.environment = {
            **os.environ,
            "FREEZEFRAME_STATE_DIR": str(folder / "state"),
            "FREEZEFRAME_SPARK_IDLE_SECONDS": "600",
            **environment,
        }
        self.environment.pop("SPARK_REMOTE", None)

    def input(self, *, first: bool = False) -> Path:
        number = 0 if first else next(self.numbers)
        place = self.folder / f"input-{number}-{time.monotonic_ns()}"
        place.mkdir()
        frame = rows(range(ROWS), seed=1) if first else batch(number, ROWS, CHANGED)
        frame.to_csv(place / "Lead.csv", index=False)
        return place

    def command(self, tenant: str, place: Path) -> list[str]:
        name = [sys.executable, "-m", "freezeframe", "run", str(self.script), "--tenant", tenant]
        return [*name, "--root", str(self.folder / "store"), "--input", str(place)]

    def start(self, tenant: str, place: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command(tenant, place), env=self.environment, stdout=subprocess.PIPE)

    def job(self, tenant: str, *, first: bool = False) -> float:
        """Seconds of one command."""
        place = self.input(first=first)
        started = time.perf_counter()
        with self.start(tenant, place) as process:
            output, _ = process.communicate()
        seconds = time.perf_counter() - started
        assert process.returncode == 0, output.decode()
        print(f"  {tenant}: {seconds:.2f} s", flush=True)
        return seconds

    def at_once(self, tenants: list[str]) -> tuple[float, list[float]]:
        """Seconds until all have ended, and those of each."""
        places = [self.input() for _ in tenants]
        started = time.perf_counter()
        running = {self.start(*item): None for item in zip(tenants, places, strict=True)}
        ended: dict[int, float] = {}
        while len(ended) < len(running):
            for process in running:
                if process.pid not in ended and process.poll() is not None:
                    ended[process.pid] = time.perf_counter() - started
                    assert process.returncode == 0, process.stdout.read().decode()
                    process.stdout.close()
            time.sleep(0.005)
        return max(ended.values()), list(ended.values())

    def spark(self, *words: str) -> None:
        """Run a command of the group `spark`."""
        command = [sys.executable, "-m", "freezeframe", "spark", *words]
        subprocess.run(command, env=self.environment, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--cold-runs", type=int, default=3)
    arguments.add_argument("--only", choices=("alone", "asking"), help="one of the two, beside what was kept")
    given = arguments.parse_args()
    path = RESULTS / "jobs.json"
    kept = json.loads(path.read_text()) if given.only and path.exists() else {}
    result = {name: value for name, value in kept.items() if name not in OF_THE_RUN}
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as name:
        if given.only != "asking":
            farm = Farm(Path(name) / "alone", PANDAS, FREEZEFRAME_ENGINE="auto")
            result["without_spark"] = measure(farm, given.runs, given.cold_runs)
        if given.only != "alone":
            farm = Farm(Path(name) / "asking", PYSPARK)
            farm.spark("archive")
            result |= measure(farm, given.runs, given.cold_runs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    result |= {
        "rows": ROWS,
        "changed_rows": CHANGED,
        "processor_seconds_of_the_commands": round(used.ru_utime + used.ru_stime, 2),
        "limits_seconds": LIMITS_SECONDS,
        "passes": all(result[name]["median_seconds"] <= most for name, most in LIMITS_SECONDS.items()),
    }
    keep("jobs", result)
    return 0 if result["passes"] else 1


def measure(farm: Farm, runs: int, cold_runs: int) -> dict[str, object]:
    """The first job ever and two more, warm ones, four tenants at once, each day's first and second."""
    try:
        print("the first job ever: the tenant, its 10,000 rows, nothing running; then two more")
        first_ever = farm.job("acme", first=True)
        next_ones = [farm.job("acme"), farm.job("acme")]
        for tenant in tenants():
            farm.job(tenant, first=True)
        print("warm jobs")
        warm = [farm.job("acme") for _ in range(runs)]
        print(f"{TENANTS_AT_ONCE} jobs of {TENANTS_AT_ONCE} tenants at once")
        at_once = [farm.at_once(tenants()) for _ in range(3)]
        cold, second = [], []
        for _ in range(cold_runs):
            farm.spark("stop", "--now")
            print("a day's first job, and its second")
            cold.append(farm.job("acme"))
            second.append(farm.job("acme"))
    finally:
        farm.spark("stop", "--now")
    return {
        "first_job_ever_seconds": round(first_ever, 3),
        "second_and_third_job_ever_seconds": [round(next_one, 3) for next_one in next_ones],
        "cold": summary(cold),
        "second": summary(second),
        "warm": summary(warm),
        "four_at_once": summary([whole for whole, _ in at_once])
        | {"each": summary([item for _, each in at_once for item in each])},
    }


def tenants() -> list[str]:
    return [f"tenant-{number}" for number in range(TENANTS_AT_ONCE)]


if __name__ == "__main__":
    sys.exit(main())
