"""Keep the accounts and invoices that a sync brought, and write what each account has been billed."""

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

# Update the snapshot of each stream that the sync brought
for stream in ("Account", "Invoice"):
    if stream in input_data:
        util.update_snapshot(SNAPSHOT_DIR, stream, ["Id"], input_data[stream])

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
