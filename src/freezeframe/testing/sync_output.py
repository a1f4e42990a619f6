"""Sync folders in the shapes that taps leave behind, with data that nobody owns.

The same seed gives the same bytes on every machine, so a test may name a row. Two syncs belong
together: the first is a full one, the second brings new, changed and unchanged rows of it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from freezeframe.testing import invoices, leads, ledger

SyncNumber = Literal[1, 2]
Row = dict[str, str]

# The stamps are part of the file names, by which files of one stream are put in order.
_STAMPS: dict[SyncNumber, str] = {1: "20261001T060000", 2: "20261006T060000"}
_COLUMNS = {
    "Lead": leads.COLUMNS,
    "Invoice": invoices.COLUMNS,
    "GeneralLedgerCashReport": ledger.COLUMNS,
}


@dataclass(frozen=True, slots=True)
class SyncSize:
    """How many rows the full sync has of each stream; the second one adds a tenth of that as new."""

    leads: int = 60
    invoices: int = 90
    ledger_lines: int = 600

    def __post_init__(self) -> None:
        if min(self.leads, self.invoices, self.ledger_lines) < 10:  # noqa: PLR2004 - a tenth of less is nothing
            raise ValueError(f"a sync has at least 10 rows of each stream, not {self}")


_USUAL_SIZE = SyncSize()


def sync_output(sync: SyncNumber, seed: int = 1, size: SyncSize = _USUAL_SIZE) -> dict[str, list[Row]]:
    """The rows of one sync by stream; every value is text, and an empty text is a missing value.

    ``sync`` 1 is the full sync. In ``sync`` 2 ``Lead`` and ``Invoice`` hold what was changed,
    sent again or new (by ``Id``), and ``GeneralLedgerCashReport`` a window of dates as it is then.
    """
    # A stream's rows depend on the seed and its own name only: another size of one leaves the others alone.
    source = {stream: Random(f"{seed} {stream}") for stream in _COLUMNS}  # noqa: S311 - invented data
    first: dict[str, list[Row]] = {
        "Lead": leads.full(source["Lead"], size.leads),
        "Invoice": invoices.full(source["Invoice"], size.invoices),
        "GeneralLedgerCashReport": ledger.full(source["GeneralLedgerCashReport"], size.ledger_lines),
    }
    if sync == 1:
        return first
    return {
        "Lead": leads.incremental(source["Lead"], first["Lead"], size.leads // 10),
        "Invoice": invoices.incremental(source["Invoice"], first["Invoice"], size.invoices // 10),
        "GeneralLedgerCashReport": ledger.incremental(
            source["GeneralLedgerCashReport"], first["GeneralLedgerCashReport"], size.ledger_lines // 10
        ),
    }


def write_sync_output(
    folder: Path, sync: SyncNumber, seed: int = 1, size: SyncSize = _USUAL_SIZE
) -> dict[str, Path]:
    """Write one sync as ``{Stream}-{stamp}.csv`` files into ``folder``; the files by stream."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for stream, rows in sync_output(sync, seed, size).items():
        files[stream] = folder / f"{stream}-{_STAMPS[sync]}.csv"
        _write_csv(files[stream], _COLUMNS[stream], rows)
    return files


def _write_csv(file: Path, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    """Write rows as taps do: a header, UTF-8, quotes only where a value needs them."""
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
