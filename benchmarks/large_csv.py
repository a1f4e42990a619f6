"""Does a PySpark job whose CSV is larger than all memory it is given end, and what does its process hold?

The job reads a sync folder as a Spark frame, updates a stream that holds a tenth of the rows, and exports the
result as one CSV file. Its Spark server has a heap of 1 GB. The file has quoted newlines in one column, and
texts that hardly compress. Peak memory is that of the script's own process and of the server as Linux keeps
it (VmHWM), and of the largest Python worker, sampled.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
from measured import keep
from processes import family, peak_mib, watched

LIMIT_MIB = 500
SERVER_MEMORY = "1g"
CHUNK_ROWS = 100_000
ROW_BYTES = 220
"""About what a row takes in the file."""
MIB = 2**20

JOB = """
import json, resource, sys, time
from freezeframe import update_snapshot
from freezeframe.gluestick import to_export
from freezeframe.script import read_csv_folder

folder, steps, began = sys.argv[1], {}, time.perf_counter()
def done(name):
    steps[name] = round(time.perf_counter() - began - sum(steps.values()), 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name}: {steps[name]} s, {peak} MiB", file=sys.stderr, flush=True)
for sync in ("before", "sync"):
    frame = read_csv_folder(f"{folder}/{sync}", as_="spark")["Lead"]
    done(f"types of {sync}")
    kept = update_snapshot(f"{folder}/snapshots", "Lead", "Id", frame)
    done(f"update by {sync}")
to_export(kept, "Lead", f"{folder}/out", export_format="csv")
done("export")
print(json.dumps([steps, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--no-keep", action="store_true", help="leave the results of before")
    given = parser.parse_args()
    rows = int(given.gigabytes * 10**9 / ROW_BYTES) // CHUNK_ROWS * CHUNK_ROWS
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        if shutil.disk_usage(folder).free < 6 * rows * ROW_BYTES:
            raise SystemExit("The disk has too little room for the input, the stream, the export and spills.")
        (folder / "out").mkdir()
        write_csv(folder / "before" / "Lead.csv", rows // 10, "old")
        write_csv(folder / "sync" / "Lead.csv", rows, "new")
        size = (folder / "sync" / "Lead.csv").stat().st_size
        print(f"{size / 1e9:.2f} GB of CSV, {rows:,} rows", flush=True)
        result = {"rows": rows, "csv_gigabytes": round(size / 1e9, 2), **job(folder)}
        result["exported_lines"] = lines(folder / "out" / "Lead.csv")
    result["limit_mib"] = LIMIT_MIB
    # One row in ten has two newlines in a text; the first line has the names.
    is_whole = result["exported_lines"] == rows + rows // 10 * 2 + 1
    result["passes"] = result["script_mib"] < LIMIT_MIB and is_whole
    if given.no_keep:
        print(json.dumps(result, indent=2))
    else:
        keep("large_csv", result)
    return 0 if result["passes"] else 1


def write_csv(file: Path, rows: int, salt: str) -> None:
    file.parent.mkdir()
    with pc_csv.CSVWriter(file, next(tables(1, salt)).schema) as writer:
        for table in tables(rows, salt):
            writer.write_table(table)


def tables(rows: int, salt: str) -> Iterator[pa.Table]:
    random = np.random.default_rng(sum(map(ord, salt)))
    for begin in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - begin)
        # Keys in an order that is not that of their values.
        keys = (np.arange(begin, begin + count, dtype=np.int64) * 7_919_777_777) % 10**12
        texts = [pa.array(random.integers(0, 10**18, count)).cast(pa.string()) for _ in range(8)]
        separators = np.where(np.arange(begin, begin + count) % 10 == 0, "\n", " ")
        yield pa.table(
            {
                "Id": pc.binary_join_element_wise(
                    "00Q", pc.utf8_lpad(pa.array(keys).cast("string"), 12, "0"), ""
                ),
                "Name": pc.binary_join_element_wise(*texts[:4], "-"),
                "Notes": pc.binary_join_element_wise(salt, texts[4], texts[5], pa.array(separators)),
                "Email": pc.binary_join_element_wise(texts[6], "example.com", "@"),
                "Amount": random.integers(0, 10**8, count) / 100,
                "Visits": random.integers(0, 10**12, count),
                "Phone": pc.binary_join_element_wise("+41", texts[7], " "),
            }
        )


def job(folder: Path) -> dict[str, object]:
    """The job in a process of its own, and the memory of all that it is made of."""
    environment = {
        **os.environ,
        "FREEZEFRAME_STATE_DIR": str(folder / "state"),
        "FREEZEFRAME_SPARK_MEMORY": SERVER_MEMORY,
        "FREEZEFRAME_SPARK_IDLE_SECONDS": "5",
    }
    began = time.perf_counter()
    script = [sys.executable, "-c", JOB, str(folder)]
    with subprocess.Popen(script, env=environment, stdout=subprocess.PIPE, text=True) as process:
        peaks = {"server": 0, "worker": 0}
        with watched(list, lambda: look(folder / "state", peaks)):
            output, _ = process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(process.returncode)
    steps, script_mib = json.loads(output.splitlines()[-1])
    return {
        "server_memory": SERVER_MEMORY,
        "seconds": round(seconds, 1),
        "steps_seconds": steps,
        "script_mib": script_mib,
        "server_mib": peaks["server"],
        "largest_worker_mib": peaks["worker"],
    }


def look(state: Path, peaks: dict[str, int]) -> int:
    """Keep the highest memory of the server and of one of its Python workers."""
    from freezeframe.engine.server.server import running_servers
    from freezeframe.settings import Settings

    for server in running_servers(Settings(state_dir=state)):
        peaks["server"] = max(peaks["server"], peak_mib(server.process))
        for worker in family(server.process)[1:]:
            peaks["worker"] = max(peaks["worker"], peak_mib(worker.pid))
    return 0


def lines(file: Path) -> int:
    with file.open("rb") as content:
        return sum(block.count(b"\n") for block in iter(lambda: content.read(MIB), b""))


if __name__ == "__main__":
    sys.exit(main())
