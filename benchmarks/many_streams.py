"""How long does a job of 500 streams take: the first one, and each after it, all in processes of their own?

Each job sends 100 rows of each stream; 10 of them change a stored row and 90 are new. Each has an id, and
leaves a receipt. The tables' logs grow until their first checkpoint, and the tenant's with them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measured
import pyarrow as pa

from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine

ROWS, NEW = 100, 90


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=22)
    parser.add_argument("--folder", type=Path, help="where the tenant is made, in a temporary folder")
    parser.add_argument("--job", type=int, help="run this one job in the folder, and nothing else")
    given = parser.parse_args()
    if given.job is not None:
        print(json.dumps(run(given.folder, given.job, given.streams)))
        return 0
    jobs = []
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        for number in range(given.jobs):
            command = [sys.executable, __file__, "--folder", place, "--streams", str(given.streams)]
            told = subprocess.run([*command, "--job", str(number)], check=True, capture_output=True).stdout
            jobs.append(json.loads(told))
            print(jobs[-1], flush=True)
    measured.keep("many_streams", {"streams": given.streams, "rows": ROWS, "jobs": jobs})
    return 0


def run(folder: Path, number: int, streams: int) -> dict[str, float]:
    """One job: seconds of it and of its commit, without the imports."""
    storage = LocalStorage(folder)
    tenant = Tenant(storage, ArrowEngine(), Settings(engine="auto"))
    first = number * NEW
    rows = {"Id": [f"k{row}" for row in range(first, first + ROWS)], "v": list(range(number, number + ROWS))}
    began = time.perf_counter()
    with tenant.job(f"job-{number}") as job:
        for stream in range(streams):
            job.stream(f"S{stream:03d}").update(pa.table(rows), key="Id")
        staged = time.perf_counter()
    ended = time.perf_counter()
    return {"job": number, "seconds": round(ended - began, 2), "commit": round(ended - staged, 2)}


if __name__ == "__main__":
    raise SystemExit(main())
