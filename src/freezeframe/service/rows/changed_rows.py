"""Row differences as JSON: before, after, and the changed cells (pure)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.service.base.json_values import json_value
from freezeframe.store.diff.row_diff import BEFORE, CHANGE_TYPE

RowFate = Literal["insert", "update", "delete"]


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row at both versions: ``before`` is empty for a new one, ``after`` for a deleted one."""

    fate: RowFate
    before: dict[str, Any]
    after: dict[str, Any]
    changed: tuple[str, ...]
    """Of an update: the columns whose values are not the same."""


def changed_rows(table: pa.Table) -> Iterator[ChangedRow]:
    """The rows of a table of changes (see ``Stream.changes``), in its order."""
    for record in shown_rows(table):
        fate = record.pop(CHANGE_TYPE)
        before = record.pop(BEFORE) or {}
        if fate == "delete":
            yield ChangedRow("delete", _plain_row(record), {}, ())
            continue
        if fate == "insert":
            yield ChangedRow("insert", {}, _plain_row(record), ())
            continue
        differing = tuple(name for name, value in record.items() if not _same(before.get(name), value))
        yield ChangedRow("update", _plain_row(before), _plain_row(record), differing)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other)


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json_value(value) for name, value in row.items()}
