"""Keep what a sync brought, then write what the target wants.

It is run once for each sync of a tenant; ROOT_DIR names the job's folder.
"""

import os
from pathlib import Path

import freezeframe.gluestick as gs
from freezeframe import script as util

# The job's folders
ROOT_DIR = os.environ.get("ROOT_DIR", ".")
INPUT_DIR = f"{ROOT_DIR}/sync-output"
OUTPUT_DIR = f"{ROOT_DIR}/etl-output"
SNAPSHOT_DIR = f"{ROOT_DIR}/snapshots"

# What the sync brought: a frame for each stream, its text as it was sent
input_data = gs.read_csv_folder(INPUT_DIR)

# Keep each stream: rows are told apart by their Id, and an empty value clears nothing
for stream, rows in input_data.items():
    if "Id" in rows.columns:
        util.update_snapshot(SNAPSHOT_DIR, stream, ["Id"], rows)
    else:
        # A report has no key: each sync resends it from a given date, and replaces that window
        first_day = rows["Date"].min()
        util.update_snapshot(SNAPSHOT_DIR, stream, None, rows, replace_where=f"Date >= '{first_day}'")

# Write all leads that there are, though this sync may have brought a few of them
leads = util.get_snapshot(SNAPSHOT_DIR, "Lead")
if leads is not None:
    Path(OUTPUT_DIR).mkdir(exist_ok=True)
    leads[["Id", "Name", "Company", "Status"]].to_csv(f"{OUTPUT_DIR}/Leads.csv", index=False)
