"""Input of the demo's syncs: invented data, or real exports with changes derived from them."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from freezeframe.errors import InputNotFound

Sync = Literal[1, 2]


def invent_sync(folder: Path, sync: Sync) -> None:
    """The sync of the tenant that the demo follows, from invented data."""
    _run_tap(folder, f"--sync={sync}")


def of_another_tenant(folder: Path, sync: Sync) -> None:
    """The sync of a smaller tenant that has nothing in common with the first."""
    _run_tap(folder, f"--sync={sync}", "--seed=2", "--leads=20", "--invoices=30", "--ledger-lines=100")


def _run_tap(folder: Path, *options: str) -> None:
    # A tap is a separate program, which the demonstration knows only by its output.
    command = [sys.executable, "-m", "freezeframe.testing.tap", str(folder), *options]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)  # noqa: S603 - our own tap


def from_samples(samples: Path, folder: Path, sync: Sync) -> None:
    """The sync from real exports below ``samples``: ``sync-output`` and ``quickbooks-reports``.

    The first sync is the exports as they are. The second is the incremental report, and leads
    derived from the first ones: some with another status, some as they were, one new.

    Raises:
        InputNotFound: the folder has not that layout.
    """
    reports = samples / "quickbooks-reports" / ("full-sync" if sync == 1 else "incremental-sync")
    records = samples / "sync-output"
    leads = sorted(records.glob("Lead-*.csv"))
    if not reports.is_dir() or not leads:
        raise InputNotFound(
            f"{samples} holds no exports that the demo knows.",
            cause=f"It looks for {reports} and {records}/Lead-*.csv.",
            remedy="Name another folder, or leave --samples out for invented data.",
            path=str(samples),
        )
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(reports.glob("*.csv")) + (sorted(records.glob("*.csv")) if sync == 1 else []):
        shutil.copy(file, folder / file.name)
    if sync == 2:  # noqa: PLR2004 - the second of two
        _write_changed_leads(leads[-1], folder)


def _write_changed_leads(file: Path, folder: Path) -> None:
    with file.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.DictReader(text)
        rows = list(reader)
        columns = list(reader.fieldnames or ())
    changed = [{**row, "Status": "Working - Contacted", "Phone": ""} for row in rows[::3]]
    unchanged = rows[1::3]
    # Ids have 18 letters; this one belongs to no real system.
    new = [{**row, "Id": "00Q" + "0" * 15, "LastName": "Null", "Name": "Ada Null"} for row in rows[:1]]
    with (folder / "Lead-20991231T000000.csv").open("w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, columns)
        writer.writeheader()
        writer.writerows(changed + unchanged + new)
