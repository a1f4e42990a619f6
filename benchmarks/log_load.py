"""How long does it take, and how much memory, to know what a table with a long log holds?

The same tables are opened by freezeframe, by delta-rs and by Delta's own ``DeltaLog`` on the JVM:
300,000 files in JSON commits without a checkpoint (100 columns, partitioned, no statistics: the
shape of a table that the Delta projects measure with), the same with a classic checkpoint, both
again for a narrow table with statistics (read with them as well), 8,000 commits without a checkpoint,
1,000,000 files, and one new commit on these, with 1,000,000 tombstones beside. Each
load of ours and of delta-rs is a process of its own, in turn; its peak memory is the process's,
with the interpreter in it. The JVM is started and warmed up first, so its start is not counted.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
from delta_merge import DELTA, spark_session
from measured import keep, seconds_of

from freezeframe.log.format.action_columns import TOMBSTONE_SCHEMA
from freezeframe.log.segments.replay import FileState

FILES = 300_000
MANY_FILES = 1_000_000
COMMITS = 5
RUNS = 5
NO_OP_UPDATES = 200


def compact(value: object) -> str:
    """As Delta's writers write it: without a space."""
    return json.dumps(value, separators=(",", ":"))


WIDE = [("day", "date"), *((f"c{number}", "string") for number in range(99))]
NARROW = [("Id", "string"), ("amount", "long"), ("day", "date")]
STATISTICS = compact(
    {
        "numRecords": 1000,
        "minValues": {"Id": "00Q000000001", "amount": 1, "day": "2026-01-01"},
        "maxValues": {"Id": "00Q999999999", "amount": 999999, "day": "2026-12-31"},
        "nullCount": {"Id": 0, "amount": 3, "day": 7},
    }
)
SCENARIOS = ("json", "checkpoint", "one_commit_on_a_million")
LOADS = ("json", "checkpoint", "json_with_statistics", "checkpoint_with_statistics")
MANY_COMMITS = 8_000
MILLION = "one_commit_on_a_million"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as folder:
        root = Path(folder)
        tables = {name: root / name for name in (*LOADS, MILLION)}
        for suffix in ("", "_with_statistics"):
            plain, checkpointed = tables[f"json{suffix}"], tables[f"checkpoint{suffix}"]
            make_table(plain, FILES, with_statistics=bool(suffix))
            shutil.copytree(plain, checkpointed)
            checkpoint(checkpointed)
        make_table(tables[MILLION], MANY_FILES)
        commits, million = root / "commits", root / "million"
        make_table(commits, COMMITS)
        for number in range(COMMITS, MANY_COMMITS):
            write_commit(commits / "_delta_log", number, 1)
        shutil.copytree(tables[MILLION], million)
        checkpoint(million)
        result = {name: compare_loads(tables[name]) for name in LOADS}
        result["checkpoint_and_its_statistics"] = compare_loads(tables[LOADS[-1]], "files")
        result["commits"] = compare_loads(commits)
        result["million_json"] = compare_loads(tables[MILLION], runs=2)
        result["million_checkpoint"] = compare_loads(million, runs=2)
        result[MILLION] = compare_updates(tables[MILLION])
        result["no_op_update_ms"] = no_op_update_ms(tables["checkpoint"])
        for name, seconds in jvm_seconds(tables).items():
            result[name]["jvm_seconds"] = seconds
    result["versions"] = {"deltalake": version("deltalake"), "delta-spark": DELTA}
    result["claims"] = claims(result)
    keep("log_load", result)
    return 0 if all(result["claims"].values()) else 1


