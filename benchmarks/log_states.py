"""How large a state does one process hold: memory and time of a table with a million files and with five?

Each step is a process of its own, so that its peak memory is its own, with the interpreter in it: the
state from JSON commits, the writing of a checkpoint, the state from it, the choice of files by a key and by
the 10,000 keys of a batch, one new commit on a loaded state. The same state and checkpoint are made by
Spark (``engine.spark_states``), on a warm server whose memory is told beside the process's. Files have
names and statistics as ours have. Results are merged: ``--only 5m --steps spark_state`` measures one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from log_load import NARROW, append_commit, compact
from measured import RESULTS, keep

SIZES = {"1m": 1_000_000, "5m": 5_000_000}
IN_PROCESS = ("load", "checkpoint", "load_of_checkpoint", "skip", "search", "update")
BY_SPARK = ("spark_state", "spark_checkpoint")
COMMITS = 10
FIRST = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument(
        "--steps", nargs="+", choices=(*IN_PROCESS, *BY_SPARK), default=[*IN_PROCESS, *BY_SPARK]
    )
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
            # Those that leave nothing behind first: a checkpoint is what the steps after it begin from.
            order = [*BY_SPARK[:1], *IN_PROCESS, *BY_SPARK[1:]]
            for step in (one for one in order if one in wanted.steps):
                done = subprocess.run(
                    [sys.executable, __file__, "--step", step, str(table)],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                sizes.setdefault(size, {})[step] = json.loads(done.stdout.splitlines()[-1])
                keep("log_states", {"sizes": sizes})
            shutil.rmtree(table)
    return 0


def measured(step: str, table: str) -> dict:
    """A step, with the processor's time and the peak memory of this whole process."""
    found = STEPS[step](Path(table))
    peak = next(
        line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line
    )
    return {
        **found,
        "seconds": round(found["seconds"], 3),
        "processor_seconds_of_all": round(time.process_time(), 2),
        "peak_mib": int(peak) // 1024,
    }


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
    started = time.perf_counter()
    snapshot = log_of(path).update()
    files = snapshot.count
    return {"seconds": time.perf_counter() - started, "files": files}


def skip(path: Path) -> dict:
    """One key in the middle of the table: the files that may hold it."""
    from freezeframe.log.rows import files_matching

    snapshot = log_of(path).update()
    key = f"00Q{snapshot.count // 2 * 1000 + 5:012d}"
    started = time.perf_counter()
    found = files_matching(snapshot, [("Id", "=", key)])
    return {"seconds": time.perf_counter() - started, "files": found.num_rows}


def search(path: Path) -> dict:
    """The files that may hold one of a batch's 10,000 keys, which lie close together."""
    import pyarrow as pa

    from freezeframe.store.key_ranges import may_hold

    snapshot = log_of(path).update()
    first = snapshot.count // 2 * 1000
    keys = pa.table({"Id": [f"00Q{first + number:012d}" for number in range(10_000)]})
    files = snapshot.files
    started = time.perf_counter()
    held = may_hold(files["stats"], keys, keys.schema, {"Id": "Id"})
    return {"seconds": time.perf_counter() - started, "files": sum(held)}


def update(path: Path) -> dict:
    log = log_of(path)
    files = log.update().count
    append_commit(path)
    started = time.perf_counter()
    found = log.update().count
    assert found == files + 10
    return {"seconds": time.perf_counter() - started, "files": found}


def checkpoint(path: Path) -> dict:
    from freezeframe.log.checkpoint_writer import write_checkpoint

    snapshot = log_of(path).update()
    files = snapshot.count
    started = time.perf_counter()
    hint = write_checkpoint(snapshot)
    return {
        "seconds": time.perf_counter() - started,
        "files": files,
        "parts": hint.parts or 1,
        "mib": round((hint.size_in_bytes or 0) / 2**20, 1),
    }


def spark_state(path: Path) -> dict:
    """The state made by Spark and read here: on a warm server, which is not counted."""
    from freezeframe.log import DeltaLog
    from freezeframe.log.condensed import CondensedStates
    from freezeframe.storage import LocalStorage

    with spark_engine() as engine:
        started = time.perf_counter()
        log = DeltaLog(LocalStorage(path), large=CondensedStates(engine, from_bytes=0))
        files = log.update().count
        return {"seconds": time.perf_counter() - started, "files": files, "server_mib": server_peak_mib()}


def spark_checkpoint(path: Path) -> dict:
    from freezeframe.clock import now_ms
    from freezeframe.log import DeltaLog
    from freezeframe.log.condensed import CondensedStates, write_condensed_checkpoint
    from freezeframe.storage import LocalStorage

    with spark_engine() as engine:
        large = CondensedStates(engine, from_bytes=0)
        snapshot = DeltaLog(LocalStorage(path), large=large).update()
        started = time.perf_counter()
        hint = write_condensed_checkpoint(snapshot, engine, now_ms=now_ms())
        return {
            "seconds": time.perf_counter() - started,
            "files": hint.num_of_add_files,
            "parts": hint.parts,
            "mib": round((hint.size_in_bytes or 0) / 2**20, 1),
            "server_mib": server_peak_mib(),
        }


@contextlib.contextmanager
def spark_engine():
    """The product's engine on a server of its own, asked one small question first."""
    from freezeframe.engine.spark import SparkEngine
    from freezeframe.settings import Settings

    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as folder:
        engine = SparkEngine(Settings(state_dir=Path(folder), spark="local"))
        engine.session.range(10).count()
        try:
            yield engine
        finally:
            engine.close()


def server_peak_mib() -> int:
    """The highest resident size of the Java processes that this process started."""
    peak = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            if fields["Name"].strip() == "java" and is_ours(fields["PPid"].strip()):
                peak = max(peak, int(fields["VmHWM"].split()[0]) // 1024)
    return peak


def is_ours(process: str) -> bool:
    while process not in ("0", "1"):
        if process == str(os.getpid()):
            return True
        try:
            process = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            return False
    return False


STEPS = {
    "load": load,
    "checkpoint": checkpoint,
    "load_of_checkpoint": load,
    "skip": skip,
    "search": search,
    "update": update,
    "spark_state": spark_state,
    "spark_checkpoint": spark_checkpoint,
}

if __name__ == "__main__":
    sys.exit(main())
