"""What does a fresh job process wait for: Python's start, the way to the warm server, one update?

The server is started, and a stream of 10,000 rows made, before the clock runs; then every job is
a new process that updates the stream by 1,000 rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measured import batch, keep, rows, summary

STORED, BATCH = 10_000, 1_000
RUNS = 9
WARM_UP = 6
PROCESS_LIMIT_SECONDS = 5.0
UPDATE_LIMIT_SECONDS = 0.8
IDLE_SECONDS = "30"

JOB = """
import sys, time
import pandas as pd
from freezeframe import open_tenant
stream = open_tenant(sys.argv[1]).stream("Lead")
rows = pd.read_parquet(sys.argv[2], dtype_backend="numpy_nullable")
started = time.perf_counter()
stream.read(as_="spark")
attached = time.perf_counter()
receipt = stream.update(rows, key=["Id"])
assert receipt.inserted == len(rows) // 10, receipt
print(attached - started, time.perf_counter() - attached)
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as folder:
        root = Path(folder)
        # A server of its own, which stops by itself soon after the last job.
        os.environ |= {
            "FREEZEFRAME_STATE_DIR": str(root / "state"),
            "FREEZEFRAME_SPARK": "auto",
            "FREEZEFRAME_SPARK_IDLE_SECONDS": IDLE_SECONDS,
        }
        from freezeframe import open_tenant

        stream = open_tenant(root / "snapshots").stream("Lead")
        stream.update(rows(range(STORED), seed=1), key=["Id"])
        for number in range(WARM_UP):
            stream.update(batch(number, STORED, BATCH), key=["Id"])
        processes, attached, updates = [], [], []
        for number in range(WARM_UP, WARM_UP + RUNS):
            file = root / f"batch-{number}.parquet"
            batch(number, STORED, BATCH).to_parquet(file)
            started = time.perf_counter()
            command = [sys.executable, "-c", JOB, root / "snapshots", file]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            processes.append(time.perf_counter() - started)
            attach, update = map(float, done.stdout.split())
            attached.append(attach)
            updates.append(update)
    process, update = summary(processes), summary(updates)
    passes = (
        process["median_seconds"] < PROCESS_LIMIT_SECONDS and update["median_seconds"] < UPDATE_LIMIT_SECONDS
    )
    keep(
        "second_process",
        {
            "whole_process": process,
            "attach": summary(attached),
            "update": update,
            "limits_seconds": {"process": PROCESS_LIMIT_SECONDS, "update": UPDATE_LIMIT_SECONDS},
            "passes": passes,
        },
    )
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())
