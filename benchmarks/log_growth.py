"""How does the work of the log grow with what it holds? Each case at four sizes, each twice the one before.

A growth exponent of 1 is time in proportion to the size, 2 is quadratic; it is the slope through the least
times of the four sizes on logarithmic scales. The tests count the work (``tests/log/test_counted_work.py``);
here its seconds are told.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from log_load import append_commit, compact, make_table, tombstones, write_commit
from measured import keep

from freezeframe.log import DeltaLog
from freezeframe.log.segments.replay import FileState
from freezeframe.log.table.upkeep import write_checkpoint
from freezeframe.storage import LocalStorage

RUNS = 3
EXPONENT_MAX = 1.1
COMMITS = (1_000, 2_000, 4_000, 8_000)
TOMBSTONES = (125_000, 250_000, 500_000, 1_000_000)
UPDATES = (500, 1_000, 2_000, 4_000)
STRUCTS = (25_000, 50_000, 100_000, 200_000)


def main() -> int:
    cases = {
        "open_commits": (COMMITS, open_commits),
        "snapshot_at": (COMMITS, snapshot_at),
        "segment_deltas": (COMMITS, segment_deltas),
        "many_updates": (UPDATES, many_updates),
        "update_over_tombstones": (TOMBSTONES, update_over_tombstones),
        "struct_statistics": (STRUCTS, struct_statistics),
    }
    result = {}
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as folder:
        for name, (sizes, measure) in cases.items():
            seconds = [measure(Path(folder) / f"{name}-{size}", size) for size in sizes]
            result[name] = {
                "sizes": sizes,
                "seconds": [round(second, 5) for second in seconds],
                "exponent": round(slope(sizes, seconds), 2),
            }
    result["claims"] = {
        f"{name}: exponent at most {EXPONENT_MAX}": found["exponent"] <= EXPONENT_MAX
        for name, found in result.items()
    }
    keep("log_growth", result)
    return 0 if all(result["claims"].values()) else 1


def slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """The slope of the line of least squares on logarithmic scales."""
    return statistics.linear_regression(list(map(math.log, sizes)), list(map(math.log, seconds))).slope


def least(run: Callable[[], object]) -> float:
    """The least seconds of some runs."""
    found = []
    for _ in range(RUNS):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return min(found)


def small_commits(path: Path, count: int) -> None:
    make_table(path, 5)
    for number in range(5, count):
        write_commit(path / "_delta_log", number, 1)


def opened(path: Path) -> DeltaLog:
    return DeltaLog(LocalStorage(path))


def open_commits(path: Path, size: int) -> float:
    small_commits(path, size)
    return least(lambda: opened(path).current_snapshot.files)


def snapshot_at(path: Path, size: int) -> float:
    small_commits(path, size)
    log = opened(path)
    return least(lambda: log.snapshot_at(version=size - 2).count)


def segment_deltas(path: Path, size: int) -> float:
    small_commits(path, size)
    segment = opened(path).current_snapshot.segment
    middle = replace(segment.commits[size // 2])
    assert middle in segment.deltas
    return least(lambda: [segment.deltas for _ in range(20)])


def many_updates(path: Path, size: int) -> float:
    """Seconds of all updates of a log that follows commit after commit, with a checkpoint at each tenth.

    Without checkpoints an update lists all commits, as Delta's does, so that all together grow as the square.
    """
    make_table(path, 5)
    log = opened(path)
    assert log.current_snapshot.count == 5
    total = 0.0
    for number in range(5, size + 5):
        write_commit(path / "_delta_log", number, 1)
        started = time.perf_counter()
        snapshot = log.update()
        assert snapshot.count == number + 1
        total += time.perf_counter() - started
        if number % 10 == 0:
            write_checkpoint(snapshot)
    return total


def update_over_tombstones(path: Path, size: int) -> float:
    """Seconds of an update by one commit, with ``size`` tombstones beside 100,000 files."""
    make_table(path, 100_000)
    log = opened(path)
    state = log.current_snapshot.state
    kept = FileState.of(state.files.live, tombstones(size))
    log.current_snapshot.with_state(state.with_files(kept))
    found = []
    for _ in range(5 * RUNS):
        append_commit(path)
        started = time.perf_counter()
        log.update().count  # noqa: B018
        found.append(time.perf_counter() - started)
    return min(found)


def struct_statistics(path: Path, size: int) -> float:
    """Seconds to open a checkpoint whose statistics of ten columns are structs only, with all of them."""
    names = [f"c{number}" for number in range(10)]
    make_table(path, 5)
    log = opened(path)
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    properties = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    metadata = replace(
        log.current_snapshot.metadata,
        schema_string=compact({"type": "struct", "fields": fields}),
        partition_columns=(),
        configuration=properties,
    )
    lines = [compact({"metaData": metadata.to_json()})]
    for number in range(size):
        bounds = dict.fromkeys(names, number)
        stats = {
            "numRecords": 1,
            "minValues": bounds,
            "maxValues": bounds,
            "nullCount": dict.fromkeys(names, 0),
        }
        add = {"path": f"{uuid.uuid4()}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
        lines.append(compact({"add": add | {"dataChange": True, "stats": compact(stats)}}))
    (path / "_delta_log" / f"{5:020d}.json").write_text("\n".join(lines) + "\n")
    write_checkpoint(log.update())
    return least(lambda: opened(path).current_snapshot.files)


if __name__ == "__main__":
    sys.exit(main())
