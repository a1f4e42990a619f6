"""What differs between versions is told alike at each door: differences, a row's history, the command."""

import math

import pyarrow as pa
import pytest
from tests import given

from freezeframe.cli.output import cell_changes
from freezeframe.errors import InvalidOption
from freezeframe.service.rows.differences import (
    DifferenceRequest,
    change_cells,
    restored_rows,
    row_difference,
    row_history,
    select_rows,
)
from freezeframe.store.diff.row_changes import RowChanges
from freezeframe.store.model.update_options import Author


@pytest.fixture
def tenant():
    return given.tenant()


def rows(zero, number, part):
    lists = pa.array([[math.nan, None]], pa.list_(pa.float64()))
    return pa.table({"Id": ["1"], "zero": [zero], "nan": lists, "n": [number], "part": part})


def test_the_changed_cells_of_a_row_are_the_same_at_each_door(tenant):
    """The sign of a zero is a change; NaN, a new member without a value and a retyped value are none."""
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


@pytest.mark.parametrize("key", [math.nan, math.inf, -math.inf, -0.0, 1.5])
def test_a_key_is_named_as_rows_show_it(tenant, key):
    """A number that JSON has no form for is text, in a path and in a body."""
    stream = tenant.stream("Account")
    for value in (1, 2):
        lists = pa.array([[math.inf]], pa.list_(pa.float64()))
        stream.update(pa.table({"Id": [key], "v": [value], "w": [key], "l": lists}), key="Id")
    (row,) = row_difference(tenant, "Account", 0, 1, DifferenceRequest())[0].rows
    shown = row.after["Id"]

    assert len(row_history(tenant, "Account", str(shown), None, 9).versions) == 2
    assert change_cells(tenant, "Account", {"Id": shown}, {"v": 3}, Author("ada")).committed
    chosen = select_rows(tenant, "Account", 0, [{"Id": shown}])
    assert restored_rows(tenant, chosen, dry_run=False, author=Author("ada")).counts.updated == 1
    assert [1] == stream.read(as_="arrow")["v"].to_pylist()


@pytest.mark.parametrize(
    ("then", "key", "problem"),
    [
        ({"Id": [1], "Name": ["a"]}, "Name", "The stream had another key then."),
        ({"Id": ["x"], "Name": ["a"]}, "Id", "The key has another type since."),
    ],
)
def test_rows_under_a_key_of_then_are_restored_whole(tenant, then, key, problem):
    """Neither another key nor one whose values today's type cannot hold names the rows of today."""
    stream = tenant.stream("Account")
    stream.update(pa.table({"Id": ["w"] if key == "Id" else [2], "Name": ["b"]}), key=key)
    stream.update(pa.table(then), key=key)
    tenant.drop_stream("Account")
    stream.update(pa.table({"Id": [1], "Name": ["c"]}), key="Id")

    with pytest.raises(InvalidOption, match=problem) as caught:
        select_rows(tenant, "Account", 0, [], after=1)
    assert caught.value.remedy == "Restore the whole stream instead."
