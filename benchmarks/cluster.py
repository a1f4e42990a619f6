"""What does a cluster cost? The same update on one machine's own Spark, and on a standalone cluster.

Both have two cores and as much memory in all on the same machine: ``local[2]``, and a driver beside two
workers of one core each, so that what differs is the way between processes. They take turns with the same
batches. 5,000,000 rows <- 500,000 by default; ``--rows 1000000 --sent 100000`` tells whether all works.

Two routes: ``patch`` is an upsert, of which Spark finds the rows; ``merge`` is a full extract, of which
Spark joins, shuffles and writes all rows.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from measured import keep, summary
from processes import processor_seconds
from sizing_page import write_sizing
from spark_cluster import standalone_cluster
from update_data import KEY, Rows, digest, write_rows

LIMIT = 1.3
MIB = 2**20
LOCAL_MEMORY, DRIVER_MEMORY, EXECUTOR_MEMORY = "4g", "1g", "1536m"
ROUTES = ("patch", "merge")


def main() -> int:
    options = _options()
    rows = Rows(options.rows, options.sent)
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        turns = options.warm_up + options.turns
        write_rows(rows, turns, folder / "rows")
        _tell("the rows are written")
        batches = [folder / "rows" / f"batch-{number}.parquet" for number in range(turns)]
        routes = {}
        with standalone_cluster(folder, EXECUTOR_MEMORY) as (master, workers):
            racers = [
                Racer("local", "auto", LOCAL_MEMORY, folder, ()),
                Racer("cluster", master, DRIVER_MEMORY, folder, workers),
            ]
            try:
                _filled(racers, folder)
                for route in options.routes:
                    routes[route] = _raced(route, racers, batches, options.warm_up)
            finally:
                for racer in racers:
                    racer.close()
    result = {
        "rows": {"stored": rows.stored, "batch": rows.sent},
        "memory": {"local": LOCAL_MEMORY, "driver": DRIVER_MEMORY, "each of two executors": EXECUTOR_MEMORY},
        "warm_up": options.warm_up,
        "limit": LIMIT,
        "routes": routes,
    }
    if options.keep:
        keep("cluster", result)
        write_sizing()
    return int(any(route["cluster_to_local"] > LIMIT for route in routes.values()))


@dataclass
class Racer:
    """One way to reach Spark, with a store of its own and what its turns took."""

    name: str
    spark: str
    memory: str
    folder: Path
    workers: Sequence[int]
    """Processes below which its executors are."""
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0

    def __post_init__(self) -> None:
        from freezeframe.engine.protocol import DeferredEngine
        from freezeframe.engine.spark import SparkEngine
        from freezeframe.settings import Settings

        state = self.folder / f"{self.name}-state"
        self._settings = Settings(
            spark=self.spark,
            spark_memory=self.memory,
            state_dir=state,
            spark_idle_seconds=5,
            engine="spark",  # where Spark is makes no difference to what it is not asked
        )
        self._engine = DeferredEngine(lambda: SparkEngine(self._settings))

    @property
    def data(self) -> Path:
        return self.folder / self.name

    def close(self) -> None:
        self._engine.close()

    @property
    def stream(self) -> Any:
        """A stream that nobody has read yet: what is kept of an earlier one is no part of an update."""
        from freezeframe.storage import LocalStorage
        from freezeframe.store import Tenant

        return Tenant(LocalStorage(self.data), self._engine, self._settings).stream("Lead")

    def begin(self) -> None:
        self.seconds, self.processor_seconds, self.peak_bytes = [], [], 0

    def turn(self, batch: pa.Table, **options: Any) -> tuple[int, ...]:
        """One update; its counts."""
        stream = self.stream
        processor, began = self._used(), time.perf_counter()
        receipt = stream.update(batch, key=[KEY], **options)
        self.seconds.append(time.perf_counter() - began)
        self.processor_seconds.append(self._used() - processor)
        self.peak_bytes = max(self.peak_bytes, self._bytes())
        return receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted

    def digest(self) -> str:
        return digest(self.stream.read(as_="arrow"))

    def _processes(self) -> list[psutil.Process]:
        """Spark's processes of this way: its server, and what is below its workers."""
        from freezeframe.engine.server.server import running_servers

        found = [psutil.Process(standing.process) for standing in running_servers(self._settings)]
        for worker in self.workers:
            found += psutil.Process(worker).children(recursive=True)
        return found

    def _used(self) -> float:
        """Processor seconds of Spark's processes and of this one."""
        return processor_seconds([psutil.Process(), *self._processes()])

    def _bytes(self) -> int:
        total = 0
        for process in self._processes():
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total


def _filled(racers: Sequence[Racer], folder: Path) -> None:
    """The same stored rows for all: written once, and copied."""
    first, *others = racers
    first.turn(pq.read_table(folder / "rows" / "stored.parquet"))
    for other in others:
        shutil.copytree(first.data, other.data)
    _tell("the streams are filled")


def _raced(route: str, racers: Sequence[Racer], batches: Sequence[Path], warm_up: int) -> dict[str, Any]:
    """Each batch by each of them, in turns; who begins changes."""
    # A full extract that lacks most rows deletes them, so it is flagged: then all rows stay, and are written.
    options = {} if route == "patch" else {"mode": "full", "deletes": "flag", "max_delete_ratio": 1.0}
    for racer in racers:
        racer.begin()
    for number, path in enumerate(batches):
        batch = pq.read_table(path)
        told = []
        first = number % len(racers)
        for racer in [*racers[first:], *racers[:first]]:
            told.append(racer.turn(batch, **options))
            _tell(f"{route} {number + 1}, {racer.name}: {racer.seconds[-1]:.2f} s")
        assert told[1:] == told[:-1], told
    assert len({racer.digest() for racer in racers}) == 1
    local, cluster = (statistics.median(racer.seconds[warm_up:]) for racer in racers)
    processor = [statistics.median(racer.processor_seconds[warm_up:]) for racer in racers]
    return {
        "cluster_to_local": round(cluster / local, 2),
        "cluster_to_local_processor": round(processor[1] / processor[0], 2),
        **{
            racer.name: {
                **summary(racer.seconds[warm_up:]),
                "median_processor_seconds": round(used, 2),
                "spark_mib": racer.peak_bytes // MIB,
            }
            for racer, used in zip(racers, processor, strict=True)
        },
    }


_BEGAN = time.monotonic()


def _tell(text: str) -> None:
    print(f"{time.monotonic() - _BEGAN:7.1f} s  {text}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000, help="how many are stored (default 5,000,000)")
    parser.add_argument("--sent", type=int, default=500_000, help="how many are in a batch (default 500,000)")
    parser.add_argument("--turns", type=int, default=5, help="counted turns of each (default 5)")
    parser.add_argument("--warm-up", type=int, default=3, help="turns before those (default 3)")
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=["patch"], help="default: patch")
    parser.add_argument("--no-keep", dest="keep", action="store_false", help="leave the results file alone")
    return parser.parse_args()


def _stop(*_signal: object) -> None:
    raise SystemExit("stopped")


if __name__ == "__main__":
    # Whoever stops this shall find nothing of Spark still running.
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main())
