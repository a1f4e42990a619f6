"""A PySpark job: keep what a sync brought, then write what the target wants.

It is run once per sync of a tenant, with ``ROOT_DIR`` naming the job's folder.
"""

import csv
import json
import os
import time
from pathlib import Path

from pyspark.sql import functions as F

import freezeframe
import freezeframe.gluestick as gs
from freezeframe import script as util

# standard directories
ROOT_DIR = os.environ.get("ROOT_DIR", ".")
INPUT_DIR = f"{ROOT_DIR}/sync-output"
OUTPUT_DIR = f"{ROOT_DIR}/etl-output"
SNAPSHOT_DIR = f"{ROOT_DIR}/snapshots"

started = time.monotonic()
spark = freezeframe.spark()
spark_seconds = time.monotonic() - started

# Read input data: a Spark frame for each stream
input_data = util.read_csv_folder(INPUT_DIR, as_="spark")

updates = []
for stream, rows in input_data.items():
    started = time.monotonic()
    if stream.endswith("Report"):
        # A report has no key: a sync sends it again from a date on, and that window is replaced.
        first_day = rows.agg(F.min("Date")).first()[0]
        util.update_snapshot(SNAPSHOT_DIR, stream, None, rows, replace_where=f"Date >= '{first_day}'")
    else:
        util.update_snapshot(SNAPSHOT_DIR, stream, ["Id"], rows)
    updates.append({"stream": stream, "rows_sent": rows.count(), "seconds": time.monotonic() - started})

Path(OUTPUT_DIR).mkdir(exist_ok=True)
with Path(OUTPUT_DIR, "updates.csv").open("w", newline="") as file:
    writer = csv.DictWriter(file, ["stream", "rows_sent", "seconds"])
    writer.writeheader()
    writer.writerows(updates)

# Two integrations meet in SQL: each lead of the CRM with what accounting has billed to its company.
views = util.snapshot_views(SNAPSHOT_DIR)
if {"Lead", "Invoice"} <= set(views):
    billed = spark.sql(
        """
        SELECT l.Id, l.Name, l.Company, l.Status, sum(CAST(i.TotalAmt AS double)) AS Billed
        FROM Lead l LEFT JOIN Invoice i ON i.CustomerRef__name = l.Company
        GROUP BY l.Id, l.Name, l.Company, l.Status ORDER BY l.Id
        """
    )
    gs.to_export(billed, "LeadsWithBilling", OUTPUT_DIR, export_format="csv")

# The whole ledger, though the last sync brought a few weeks of it.
ledger = util.get_snapshot(SNAPSHOT_DIR, "GeneralLedgerCashReport", as_="spark")
if ledger is not None:
    month = F.substring(F.col("Date").cast("string"), 1, 7).alias("Month")
    sums = ledger.groupBy("Account", month).agg(
        F.round(F.sum(F.col("Amount").cast("double")), 2).alias("Amount")
    )
    gs.to_export(sums.orderBy("Account", "Month"), "LedgerByMonth", OUTPUT_DIR, export_format="csv")

Path(OUTPUT_DIR, "spark.json").write_text(json.dumps({"version": spark.version, "seconds": spark_seconds}))
