"""Keep what a sync brought, and write what each account has been billed.

It is run once for each sync of a tenant; ROOT_DIR names the job's folder.
"""

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

# Update the snapshot of each stream: its Id identifies a row, and an empty value keeps the stored one
for stream, rows in input_data.items():
    if "Id" in rows.columns:
        update_snapshot(SNAPSHOT_DIR, stream, ["Id"], rows)
    else:
        # A report has no key: a sync sends it again from a date on, and replaces that window
        first_day = rows.agg(F.min("Date")).first()[0]
        update_snapshot(SNAPSHOT_DIR, stream, None, rows, replace_where=f"Date >= '{first_day}'")

# Read the snapshots: all rows of all syncs until now
accounts = get_snapshot(SNAPSHOT_DIR, "Account", as_="spark")
invoices = get_snapshot(SNAPSHOT_DIR, "Invoice", as_="spark")

# Join them and export the result
if accounts is not None and invoices is not None:
    totals = invoices.groupBy("AccountId").agg(F.sum("Total").alias("Billed"))
    billed = accounts.join(totals, accounts["Id"] == totals["AccountId"], "left")
    billed = billed.select("Id", "Name", "Billed").orderBy("Id")
    gs.to_export(billed, "Billed", OUTPUT_DIR, export_format="csv")
