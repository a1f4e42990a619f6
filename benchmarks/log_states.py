"""How large a state does one process hold: memory and time of a table with a million files and with five?

Each step is a process of its own, so that its peak memory is its own, with the interpreter in it: the
state from JSON commits, from a checkpoint, the choice of files by a key, one new commit on a loaded
state, the writing of a checkpoint. The same state is then made by Spark (``engine.spark_states``), on a
warm server whose memory is counted beside the process's. Files have names and statistics as ours have.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import time
from pathlib import Path

from log_load import NARROW, append_commit, compact

COMMITS = 10
FIRST = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def make_table(path: Path, files: int) -> None:
    """Files in the order of their keys, a thousand rows each; every tenth of an older version is removed."""
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
    from freezeframe.log import DeltaLog
    from freezeframe.log.condensed import CondensedStates, write_condensed_checkpoint
    from freezeframe.log.options import now_ms
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
