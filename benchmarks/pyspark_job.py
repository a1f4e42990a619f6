"""How long does a whole PySpark job take, beside the same job written with Delta's MERGE?

Both read a sync of CSV files (a million rows in two streams, of which a tenth has changed), bring them into
two tables that hold as many rows, join these, and export one CSV file. Ours is what `jobs-with-pyspark.md`
shows; the other one reads by ``spark.read.csv`` with the types given, merges, and writes one partition.
Each has a warm Spark of its own with the same two cores and 4 GB, and they take turns.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from delta_merge import merge_statement, spark_session
from measured import keep, summary

LIMIT = 3.0
WARM_UP = 2
TYPES = "Id string, Account string, Name string, City string, Amount double, Visits long"
ACCOUNT_TYPES = "Id string, Owner string, Level long"


def write_sync(folder: Path, turn: int, rows: int) -> None:
    """The sync of a turn: leads, and a tenth as many accounts; a tenth of each has changed since the last."""
    folder.mkdir(parents=True)
    leads, accounts = np.arange(rows - rows // 11), np.arange(rows // 11)
    changed = turn * ((leads + turn) % 10 == 0)
    columns = {
        "Id": [f"L{lead:08d}" for lead in leads],
        "Account": [f"A{lead % len(accounts):07d}" for lead in leads],
        "Name": [f"Name {lead}" for lead in leads],
        "City": [("Bern", "Basel", "Chur")[lead % 3] for lead in leads],
        "Amount": leads * 1.5 + changed,
        "Visits": leads % 97 + changed,
    }
    pc.write_csv(pa.table(columns), folder / "Lead.csv")
    levels = accounts % 5 + turn * ((accounts + turn) % 10 == 0)
    columns = {
        "Id": [f"A{account:07d}" for account in accounts],
        "Owner": [f"owner {account % 50}" for account in accounts],
        "Level": levels,
    }
    pc.write_csv(pa.table(columns), folder / "Account.csv")


def ours(folder: Path, sync: Path) -> None:
    """The job as a script of ours has it."""
    from freezeframe import update_snapshot
    from freezeframe.gluestick import to_export
    from freezeframe.script import read_csv_folder

    read = read_csv_folder(sync, as_="spark")
    kept = {name: update_snapshot(folder / "snapshots", name, "Id", read[name]) for name in read}
    owners = kept["Account"].selectExpr("Id as Account", "Owner", "Level")
    to_export(kept["Lead"].join(owners, "Account"), "Lead", folder / "out", export_format="csv")


def theirs(spark, folder: Path, sync: Path) -> None:
    """The same with MERGE."""
    for name, types in (("Lead", TYPES), ("Account", ACCOUNT_TYPES)):
        batch = spark.read.csv(str(sync / f"{name}.csv"), schema=types, header=True)
        path = str(folder / name)
        if not Path(path).exists():
            batch.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
            continue
        batch.createOrReplaceTempView("batch")
        spark.sql(merge_statement(path, batch.columns, "Id"))
    leads, owners = (spark.read.format("delta").load(str(folder / name)) for name in ("Lead", "Account"))
    owners = owners.selectExpr("Id as Account", "Owner", "Level")
    out = str(folder / "out")
    leads.join(owners, "Account").coalesce(1).write.mode("overwrite").csv(out, header=True)


def serve(who: str, folder: Path) -> None:
    """Carry out the job for each sync that is named on the input, and tell its seconds."""
    session = spark_session() if who == "merge_with_vectors" else None
    for line in sys.stdin:
        began = time.perf_counter()
        if session is None:
            ours(folder, Path(line.strip()))
        else:
            theirs(session, folder, Path(line.strip()))
        print(f"seconds {time.perf_counter() - began}", flush=True)


class Racer:
    """One of the two in a process of its own."""

    def __init__(self, who: str, folder: Path) -> None:
        folder.mkdir()
        (folder / "out").mkdir()
        environment = {**os.environ, "FREEZEFRAME_STATE_DIR": str(folder / "state")}
        self.who = who
        self.seconds: list[float] = []
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", who, "--folder", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def turn(self, sync: Path) -> None:
        self._process.stdin.write(f"{sync}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("seconds "):
                self.seconds.append(float(line.split()[1]))
                print(f"{self.who}: {self.seconds[-1]:.2f} s", flush=True)
                return
        raise SystemExit(f"{self.who} ended")

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)


def main(rows: int, turns: int, *, keeps: bool) -> int:
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as name:
        place = Path(name)
        racers = [Racer(who, place / who) for who in ("freezeframe", "merge_with_vectors")]
        for turn in range(turns + WARM_UP):
            sync = place / f"sync-{turn}"
            write_sync(sync, turn, rows)
            for racer in racers if turn % 2 else racers[::-1]:
                racer.turn(sync)
            shutil.rmtree(sync)
        exported = [sum(1 for _ in file.open()) for file in sorted(place.glob("*/out/**/*.csv"))]
        for racer in racers:
            racer.close()
    assert exported == [exported[0]] * 2, exported
    ours, merge = (racer.seconds[WARM_UP:] for racer in racers)
    times = statistics.median(merge) / statistics.median(ours)
    print(f"{times:.2f} times as fast")
    if keeps:
        result = {"rows": rows, "freezeframe": summary(ours), "merge_with_vectors": summary(merge)}
        keep("pyspark_job", {**result, "times": round(times, 2), "limit": LIMIT})
    return int(times < LIMIT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--turns", type=int, default=3, help="counted ones, after the first load and one more"
    )
    parser.add_argument("--no-keep", action="store_true", help="leave the results of before")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.folder)
    else:
        sys.exit(main(given.rows, given.turns, keeps=not given.no_keep))
