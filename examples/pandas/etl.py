"""Keep what a sync brought, and write what each account has been billed.

It is run once for each sync of a tenant; ROOT_DIR names the job's folder.
"""

import os
from pathlib import Path

from freezeframe import script as util

# The job's folders
ROOT_DIR = os.environ.get("ROOT_DIR", ".")
INPUT_DIR = f"{ROOT_DIR}/sync-output"
OUTPUT_DIR = f"{ROOT_DIR}/etl-output"
SNAPSHOT_DIR = f"{ROOT_DIR}/snapshots"

# Read the input: a pandas frame for each stream
input_data = util.read_csv_folder(INPUT_DIR)

# Update the snapshot of each stream: its Id identifies a row, and an empty value keeps the stored one
for stream, rows in input_data.items():
    if "Id" in rows.columns:
        util.update_snapshot(SNAPSHOT_DIR, stream, ["Id"], rows)
    else:
        # A report has no key: a sync sends it again from a date on, and replaces that window
        first_day = rows["Date"].min()
        util.update_snapshot(SNAPSHOT_DIR, stream, None, rows, replace_where=f"Date >= '{first_day}'")

# Read the snapshots: all rows of all syncs until now
accounts = util.get_snapshot(SNAPSHOT_DIR, "Account")
invoices = util.get_snapshot(SNAPSHOT_DIR, "Invoice")

# Join them and export the result
if accounts is not None and invoices is not None:
    totals = invoices.groupby("AccountId", as_index=False).agg(Billed=("Total", "sum"))
    billed = accounts.merge(totals, left_on="Id", right_on="AccountId", how="left")
    billed = billed[["Id", "Name", "Billed"]].sort_values("Id")
    Path(OUTPUT_DIR).mkdir(exist_ok=True)
    billed.to_csv(f"{OUTPUT_DIR}/Billed.csv", index=False)
