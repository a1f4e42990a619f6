"""How fast is a warm update of 10,000 rows by 1,000, beside Delta's ``MERGE`` in the same minute?

Both get the same batches as pandas frames, in turns, and must end with the same rows. Ours
includes fsync and the tenant log; the comparison has neither.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from delta_merge import DeltaMerge
from measured import batch, keep, rows, summary

STORED, BATCH = 10_000, 1_000
WARM_UP = 6


def main(runs: int) -> int:
    os.environ["FREEZEFRAME_SPARK"] = "local"  # a server that ends with this process
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as folder:
        os.environ["FREEZEFRAME_STATE_DIR"] = f"{folder}/state"
        from freezeframe import open_tenant

        stream = open_tenant(Path(folder) / "snapshots").stream("Lead")
        others = {
            "merge": DeltaMerge(Path(folder) / "merge", with_vectors=False),
            "merge_with_deletion_vectors": DeltaMerge(Path(folder) / "vectors", with_vectors=True),
        }
        first = rows(range(STORED), seed=1)
        stream.update(first, key=["Id"])
        for other in others.values():
            other.create(first)
        seconds: dict[str, list[float]] = {"freezeframe": [], **{name: [] for name in others}}
        for number in range(WARM_UP + runs):
            frame = batch(number, STORED, BATCH)
            started = time.perf_counter()
            receipt = stream.update(frame, key=["Id"])
            seconds["freezeframe"].append(time.perf_counter() - started)
            assert receipt.inserted == BATCH // 10, receipt
            for name, other in others.items():
                seconds[name].append(other.merge(frame))
        same = all(equal(stream.read(), other.read()) for other in others.values())
        for other in others.values():
            other.close()
    measured = {name: times[WARM_UP:] for name, times in seconds.items()}
    medians = {name: statistics.median(times) for name, times in measured.items()}
    keep(
        "updates_small",
        {
            "stored_rows": STORED,
            "batch_rows": BATCH,
            **{name: summary(times) for name, times in measured.items()},
            "times_faster_than_merge": round(medians["merge"] / medians["freezeframe"], 2),
            "times_faster_than_the_faster_merge": round(
                min(medians[name] for name in others) / medians["freezeframe"], 2
            ),
            "same_rows_in_the_end": same,
        },
    )
    return 0 if same else 1


def equal(ours: pd.DataFrame, theirs: pd.DataFrame) -> bool:
    """Whether both hold the same rows, as text, whatever pandas types they came in."""
    return canonical(ours) == canonical(theirs)


def canonical(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    columns = []
    for name in sorted(frame.columns):
        column = frame[name]
        if name == "ModifiedAt":
            column = pd.to_datetime(column, utc=True).astype("datetime64[us, UTC]")
        elif name in {"Employees", "Visits", "Revenue", "Score"}:
            column = column.astype("Float64")
        columns.append(["" if pd.isna(value) else str(value) for value in column])
    return sorted(zip(*columns, strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    sys.exit(main(parser.parse_args().runs))
