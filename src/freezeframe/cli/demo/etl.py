"""A transformation script: keep what a sync brought, then write what the target wants.

It is run once per sync of a tenant, with ``ROOT_DIR`` naming the job's folder.
"""

import os
import time

import pandas as pd

import freezeframe.gluestick as gs
from freezeframe import script as util

# standard directories
ROOT_DIR = os.environ.get("ROOT_DIR", ".")
INPUT_DIR = f"{ROOT_DIR}/sync-output"
OUTPUT_DIR = f"{ROOT_DIR}/etl-output"
SNAPSHOT_DIR = f"{ROOT_DIR}/snapshots"

# Read input data
input_data = gs.read_csv_folder(INPUT_DIR)

updates = []
for stream, rows in input_data.items():
    started = time.monotonic()
    if stream.endswith("Report"):
        # A report has no key: a sync sends it again from a date on, and that window is replaced.
        first_day = rows["Date"].min()
        util.update_snapshot(SNAPSHOT_DIR, stream, None, rows, replace_where=f"Date >= '{first_day}'")
    else:
        util.update_snapshot(SNAPSHOT_DIR, stream, ["Id"], rows)
    updates.append({"stream": stream, "rows_sent": len(rows), "seconds": time.monotonic() - started})

os.makedirs(OUTPUT_DIR, exist_ok=True)  # noqa: PTH103 - a script in the style of scripts
pd.DataFrame(updates).to_csv(f"{OUTPUT_DIR}/updates.csv", index=False)

# Two integrations meet: each lead of the CRM with what accounting has billed to its company.
leads = util.get_snapshot(SNAPSHOT_DIR, "Lead")
invoices = util.get_snapshot(SNAPSHOT_DIR, "Invoice")
if leads is not None and invoices is not None:
    invoices["Billed"] = pd.to_numeric(invoices["TotalAmt"])
    billed = invoices.groupby("CustomerRef__name", as_index=False)["Billed"].sum()
    leads = leads.merge(billed, how="left", left_on="Company", right_on="CustomerRef__name")
    leads[["Id", "Name", "Company", "Status", "Billed"]].to_csv(
        f"{OUTPUT_DIR}/LeadsWithBilling.csv", index=False
    )

# The whole ledger, though the last sync brought a few weeks of it.
ledger = util.get_snapshot(SNAPSHOT_DIR, "GeneralLedgerCashReport")
if ledger is not None:
    ledger["Amount"] = pd.to_numeric(ledger["Amount"])
    ledger["Month"] = ledger["Date"].astype(str).str.slice(0, 7)
    sums = ledger.groupby(["Account", "Month"], as_index=False)["Amount"].sum().round(2)
    sums.to_csv(f"{OUTPUT_DIR}/LedgerByMonth.csv", index=False)
