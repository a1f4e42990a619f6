"""Keep the accounts and invoices that a sync brought, and write what each account has been billed."""

import os

from pyspark.sql import functions as F

import freezeframe.gluestick as gs
from freezeframe.script import get_snapshot, read_csv_folder, update_snapshot

# The job's folders
ROOT_DIR = os.environ.get("ROOT_DIR", ".")
INPUT_DIR = f"{ROOT_DIR}/sync-output"
OUTPUT_DIR = f"{ROOT_DIR}/etl-output"
SNAPSHOT_DIR = f"{ROOT_DIR}/snapshots"

# Read the input: a lazy Spark frame for each stream
input_data = read_csv_folder(INPUT_DIR, as_="spark")

# Update the snapshot of each stream that the sync brought
for stream in ("Account", "Invoice"):
    if stream in input_data:
        update_snapshot(SNAPSHOT_DIR, stream, ["Id"], input_data[stream])

# Read the snapshots: all rows of all syncs until now
accounts = get_snapshot(SNAPSHOT_DIR, "Account", as_="spark")
invoices = get_snapshot(SNAPSHOT_DIR, "Invoice", as_="spark")

# Join them and export the result
if accounts is not None and invoices is not None:
    totals = invoices.groupBy("AccountId").agg(F.sum("Total").alias("Billed"))
    billed = accounts.join(totals, accounts["Id"] == totals["AccountId"], "left")
    billed = billed.select("Id", "Name", "Billed").orderBy("Id")
    gs.to_export(billed, "Billed", OUTPUT_DIR, export_format="csv")
