"""Keep what a sync brought, then write what the target wants.

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

# What the sync brought: a Spark frame for each stream
input_data = read_csv_folder(INPUT_DIR, as_="spark")

# Keep each stream: rows are told apart by their Id, and an empty value clears nothing
for stream, rows in input_data.items():
    if "Id" in rows.columns:
        update_snapshot(SNAPSHOT_DIR, stream, ["Id"], rows)
    else:
        # A report has no key: each sync resends it from a given date, and replaces that window
        first_day = rows.agg(F.min("Date")).first()[0]
        update_snapshot(SNAPSHOT_DIR, stream, None, rows, replace_where=f"Date >= '{first_day}'")

# Write all leads that there are, though this sync may have brought a few of them
leads = get_snapshot(SNAPSHOT_DIR, "Lead", as_="spark")
if leads is not None:
    gs.to_export(leads.select("Id", "Name", "Company", "Status"), "Leads", OUTPUT_DIR, export_format="csv")
