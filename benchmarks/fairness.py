"""Does a large tenant's update hold up the small ones of others on the same warm Spark server?

64 tenants have 10,000 rows each and send 1,000; some of them at a time, each in a process that serves many
tenants. They do so alone, and while one large tenant updates 1,000,000 rows by 100,000 again and again.
How long the large one's tasks take is read from Spark's log of events: its tasks are those that read more
rows than a small tenant has. A small update is delayed by the difference of its medians.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from measured import batch, keep, rows

TENANTS = 64
SMALL, LARGE = (10_000, 1_000), (1_000_000, 100_000)
ROUNDS = 3
EVENTS = """\
spark.eventLog.enabled true
spark.eventLog.dir {folder}
spark.eventLog.compress false
spark.eventLog.rolling.enabled false
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=TENANTS)
    parser.add_argument("--at-once", type=int, default=2, help="small updates that run at any moment")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="each tenant's updates of each kind")
    parser.add_argument("--no-keep", action="store_true", help="leave the results of before")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as name:
        result = measure(Path(name), given.tenants, given.at_once, given.rounds)
    if given.no_keep:
        print(json.dumps(result, indent=2))
    else:
        keep("fairness", result)
    return 0 if result["passes"] else 1


def measure(root: Path, tenants: int, at_once: int, rounds: int) -> dict[str, Any]:
    log_events(root)
    names = [f"small-{number}" for number in range(tenants)]
    small = [Helper(root, names[first::at_once], SMALL) for first in range(at_once)]
    large = Helper(root, ["large"], LARGE)
    try:
        for helper in [*small, large]:
            helper.call("fill")
        in_turns(small, "round")
        large.call("round")
        alone, beside, of_large = [], [], []
        for number in range(rounds):
            alone += in_turns(small, "round")
            print(f"round {number}, alone: {percentiles(alone)}", flush=True)
            large.tell("loop")
            beside += in_turns(small, "round")
            large.tell("end")
            of_large += large.answer()
            print(
                f"round {number}, beside: {percentiles(beside)}, large: {percentiles(of_large)}", flush=True
            )
        tasks = large_tasks(root / "events")
        unheld = [large.call("round")[0] for _ in range(3)]
    finally:
        for helper in [*small, large]:
            helper.close()
        stop = [sys.executable, "-m", "freezeframe", "spark", "stop", "--now"]
        subprocess.run(stop, check=True, stdout=subprocess.DEVNULL)
    delay = statistics.median(beside) - statistics.median(alone)
    return {
        "tenants": tenants,
        "at_once": at_once,
        "rows": {"small": SMALL, "large": LARGE},
        "small_alone": percentiles(alone),
        "small_beside_a_large_one": percentiles(beside),
        "delay_seconds": round(delay, 4),
        "large_alone": percentiles(unheld),
        "large_beside_small_ones": percentiles(of_large),
        "large_tasks": percentiles(tasks) | {"mean_seconds": round(statistics.mean(tasks), 4)},
        "passes": delay < statistics.mean(tasks),
    }


class Helper:
    """A process that updates tenants, one after the other, when it is told to."""

    def __init__(self, root: Path, tenants: list[str], size: tuple[int, int]) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, root, tenants, size))
        self._process.start()

    def tell(self, command: str) -> None:
        self._ours.send(command)

    def answer(self) -> list[float]:
        """The seconds of the updates that the command led to."""
        found: list[float] = self._ours.recv()
        return found

    def call(self, command: str) -> list[float]:
        self.tell(command)
        return self.answer()

    def close(self) -> None:
        self.tell("close")
        self._process.join(60)


def in_turns(helpers: list[Helper], command: str) -> list[float]:
    """What all of them do at the same time."""
    for helper in helpers:
        helper.tell(command)
    return [seconds for helper in helpers for seconds in helper.answer()]


def serve(orders: Connection, root: Path, tenants: list[str], size: tuple[int, int]) -> None:
    """Carry out the commands of a ``Helper``."""
    from freezeframe import open_tenant

    stored, sent = size
    streams = [open_tenant(root / tenant).stream("Lead") for tenant in tenants]
    batches = [pa.Table.from_pandas(batch(number, stored, sent)) for number in range(8)]
    turn = 0
    while (command := orders.recv()) != "close":
        seconds: list[float] = []
        if command == "fill":
            table = pa.Table.from_pandas(rows(range(stored), seed=1))
            seconds = [updated(stream, table) for stream in streams]
        while command == "round" or (command == "loop" and not orders.poll()):
            sent_now = changed(batches[turn % len(batches)], turn)
            seconds += [updated(stream, sent_now) for stream in streams]
            turn += 1
            if command == "round":
                break
        if command == "loop":
            assert orders.recv() == "end"
        orders.send(seconds)


def changed(table: pa.Table, turn: int) -> pa.Table:
    """The rows with other values than in any turn before."""
    place = table.column_names.index("Visits")
    return table.set_column(place, "Visits", pc.add(table["Visits"], turn))


def updated(stream: Any, table: pa.Table) -> float:
    """Seconds of one update."""
    began = time.perf_counter()
    stream.update(table, key="Id")
    return time.perf_counter() - began


def log_events(root: Path) -> None:
    """Make Spark servers from now on log their events below ``root``, and be those of this run alone."""
    for name in ("events", "conf"):
        (root / name).mkdir()
    settings = EVENTS.format(folder=(root / "events").as_uri())
    (root / "conf" / "spark-defaults.conf").write_text(settings)
    os.environ["SPARK_CONF_DIR"] = str(root / "conf")
    os.environ["FREEZEFRAME_STATE_DIR"] = str(root / "state")
    os.environ["FREEZEFRAME_ENGINE"] = "spark"


def large_tasks(folder: Path) -> list[float]:
    """The seconds of the tasks that read more rows than a small tenant has."""
    (log,) = folder.iterdir()
    found = (json.loads(line) for line in log.read_text().rpartition("\n")[0].splitlines())
    tasks = [item for item in found if item["Event"] == "SparkListenerTaskEnd" and item.get("Task Metrics")]
    return [
        (task["Task Info"]["Finish Time"] - task["Task Info"]["Launch Time"]) / 1000
        for task in tasks
        if task["Task Metrics"]["Input Metrics"]["Records Read"] > 4 * SMALL[0]
    ]


def percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "count": len(ordered),
        "median_seconds": round(statistics.median(ordered), 4),
        "p95_seconds": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 4),
        "most_seconds": round(ordered[-1], 4),
    }


if __name__ == "__main__":
    sys.exit(main())
