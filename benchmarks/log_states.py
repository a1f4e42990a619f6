"""How large a state does one process hold: memory and time of a table with a million files and with five?

Each step is a process of its own, so that its peak memory is its own, with the interpreter in it: the
state from JSON commits, the writing of a checkpoint, the state from it, the choice of files by a key and by
the 10,000 keys of a batch, one new commit on a loaded state. In each turn every step runs once; of a step
only itself is counted, not what it begins from.
Files have names and statistics as ours have. Results are merged: ``--only 5m --steps load`` measures one;
``--turns 1 --only 5m`` is what a quarter of an hour of a quiet machine is enough for.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from log_load import NARROW, append_commit, compact
from measured import RESULTS, keep, machine
from scale import processor_seconds

SIZES = {"1m": 1_000_000, "5m": 5_000_000}
# Each begins from the checkpoint that the one before left, or from commits alone.
FROM_COMMITS = ("load", "checkpoint")
FROM_CHECKPOINT = ("load_of_checkpoint", "skip", "search", "update")
TURNS = 3
WARM_UP_FILES = 10_000
COMMITS = 10
FIRST = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.step:
        print(json.dumps(measured(*wanted.step)))
        return 0
    path = RESULTS / "log_states.json"
    sizes = json.loads(path.read_text())["sizes"] if path.exists() else {}
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as folder:
        for size in wanted.only:
            table = Path(folder) / size
            make_table(table, SIZES[size])
            runs: dict[str, list[dict]] = {}
            for _ in range(wanted.turns):
                for step, found in turn(table, wanted.steps):
                    runs.setdefault(step, []).append(found)
                    sizes.setdefault(size, {})[step] = together(runs[step])
                    keep("log_states", {"sizes": sizes})
            shutil.rmtree(table)
    return 0


def turn(table: Path, steps: list[str]) -> Iterator[tuple[str, dict]]:
    """Each step once; what a checkpoint is needed for gets one, and nothing else finds any."""
    for step in (item for item in FROM_COMMITS if item in steps):
        leave_commits(table)
        yield step, in_own_process(step, table)
    later = [item for item in FROM_CHECKPOINT if item in steps]
    if later and "checkpoint" not in steps:
        leave_commits(table)
        in_own_process("checkpoint", table)
    for step in later:
        yield step, in_own_process(step, table)


def in_own_process(step: str, table: Path) -> dict:
    command = [sys.executable, __file__, "--step", step, str(table)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def leave_commits(table: Path) -> None:
    """The log as it was made: without checkpoints, and without commits that a step added."""
    made = {f"{number:020d}.json" for number in range(COMMITS)}
    for path in (table / "_delta_log").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in made:
            path.unlink()


def together(runs: list[dict]) -> dict:
    """The last run's facts, the median and every run of what was measured, the highest of what it took."""
    return {
        **runs[-1],
        **{name: statistics.median(run[name] for run in runs) for name in ("seconds", "processor_seconds")},
        **{name: max(run[name] for run in runs) for name in ("peak_mib", "server_mib") if name in runs[-1]},
        "runs": [[run["seconds"], run["processor_seconds"], run["load_average"]] for run in runs],
    }


def measured(step: str, table: str) -> dict:
    """A step, with the peak memory of this whole process and the machine's load."""
    found = STEPS[step](Path(table))
    peak = next(
        line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line
    )
    return {**found, "peak_mib": int(peak) // 1024, "load_average": machine()["load_average"]}


@contextlib.contextmanager
def counted() -> Iterator[dict]:
    """Seconds of what happens inside: the clock's, and the processor's of this process and all below it."""
    spent: dict[str, float] = {}
    processor, started = processor_seconds(), time.perf_counter()
    yield spent
    spent["seconds"] = round(time.perf_counter() - started, 3)
    spent["processor_seconds"] = round(processor_seconds() - processor, 2)


def make_table(path: Path, files: int) -> None:
    """Files in the order of their keys, a thousand rows each."""
    log = path / "_delta_log"
    log.mkdir(parents=True)
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in NARROW]
    metadata = {
        "id": "0ef9eab5-2ff8-4f0d-9b0a-d1aaf9cd1e3e",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": compact({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.deletedFileRetentionDuration": "interval 10000 weeks"},
        "createdTime": 1,
    }
    source = random.Random(files)
    each = files // COMMITS
    for number in range(COMMITS):
        with (log / f"{number:020d}.json").open("w") as commit:
            commit.write(compact({"commitInfo": {"timestamp": number, "operation": "WRITE"}}) + "\n")
            if number == 0:
                commit.write(compact(FIRST) + "\n" + compact({"metaData": metadata}) + "\n")
            for index in range(number * each, (number + 1) * each):
                commit.write(add_line(index, source))


def add_line(index: int, source: random.Random) -> str:
    name = f"{source.getrandbits(128):032x}"
    statistics = {
        "numRecords": 1000,
        "minValues": {"Id": f"00Q{index * 1000:012d}", "amount": 1, "day": "2026-01-01"},
        "maxValues": {"Id": f"00Q{index * 1000 + 999:012d}", "amount": 999999, "day": "2026-12-31"},
        "nullCount": {"Id": 0, "amount": 3, "day": 7},
    }
    add = {
        "path": f"{name[:12]}/part-00000-{name}.zstd.parquet",
        "partitionValues": {},
        "size": 1_000_000 + index,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": compact(statistics),
    }
    return compact({"add": add}) + "\n"


def log_of(path: Path):
    from freezeframe.log import DeltaLog
    from freezeframe.storage import LocalStorage

    return DeltaLog(LocalStorage(path))


def load(path: Path) -> dict:
    with counted() as spent:
        files = log_of(path).update().count
    return {**spent, "files": files}


def skip(path: Path) -> dict:
    """One key in the middle of the table: the files that may hold it."""
    from freezeframe.log.scan.rows import files_matching

    snapshot = log_of(path).update()
    key = f"00Q{snapshot.count // 2 * 1000 + 5:012d}"
    with counted() as spent:
        found = files_matching(snapshot, [("Id", "=", key)])
    return {**spent, "files": found.num_rows}


def search(path: Path) -> dict:
    """The files that may hold one of a batch's 10,000 keys, which lie close together."""
    import pyarrow as pa

    from freezeframe.store.table.keys import may_hold

    snapshot = log_of(path).update()
    first = snapshot.count // 2 * 1000
    keys = pa.table({"Id": [f"00Q{first + number:012d}" for number in range(10_000)]})
    files = snapshot.files
    with counted() as spent:
        held = may_hold(files["stats"], keys, keys.schema, {"Id": "Id"})
    return {**spent, "files": sum(held)}


def update(path: Path) -> dict:
    log = log_of(path)
    files = log.update().count
    append_commit(path)
    with counted() as spent:
        found = log.update().count
    assert found == files + 10
    return {**spent, "files": found}


def checkpoint(path: Path) -> dict:
    from freezeframe.log.table.upkeep import write_checkpoint

    snapshot = log_of(path).update()
    files = snapshot.count
    with counted() as spent:
        hint = write_checkpoint(snapshot)
    return {
        **spent,
        "files": files,
        "parts": hint.parts or 1,
        "mib": round((hint.size_in_bytes or 0) / 2**20, 1),
    }


STEPS = {
    "load": load,
    "checkpoint": checkpoint,
    "load_of_checkpoint": load,
    "skip": skip,
    "search": search,
    "update": update,
}

if __name__ == "__main__":
    sys.exit(main())
