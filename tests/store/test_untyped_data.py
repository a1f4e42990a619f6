"""Columns, lists and objects that are empty so far: kept as they are, and the first value decides."""

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from freezeframe.engine.frames.frames import to_pandas
from freezeframe.errors import SchemaDriftError

KINDS = {"arrow": lambda table: table, "pandas": to_pandas, "polars": pl.from_arrow}


def rows_of(stream, **options):
    return stream.read(as_="arrow", **options).to_pylist()


def table(*values, start=1):
    return pa.table({"Id": range(start, start + len(values)), "v": pa.array(list(values))})


EMPTY_VALUES = {
    "list": [],
    "lists in a list": [[], []],
    "object": {},
    "objects in a list": [{}, {}],
    "member": {"a": None, "b": 1},
    "member of a member": {"a": {"b": None}},
    "list in an object": {"a": []},
    "nulls in a list": [None],
}


@pytest.fixture(params=KINDS)
def frame(request):
    """A table as each kind of frame."""
    return KINDS[request.param]


@pytest.mark.parametrize("value", EMPTY_VALUES.values(), ids=EMPTY_VALUES)
def test_what_is_empty_comes_back_as_it_was(open_finding, local, frame, value):
    """At every door, also where it is given back; a batch of the same is no new version."""
    stream = open_finding(local).stream("S")
    stream.update(frame(table(value, None)), key="Id")

    assert [row["v"] for row in rows_of(stream)] == [value, None]
    for kind in KINDS:
        receipt = stream.update(stream.read(as_=kind), key="Id")
        assert (receipt.unchanged, receipt.committed) == (2, False)
    assert stream.read(as_="pandas")["v"][0] == value
    assert stream.read(as_="polars")["v"].to_list() == [value, None]


DECISIONS = {
    "list of objects": ([], [{"sku": "a", "n": 1}], []),
    "list of text": ([], ["x"], []),
    "list of lists": ([[]], [[1.5]], [[]]),
    "object": ({}, {"a": 1}, {"a": None}),
    "object of open members": ({}, {"a": None}, {"a": None}),
    "objects in a list": ([{}], [{"a": "x"}], [{"a": None}]),
    "member becomes a number": ({"a": None, "b": 1}, {"a": 5, "b": 2}, {"a": None, "b": 1}),
    "member becomes an object": ({"a": None}, {"a": {"b": "x"}}, {"a": {"b": None}} and {"a": None}),
    "list in an object": ({"a": []}, {"a": [{"b": True}]}, {"a": []}),
    "nulls in a list": ([None], [7], [None]),
}


@pytest.mark.parametrize("case", DECISIONS.values(), ids=DECISIONS)
@pytest.mark.parametrize("options", [{}, {"vectors_from_bytes": 0}], ids=["small", "vectors"])
def test_the_first_value_decides(open_finding, local, frame, case, options):
    """Rows before it stay as they were, those after it have its type; a value of another kind is refused."""
    before, value, after = case
    stream = open_finding(local, **options).stream("S")
    stream.update(frame(table(before, None)), key="Id")
    stream.update(frame(table(before, start=7)), key="Id")
    receipt = stream.update(frame(table(value, start=3)), key="Id")

    assert (receipt.inserted, receipt.updated, receipt.deleted) == (1, 0, 0)
    assert [row["v"] for row in rows_of(stream)] == [after, None, value, after]
    assert [row["v"] for row in rows_of(stream, version=0)] == [before, None]
    changes = stream.changes(since=1, as_="arrow")
    assert changes.select(["_change_type", "Id"]).to_pylist() == [{"_change_type": "insert", "Id": 3}]
    assert stream.update(frame(table(before)), key="Id").updated == 0
    with pytest.raises(SchemaDriftError):
        stream.update(table("text" if isinstance(value, list) else [{"z": [1]}], start=9), key="Id")


def test_it_is_decided_by_a_row_that_changes(open_finding, local):
    """The change says the old and the new value; the version before is restored as it was."""
    tenant = open_finding(local)
    stream = tenant.stream("S")
    stream.update(table([], {"x": 1}["x"] and []), key="Id")
    receipt = stream.update(table(["a"]), key="Id")

    assert (receipt.updated, rows_of(stream)) == (1, [{"Id": 1, "v": ["a"]}, {"Id": 2, "v": []}])
    (change,) = receipt.changed_rows(as_="arrow").to_pylist()
    assert (change["_change_type"], change["v"], change["_before"]["v"]) == ("update", ["a"], [])
    tenant.restore(0)
    assert rows_of(stream) == [{"Id": 1, "v": []}, {"Id": 2, "v": []}]
    stream.update(table([5], start=3), key="Id")
    assert [row["v"] for row in rows_of(stream)] == [[], [], [5]]


def test_what_outside_readers_see_is_text_and_null(open_finding, local):
    """Neither void nor a struct without members is in the log or in a file."""
    stream = open_finding(local).stream("S")
    stream.update(pa.table({"Id": [1], "l": [[]], "m": [{}], "s": [{"a": None}], "n": pa.nulls(1)}), key="Id")

    snapshot = stream.snapshot()
    text = json.dumps([field["type"] for field in snapshot.schema["fields"]])
    assert ("void" in text, '"fields": []' in text) == (False, False)
    plain = snapshot.to_arrow().to_pylist()
    assert plain == [{"Id": 1, "l": [], "m": {"_freezeframe_no_member": None}, "s": {"a": None}, "n": None}]


def test_a_text_column_without_values_decides_nothing(open_finding, local, frame):
    """A frame of the stream has such a column as text; a number may come after it was given back."""
    stream = open_finding(local).stream("S")
    stream.update(pa.table({"Id": [1], "phone": pa.nulls(1)}), key="Id")
    stream.update(pa.table({"Id": [2], "phone": pa.nulls(1, pa.string())}), key="Id")
    stream.update(frame(pa.table({"Id": [3], "phone": [7]})), key="Id")

    assert [row["phone"] for row in rows_of(stream)] == [None, None, 7]


EMPTY_FRAMES = {
    "pandas": pd.DataFrame(columns=["Id", "V"]),
    "arrow": pa.table({"Id": pa.nulls(0), "V": pa.nulls(0)}),
    "polars": pl.DataFrame({"Id": [], "V": []}),
}


@pytest.mark.parametrize("empty", EMPTY_FRAMES.values(), ids=EMPTY_FRAMES)
@pytest.mark.parametrize("options", [{}, {"history": "scd2"}])
def test_a_stream_can_be_overridden_by_a_frame_without_rows(open_on, local, empty, options):
    """It is empty then and has these columns, also in a preview; the next rows decide their types."""
    stream = open_on(local).stream("S")
    stream.update(pa.table({"Id": [1, 2], "V": ["a", "b"], "W": [1, 2]}), key="Id", **options)

    assert stream.preview(empty, "Id", override=True, **options).deleted == 2
    receipt = stream.update(empty, key="Id", override=True, **options)
    assert (receipt.deleted, receipt.inserted, receipt.columns_dropped) == (2, 0, ("W",))
    assert (stream.columns().names, rows_of(stream)) == (["Id", "V"], [])
    stream.update(pa.table({"Id": ["x"], "V": [1.5]}), key="Id")
    assert rows_of(stream) == [{"Id": "x", "V": 1.5}]