def claims(result: dict) -> dict[str, bool]:
    plain, checkpointed, many = (result[name] for name in SCENARIOS)
    narrow = result["checkpoint_with_statistics"]
    return {
        "json: at most half of delta-rs's time": plain["seconds_ratio"] <= 0.5,
        "json: at most 60 % of delta-rs's peak memory": plain["memory_ratio"] <= 0.6,
        "checkpoint: at most delta-rs's time": checkpointed["seconds_ratio"] <= 1.0,
        "no-op update under 1 ms": result["no_op_update_ms"] < 1.0,
        "8,000 commits: at most delta-rs's time": result["commits"]["seconds_ratio"] <= 1.0,
        "narrow with statistics: ahead of delta-rs in time": narrow["seconds_ratio"] < 1.0,
        "narrow with statistics: ahead of delta-rs in memory": narrow["memory_ratio"] < 1.0,
        "a million files within 400 MB": max(
            result[name]["freezeframe"]["peak_mib"] for name in ("million_json", "million_checkpoint")
        )
        * 1.048576
        <= 400,
        "one new commit beside 1,000,000 tombstones: under 20 ms": many["update_over_tombstones_seconds"]
        < 0.02,
        "one new commit: at most 1/50 of the cold load": many["update_to_cold_ratio"] <= 1 / 50,
        "json: faster than the JVM": plain["freezeframe"]["seconds"] < plain["jvm_seconds"]["load"],
        "checkpoint: faster than the JVM": checkpointed["freezeframe"]["seconds"]
        < checkpointed["jvm_seconds"]["load"],
        "one new commit: faster than the JVM": many["update_seconds"] < many["jvm_seconds"]["update"],
    }


def make_table(path: Path, files: int, *, with_statistics: bool = False) -> None:
    log = path / "_delta_log"
    log.mkdir(parents=True)
    columns = NARROW if with_statistics else WIDE
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    first = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": compact({"type": "struct", "fields": fields}),
                "partitionColumns": [] if with_statistics else ["day"],
                "configuration": {},
                "createdTime": 1,
            }
        },
    ]
    each = files // COMMITS
    for number in range(COMMITS):
        with (log / f"{number:020d}.json").open("w") as commit:
            commit.write(compact({"commitInfo": {"timestamp": number, "operation": "WRITE"}}) + "\n")
            commit.writelines(compact(action) + "\n" for action in first if number == 0)
            commit.writelines(
                add_line(number * each + index, with_statistics=with_statistics) for index in range(each)
            )


def add_line(number: int, *, with_statistics: bool = False) -> str:
    day = f"2026-{number % 12 + 1:02d}-{number % 28 + 1:02d}"
    name = f"part-{number:05d}-{uuid.UUID(int=number * 0x9E3779B97F4A7C15)}-c000.snappy.parquet"
    add = {
        "path": name if with_statistics else f"day={day}/{name}",
        "partitionValues": {} if with_statistics else {"day": day},
        "size": 1_000_000 + number,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
    }
    if with_statistics:
        add["stats"] = STATISTICS
    return compact({"add": add}) + "\n"


def append_commit(path: Path, adds: int = 10) -> None:
    log = path / "_delta_log"
    newest = max(int(file.name[:20]) for file in log.glob("*.json"))
    write_commit(log, newest + 1, adds)


def write_commit(log: Path, number: int, adds: int) -> None:
    lines = compact({"commitInfo": {"timestamp": number, "operation": "WRITE"}}) + "\n"
    lines += "".join(add_line(10**8 + number * 10 + index) for index in range(adds))
    (log / f"{number:020d}.json").write_text(lines)


def checkpoint(path: Path) -> None:
    from freezeframe.log import DeltaLog
    from freezeframe.log.table.upkeep import write_checkpoint

    write_checkpoint(DeltaLog(storage_of(path)).update())


def storage_of(path: Path):
    from freezeframe.storage import LocalStorage

    return LocalStorage(path)


OURS = """
import sys, time
started = time.perf_counter()
from freezeframe.log import DeltaLog
imported = time.perf_counter()
count = getattr(DeltaLog.for_table(sys.argv[1]).update(), sys.argv[2]).num_rows
seconds = time.perf_counter() - imported
"""
THEIRS = """
import sys, time
from deltalake import DeltaTable
imported = time.perf_counter()
table = DeltaTable(sys.argv[1])
seconds = time.perf_counter() - imported
count = table.version()
"""
# getrusage would tell the parent's peak where that is higher: a new program inherits it.
REPORT = """
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, peak, count)
"""


