"""How long does an update take whose receipt counts rows that its batch does not have?

A window, a kept past and an override of a stream of a million rows; two updates of 1,000 rows each in one
job, of different rows and of the same ones, in a stream of 500,000 that is rewritten as a whole.
``--against DIR`` names another checkout, whose package is measured beside this one's, turn by turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measured import keep, summary

HERE = Path(__file__).resolve().parent.parent / "src"
CASES = ("window", "kept past", "override", "two updates, different rows", "two updates, the same rows")
TURN = """
import json, sys, time
import numpy as np, pyarrow as pa
from freezeframe import open_tenant

def rows(ids, seed):
    random, count = np.random.default_rng(seed), len(ids)
    names = pa.array([f"name {number}" for number in random.integers(0, 10**9, count)])
    numbers = {"Amount": random.random(count), "Visits": random.integers(0, 10**12, count)}
    return pa.table({"Id": ids, "Day": ids // 1000, "Name": names, **numbers})

def short(ids, value):
    return pa.table({"Id": ids, "State": np.full(len(ids), value)})

tenant = open_tenant(sys.argv[1])
every, seconds = np.arange(1_000_000), {}
tenant.stream("Warm").update(rows(every[:1000], 0), key="Id")
tenant.stream("Warm").update(rows(every[:500], 1), key="Id", replace_where="Day < 1 and Id < 500")

def timed(name, update):
    began, spent = time.perf_counter(), time.process_time()
    receipt = update()
    took = [time.perf_counter() - began, time.process_time() - spent]
    counts = [receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted]
    seconds[name] = [*took, counts]

stream = tenant.stream("Lead")
stream.update(rows(every, 2), key="Id")
days = "Day >= 100 and Day < 190"
window, few = rows(every[100_000:190_000], 3), rows(every[600_000:610_000], 5)
other = rows(every + 500_000, 4)
timed("window", lambda: stream.update(window, key="Id", replace_where=days))
timed("override", lambda: stream.update(other, key="Id", override=True))
timed("kept past", lambda: stream.update(few, key="Id", history="scd2"))

def two(first, second):
    with tenant.job() as job:
        job.stream("Short").update(short(first, int(time.time_ns())), key="Id")
        job.stream("Short").update(short(second, int(time.time_ns())), key="Id")
    return job.receipt.streams["Short"]

tenant.stream("Short").update(short(every[:500_000], 0), key="Id")
timed("two updates, different rows", lambda: two(every[1000:2000], every[2000:3000]))
timed("two updates, the same rows", lambda: two(every[3000:4000], every[3500:4500]))
print(json.dumps(seconds))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout of the package")
    given = parser.parse_args()
    sources = {"this": HERE} | ({"against": given.against / "src"} if given.against else {})
    found: dict[str, list[dict]] = {name: [] for name in sources}
    for _ in range(given.runs):  # seconds depend on what else the machine does, those of the processor hardly
        for name, source in sources.items():
            found[name].append(_turn(source))
            print(name, found[name][-1], flush=True)
    counts = {str([turn[case][2] for case in CASES]) for turns in found.values() for turn in turns}
    result = {
        name: {
            case: {
                **summary([turn[case][0] for turn in turns]),
                "processor_of_the_script": summary([turn[case][1] for turn in turns])["median_seconds"],
            }
            for case in CASES
        }
        for name, turns in found.items()
    }
    keep("receipts", {"counts_agree": len(counts) == 1, **result})
    return 0 if len(counts) == 1 else 1


def _turn(source: Path) -> dict:
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as place:
        environment = {
            **os.environ,
            "PYTHONPATH": str(source),
            "FREEZEFRAME_STATE_DIR": f"{place}/state",
            "FREEZEFRAME_SPARK": "local",
        }
        command = [sys.executable, "-c", TURN, f"{place}/tenant"]
        told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return json.loads(told.stdout.splitlines()[-1])


if __name__ == "__main__":
    raise SystemExit(main())
