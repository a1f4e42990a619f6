"""Audit export: JSON lines, exact, or CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Literal

from freezeframe.service.access.audit_entry import AuditEntry

EXPORT_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_COLUMNS = (
    "number",
    "moment",
    "principal",
    "action",
    "subject",
    "request_id",
    "details",
    "hash",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_lines(entries: Iterable[AuditEntry], kind: Literal["jsonl", "csv"]) -> Iterator[str]:
    """The entries as lines of text."""
    if kind == "jsonl":
        for entry in entries:
            yield f"{json.dumps(entry.to_json(), ensure_ascii=False)}\n"
        return
    yield _line(_COLUMNS)
    for entry in entries:
        told = {**entry.to_json(), "details": entry.details}
        yield _line(str(told[name]) for name in _COLUMNS)


def _line(cells: Iterable[str]) -> str:
    # A spreadsheet would evaluate such a cell, and names come from callers.
    safe = [f"'{one}" if one.startswith(_FORMULA) else one for one in cells]
    written = io.StringIO()
    csv.writer(written).writerow(safe)
    return written.getvalue()
