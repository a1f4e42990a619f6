"""How long does a whole PySpark job take, beside the same job written with Delta's MERGE?

Both read a sync of CSV files (a million rows in two streams, of which a tenth has changed), bring them into
two tables that hold as many rows, join these, and export one CSV file. Ours is what `jobs-with-pyspark.md`
shows; the other one reads by ``spark.read.csv`` with the types given, merges, and writes one partition.
Each has a warm Spark of its own with the same two cores and 4 GB, and they take turns.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from delta_merge import merge_statement, spark_session
from measured import keep, summary
from peer_process import PeerProcess

LIMIT = 3.0
WARM_UP = 2
PATIENCE_SECONDS = 600
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


class Ours:
    """The job as a script of ours has it."""

    packages = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "out").mkdir()

    def job(self, sync: Path) -> None:
        from freezeframe import update_snapshot
        from freezeframe.gluestick import to_export
        from freezeframe.script import read_csv_folder

        read = read_csv_folder(sync, as_="spark")
        kept = {name: update_snapshot(self.folder / "snapshots", name, "Id", read[name]) for name in read}
        owners = kept["Account"].selectExpr("Id as Account", "Owner", "Level")
        to_export(kept["Lead"].join(owners, "Account"), "Lead", self.folder / "out", export_format="csv")


class Theirs(Ours):
    """The same with MERGE."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.spark = spark_session()

    def job(self, sync: Path) -> None:
        for name, types in (("Lead", TYPES), ("Account", ACCOUNT_TYPES)):
            batch = self.spark.read.csv(str(sync / f"{name}.csv"), schema=types, header=True)
            path = str(self.folder / name)
            if not Path(path).exists():
                batch.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
                continue
            batch.createOrReplaceTempView("batch")
            self.spark.sql(merge_statement(path, batch.columns, "Id"))
        leads, owners = (
            self.spark.read.format("delta").load(str(self.folder / name)) for name in ("Lead", "Account")
        )
        owners = owners.selectExpr("Id as Account", "Owner", "Level")
        out = str(self.folder / "out")
        leads.join(owners, "Account").coalesce(1).write.mode("overwrite").csv(out, header=True)


PEERS = {"freezeframe": Ours, "merge_with_vectors": Theirs}


def main(rows: int, turns: int, *, keeps: bool) -> int:
    seconds: dict[str, list[float]] = {name: [] for name in PEERS}
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as name, contextlib.ExitStack() as stack:
        place = Path(name)
        racers = {who: PeerProcess(who, place / who, "pyspark_job") for who in PEERS}
        for racer in racers.values():
            stack.callback(racer.close)
        for turn in range(turns + WARM_UP):
            sync = place / f"sync-{turn}"
            write_sync(sync, turn, rows)
            for who in list(racers)[:: 1 if turn % 2 else -1]:
                took, _ = racers[who].ask("timed", "job", sync, patience_seconds=PATIENCE_SECONDS)
                seconds[who].append(took)
                print(f"{who}: {took:.2f} s", flush=True)
            shutil.rmtree(sync)
        exported = [sum(1 for _ in file.open()) for file in sorted(place.glob("*/data/out/**/*.csv"))]
    assert exported == [exported[0]] * 2, exported
    ours, merge = (found[WARM_UP:] for found in seconds.values())
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
    given = parser.parse_args()
    sys.exit(main(given.rows, given.turns, keeps=not given.no_keep))
