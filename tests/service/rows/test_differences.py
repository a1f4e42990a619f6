"""What differs between versions is told alike at each door: differences, a row's history, the command."""

import math

import pyarrow as pa

from freezeframe.cli.output import cell_changes
from freezeframe.service.rows.differences import DifferenceRequest, row_difference, row_history
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.diff.row_changes import RowChanges


def rows(zero, number, part):
    lists = pa.array([[math.nan, None]], pa.list_(pa.float64()))
    return pa.table({"Id": ["1"], "zero": [zero], "nan": lists, "n": [number], "part": part})


def test_the_changed_cells_of_a_row_are_the_same_at_each_door():
    """The sign of a zero is a change; NaN, a new member without a value and a retyped value are none."""
    storage = MemoryStorage()
    tenant = Tenant(storage, ArrowEngine(storage), Settings())
    stream = tenant.stream("Account")
    stream.update(rows(0.0, 7, pa.array([{"a": 1}])), key="Id")
    kind = pa.struct([("a", pa.int64()), ("b", pa.string())])
    stream.update(rows(-0.0, "7", pa.array([{"a": 1, "b": None}], kind)), key="Id", override=True)

    (difference,) = row_difference(tenant, "Account", 0, 1, DifferenceRequest())[0].rows
    shown = row_history(tenant, "Account", "1", None, 1).versions[0]
    (line,) = cell_changes(RowChanges(stream.changes(0, as_="arrow"), ("Id",)))
    assert ("update", ("zero",)) == (difference.fate, difference.changed)
    assert ("zero",) == stream.row_history("1", limit=1).versions[0].changed == shown.row.changed
    assert {"change": "update", "Id": "1", "cells": ["zero: 0.0 → -0.0"]} == line
