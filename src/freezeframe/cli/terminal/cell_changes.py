"""Row changes for people: an update as its changed cells, old and new (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SPARKS = "▁▂▃▄▅▆▇█"
_KIND, _BEFORE = "_change_type", "_before"


def cell_changes(rows: Iterable[Mapping[str, Any]], key: Sequence[str]) -> list[dict[str, Any]]:
    """The kind, key and cells of each change: the changed cells of an update, else all with a value.

    A changed cell reads ``column: old → new``, any other one ``column: value``.
    """
    return [
        {"change": row[_KIND], **{name: _key_cell(row, name) for name in key}, "cells": _cells(row, key)}
        for row in rows
    ]


def sparkline(counts: Sequence[int]) -> str:
    """The counts as a line of bars, from none for 0 to a full one for the largest."""
    highest = max(counts, default=0)
    if not highest:
        return _SPARKS[0] * len(counts)
    return "".join(_SPARKS[round(count * (len(_SPARKS) - 1) / highest)] for count in counts)


def _key_cell(row: Mapping[str, Any], name: str) -> Any:
    """The old key of a deleted row, since it may not fit the column's current type."""
    value = row.get(name)
    return (row.get(_BEFORE) or {}).get(name) if value is None else value


def _cells(row: Mapping[str, Any], key: Sequence[str]) -> list[str]:
    before = row.get(_BEFORE) or {}
    names = [name for name in row if name not in {_KIND, _BEFORE, *key}]
    if row[_KIND] == "update":
        changed = [name for name in names if before.get(name) != row[name]]
        return [f"{name}: {_text(before.get(name))} → {_text(row[name])}" for name in changed]
    return [f"{name}: {_text(row[name])}" for name in names if row[name] is not None]


def _text(value: Any) -> str:
    return "(null)" if value is None else str(value)
