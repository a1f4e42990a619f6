"""How long does a script wait for its frames: a sync's CSV as pandas and Spark, and an update's whole result?

A million rows by twelve columns are read, and updated by a tenth; gluestick is in the run. ``--against DIR``
names another checkout, whose package is measured beside this one's, turn by turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measured import keep, rows, summary

HERE = Path(__file__).resolve().parent.parent / "src"
READ = """
import json, sys, time
from freezeframe.script.reading import read_csv_folder
folder, runs, kind, backend = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
options = {"dtype_backend": backend} if backend else {}
def read():
    frame = read_csv_folder(folder, as_=kind, **options)["Lead"]
    if kind == "spark":
        frame.write.format("noop").mode("overwrite").save()
"""
UPDATE = """
import json, sys, time, pandas, pyarrow.parquet as pq, shutil
from freezeframe.script import update_snapshot
folder, runs, kind, backend = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
options = {"dtype_backend": backend} if backend else {}
target = f"{folder}/snapshots-{sys.argv[5]}"
shutil.rmtree(target, ignore_errors=True)
batches = [pandas.read_parquet(f"{folder}/batch-{number}.parquet", **options) for number in range(runs + 1)]
update_snapshot(target, "Lead", "Id", pandas.read_parquet(f"{folder}/stored.parquet", **options))
def read():
    update_snapshot(target, "Lead", "Id", batches.pop(), **options)
"""
PEER = """
import json, sys, time, gluestick, pandas
folder, runs = sys.argv[1], int(sys.argv[2])
def read():
    gluestick.read_csv_folder(folder)
"""
TIMED = """
read()
seconds = []
for _ in range(runs):
    began = time.perf_counter()
    read()
    seconds.append(time.perf_counter() - began)
print(json.dumps(seconds))
"""
QUESTIONS = {
    "CSV to pandas": (READ, "pandas", ""),
    'CSV to pandas, dtype_backend="pyarrow"': (READ, "pandas", "pyarrow"),
    "CSV to Spark": (READ, "spark", ""),
    "CSV to pandas by gluestick": (PEER, "pandas", ""),
    "update with its frame back": (UPDATE, "pandas", ""),
    'update with its frame back, dtype_backend="pyarrow"': (UPDATE, "pandas", "pyarrow"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout to measure in the same run")
    given = parser.parse_args()
    packages = {"now": HERE} | ({"before": given.against / "src"} if given.against else {})
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as name:
        folder = Path(name)
        _write(folder, given.rows, given.runs)
        found = {
            f"{question} ({side})": _measured(folder, given.runs, question, source, side)
            for question in QUESTIONS
            for side, source in packages.items()
            if not (side == "before" and (QUESTIONS[question][2] or QUESTIONS[question][0] is PEER))
        }
    keep("frames", {"rows": given.rows, "seconds": found})


def _write(folder: Path, count: int, runs: int) -> None:
    stored = rows(range(count), seed=1)
    (folder / "sync-output").mkdir()
    stored.to_csv(folder / "sync-output" / "Lead-20261101T000000.csv", index=False)
    stored.to_parquet(folder / "stored.parquet")
    for number in range(runs + 1):
        some = np.random.default_rng(number).choice(count + count // 100, count // 10, replace=False)
        rows(some.tolist(), seed=2 + number).to_parquet(folder / f"batch-{number}.parquet")


def _measured(folder: Path, runs: int, question: str, source: Path, side: str) -> dict[str, object]:
    code, kind, backend = QUESTIONS[question]
    place = folder if code is UPDATE else folder / "sync-output"
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "FREEZEFRAME_STATE_DIR": str(folder / f"state-{side}"),
        "FREEZEFRAME_SPARK_IDLE_SECONDS": "60",
    }
    given = [sys.executable, "-W", "ignore", "-c", code + TIMED, str(place), str(runs), kind, backend, side]
    done = subprocess.run(given, env=environment, check=True, capture_output=True, text=True)
    result = summary(json.loads(done.stdout.splitlines()[-1]))
    print(f"{question} ({side}): {result['median_seconds']} s", flush=True)
    return result


if __name__ == "__main__":
    main()
