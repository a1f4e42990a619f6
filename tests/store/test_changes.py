"""The difference of two versions: which rows are new, updated (and what they were), or deleted."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.store.changes import table_changes


def _changes(old, new, key=("Id",)):
    return [
        (
            row["_change_type"],
            {k: v for k, v in row.items() if k not in {"_change_type", "_before"}},
            row["_before"],
        )
        for row in table_changes(old, new, key).to_pylist()
    ]


def test_each_fate_has_its_row():
    """One row a change, sorted by key, with the old values beside the new ones."""
    old = pa.table({"Id": ["1", "2", "3"], "v": [1, 2, None]})
    new = pa.table({"Id": ["2", "3", "4"], "v": [20, None, 4]})

    assert [
        ("delete", {"Id": "1", "v": 1}, {"Id": "1", "v": 1}),
        ("update", {"Id": "2", "v": 20}, {"Id": "2", "v": 2}),
        ("insert", {"Id": "4", "v": 4}, None),
    ] == _changes(old, new)


def test_columns_that_came_or_went():
    """A new column with a value, or a lost one, is an update; one without values is none."""
    old = pa.table({"Id": ["1", "2"], "gone": ["x", None]})
    new = pa.table({"Id": ["1", "2"], "added": pa.array([None, None], pa.int64())})

    assert [("update", {"Id": "1", "added": None}, {"Id": "1", "gone": "x"})] == _changes(old, new)


def test_nulls_in_keys_match():
    """Under null_keys="match" a null is a key like any other."""
    old = pa.table({"Id": ["1", None], "v": [1, 2]})
    new = pa.table({"Id": [None, "1"], "v": [3, 1]})

    assert [("update", {"Id": None, "v": 3}, {"Id": None, "v": 2})] == _changes(old, new)


@pytest.mark.parametrize("value", [[1, None], {"a": 1}, float("nan"), b"\x00", True, None])
def test_equal_values_of_any_kind_are_no_change(value):
    """Lists, structs and NaN are compared as values."""
    table = pa.table({"Id": ["1"], "v": [value]})

    assert [] == _changes(table, table)


def test_a_widened_key_is_the_same_key():
    """A key column that became wider still finds its rows."""
    old = pa.table({"Id": pa.array([1], pa.int32()), "v": [1]})
    new = pa.table({"Id": pa.array([1, 2**40], pa.int64()), "v": [1, 2]})

    assert [("insert", {"Id": 2**40, "v": 2}, None)] == _changes(old, new)


def test_rows_without_a_key_are_counted():
    """The same row twice more is two insertions."""
    old = pa.table({"d": ["a", "a", "b"]})
    new = pa.table({"d": ["a", "c", "c"]})

    kinds = sorted((kind, row["d"]) for kind, row, _ in _changes(old, new, ()))
    assert [("delete", "a"), ("delete", "b"), ("insert", "c"), ("insert", "c")] == kinds


ROWS = st.dictionaries(st.integers(0, 8), st.none() | st.integers(0, 3))


@given(old=ROWS, new=ROWS)
def test_changes_lead_from_old_to_new(old, new):
    """Applied to the old rows they give the new ones, and no change says nothing."""
    tables = [
        pa.table({"Id": pa.array(list(rows), pa.int64()), "v": pa.array(list(rows.values()), pa.int64())})
        for rows in (old, new)
    ]

    state = dict(old)
    for kind, row, before in _changes(*tables):
        assert (before is None) == (kind == "insert")
        assert before is None or old[row["Id"]] == before["v"]
        if kind == "delete":
            del state[row["Id"]]
        else:
            assert kind == "insert" or state[row["Id"]] != row["v"]
            state[row["Id"]] = row["v"]

    assert new == state
