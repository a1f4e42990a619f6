"""One row at two versions (time travel)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from freezeframe.store import Tenant

_STREAM = "Lead"
_ALWAYS = ("Id", "Name", "Company", "Phone")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of one row, before and after."""

    column: str
    before: Any
    after: Any

    @property
    def is_changed(self) -> bool:
        """Whether the old and the new value differ."""
        return bool(self.before != self.after)


def changed_row(tenant: Tenant) -> list[Cell]:
    """A lead that the last version changed: who it is, and each cell that differs; empty without one."""
    stream = tenant.stream(_STREAM)
    newest = stream.stream_version()
    if newest < 1:
        return []
    before = {row["Id"]: row for row in stream.read(stream_version=newest - 1, as_="arrow").to_pylist()}
    for row in stream.read(stream_version=newest, as_="arrow").to_pylist():
        known = before.get(row["Id"])
        if known is None:
            continue
        cells = [Cell(column, known.get(column), value) for column, value in row.items()]
        if any(cell.is_changed for cell in cells):
            return [cell for cell in cells if cell.is_changed or cell.column in _ALWAYS]
    return []