def compare_loads(path: Path, what: str = "file_list", runs: int = RUNS) -> dict:
    found: dict[str, list[tuple[float, float]]] = {"freezeframe": [], "delta-rs": []}
    for _ in range(runs + 1):
        for name, code in (("freezeframe", OURS), ("delta-rs", THEIRS)):
            done = subprocess.run(
                [sys.executable, "-c", code + REPORT, path, what],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            seconds, kilobytes, _count = done.stdout.split()
            found[name].append((float(seconds), float(kilobytes) / 1024))
    medians = {
        name: {
            "seconds": round(statistics.median(run[0] for run in runs[1:]), 3),
            "peak_mib": round(statistics.median(run[1] for run in runs[1:]), 1),
        }
        for name, runs in found.items()
    }
    ours, theirs = medians["freezeframe"], medians["delta-rs"]
    pairs = zip(found["freezeframe"][1:], found["delta-rs"][1:], strict=True)
    return {
        **medians,
        "seconds_ratio": round(statistics.median(a[0] / b[0] for a, b in pairs), 3),
        "memory_ratio": round(ours["peak_mib"] / theirs["peak_mib"], 3),
    }


def compare_updates(path: Path) -> dict:
    """In a child, so that its memory is its own: one cold load, then updates by one commit each."""
    command = [sys.executable, __file__, "updates", path]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def measure_updates(path: Path) -> dict[str, float]:
    from freezeframe.log import DeltaLog

    started = time.perf_counter()
    log = DeltaLog(storage_of(path))
    files = log.current_snapshot.files.num_rows
    cold = time.perf_counter() - started

    def updates() -> float:
        found = []
        for _ in range(RUNS):
            append_commit(path)
            found.append(seconds_of(log.update))
        return statistics.median(found)

    update = updates()
    assert log.current_snapshot.count == files + 10 * RUNS
    state = log.current_snapshot.state
    beside = FileState.of(state.files.live, tombstones(MANY_FILES))
    log.current_snapshot.with_state(state.with_files(beside))
    return {
        "cold_seconds": round(cold, 3),
        "update_seconds": round(update, 5),
        "update_to_cold_ratio": round(update / cold, 5),
        "update_over_tombstones_seconds": round(updates(), 5),
    }


def tombstones(count: int):
    """Removed files that are not expired."""
    paths = pa.array([f"part-{number}-{uuid.UUID(int=number)}.parquet" for number in range(count)])
    kinds = {field.name: pa.nulls(count, field.type) for field in TOMBSTONE_SCHEMA}
    moment = pa.array([int(time.time() * 1000)] * count)
    return pa.table(kinds | {"path": paths, "deletion_timestamp": moment}, schema=TOMBSTONE_SCHEMA)


def no_op_update_ms(path: Path) -> float:
    from freezeframe.log import DeltaLog

    log = DeltaLog(storage_of(path))
    return round(statistics.median(seconds_of(log.update) for _ in range(NO_OP_UPDATES)) * 1000, 4)


def jvm_seconds(tables: dict[str, Path]) -> dict[str, dict[str, float]]:
    """Delta's ``DeltaLog`` through the classic session: load = update() and its list of files, counted."""
    spark = spark_session()
    delta_log = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    session = spark._jsparkSession

    def open_log(path: Path):
        return delta_log.forTable(session, str(path))

    def load(path: Path) -> float:
        delta_log.clearCache()
        started = time.perf_counter()
        open_log(path).unsafeVolatileSnapshot().allFiles().count()
        return time.perf_counter() - started

    found = {}
    for name in LOADS:
        times = [load(tables[name]) for _ in range(RUNS)]
        found[name] = {"load": round(statistics.median(times[2:]), 3)}
    many = tables["one_commit_on_a_million"]
    cold = load(many)
    log = open_log(many)
    updates = []
    for _ in range(RUNS):
        append_commit(many)
        started = time.perf_counter()
        log.update(False, spark._jvm.scala.Option.empty(), spark._jvm.scala.Option.empty())
        updates.append(time.perf_counter() - started)
    found["one_commit_on_a_million"] = {
        "load": round(cold, 3),
        "update": round(statistics.median(updates), 5),
    }
    spark.stop()
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["updates"]:
        print(json.dumps(measure_updates(Path(sys.argv[2]))))
        sys.exit(0)
    sys.exit(main())
