"""The difference of two versions: which rows are new, updated (and what they were), or deleted."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.typed_columns import KINDS, cells, key_form, same_form

from freezeframe.store.diff.row_changes import compare_tables


def _changes(old, new, key=("Id",)):
    return [
        (
            row["_change_type"],
            {k: v for k, v in row.items() if k not in {"_change_type", "_before"}},
            row["_before"],
        )
        for row in compare_tables(old, new, key).table.to_pylist()
    ]


def test_each_fate_has_its_row():
    """One row a change, sorted by key, with the old values beside the new ones."""
    old = pa.table({"Id": ["1", "2", "3"], "v": [1, 2, None]})
    new = pa.table({"Id": ["2", "3", "4"], "v": [20, None, 4]})

    assert _changes(old, new) == [
        ("delete", {"Id": "1", "v": 1}, {"Id": "1", "v": 1}),
        ("update", {"Id": "2", "v": 20}, {"Id": "2", "v": 2}),
        ("insert", {"Id": "4", "v": 4}, None),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (  # a new column with a value is an update; one without values is none, and neither is a lost one
            pa.table({"Id": ["1", "2"], "gone": ["x", None]}),
            pa.table({"Id": ["1", "2"], "added": pa.array([None, 5], pa.int64())}),
            [("update", {"Id": "2", "added": 5}, {"Id": "2", "gone": None})],
        ),
        (
            pa.table({"Id": ["1", None], "v": [1, 2]}),
            pa.table({"Id": [None, "1"], "v": [3, 1]}),
            [("update", {"Id": None, "v": 3}, {"Id": None, "v": 2})],
        ),
        (
            pa.table({"Id": pa.array([1], pa.int32()), "v": [1]}),
            pa.table({"Id": pa.array([1, 2**40], pa.int64()), "v": [1, 2]}),
            [("insert", {"Id": 2**40, "v": 2}, None)],
        ),
        (  # a value that the new type cannot tell is null in a deletion and whole in ``_before``
            pa.table({"Id": ["1", "2"], "v": ["abc", "x7"], "n": [1, 2**60 + 1]}),
            pa.table({"Id": ["1"], "v": [7], "n": [1.0]}),
            [
                ("update", {"Id": "1", "v": 7, "n": 1.0}, {"Id": "1", "v": "abc", "n": 1}),
                ("delete", {"Id": "2", "v": None, "n": None}, {"Id": "2", "v": "x7", "n": 2**60 + 1}),
            ],
        ),
    ],
    ids=["columns", "null keys", "a widened key", "an override of types"],
)
def test_changes_of_columns_and_keys(old, new, expected):
    assert expected == _changes(old, new)


def test_a_struct_with_a_further_field_is_the_same_struct():
    """A field that was added without a value is not a change, at any depth."""
    before, after = pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.string())])
    old = pa.table({"Id": ["1", "2"], "v": pa.array([[{"a": 1}], [{"a": 2}]], pa.list_(before))})
    new = pa.table({"Id": ["1", "2"], "v": pa.array([[{"a": 1}], [{"a": 2, "b": "x"}]], pa.list_(after))})

    assert [(kind, row["Id"]) for kind, row, _ in _changes(old, new)] == [("update", "2")]


def test_a_key_whose_type_was_open_is_found():
    """A part of a key that was always null is text until it has a value; its null is the same null then."""
    old = pa.table({"Id": ["1", "2"], "part": pa.array([None, None], pa.string()), "v": [1, 2]})
    new = pa.table({"Id": ["1", "2", "2"], "part": [None, None, 7], "v": [1, 3, 4]})

    found = _changes(old, new, ("Id", "part"))
    assert {(kind, row["part"], row["v"]) for kind, row, _ in found} == {
        ("update", None, 3),
        ("insert", 7, 4),
    }


def test_a_nan_is_one_key_whatever_its_bits():
    """Two writers may store NaN in other bits; a row under it is the same row."""
    sides = [
        np.array([bits], np.uint64).view(np.float64) for bits in (0x7FF8000000000000, 0xFFF8000000000001)
    ]
    old, new = (pa.table({"Id": pa.array(side), "v": [1]}) for side in sides)

    assert _changes(old, new) == []


def test_keys_of_another_kind_are_other_keys():
    """No time is a number, so after an override each old key is gone and each new one is new."""
    old, new = pa.table({"Id": pa.array([1, 2], pa.timestamp("us"))}), pa.table({"Id": [1, 2]})

    assert [kind for kind, _, _ in _changes(old, new)] == ["insert", "insert", "delete", "delete"]


@pytest.mark.parametrize("back", [False, True])
def test_a_key_that_became_text_is_the_same_key(back):
    """As its values print, in whose order rows come; a cell that became text is not a change."""
    numbers = pa.table({"Id": [1, 2, 7], "n": [1, None, 3]})
    texts = pa.table({"Id": ["1", "2", "007"], "n": ["1", None, "3"]})
    old, new = (texts, numbers) if back else (numbers, texts)

    expected = [("insert", new["Id"][2].as_py()), ("delete", old["Id"][2].as_py())]
    assert sorted(expected, key=lambda change: str(change[1])) == [
        (kind, (before if kind == "delete" else row)["Id"]) for kind, row, before in _changes(old, new)
    ]


def test_rows_without_a_key_are_counted():
    old = pa.table({"d": ["a", "a", "b"]})
    new = pa.table({"d": ["a", "c", "c"]})

    kinds = sorted((kind, row["d"]) for kind, row, _ in _changes(old, new, ()))
    assert kinds == [("delete", "a"), ("delete", "b"), ("insert", "c"), ("insert", "c")]


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


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_changes_of_every_type_follow_the_values(kind, data):
    """As a key (nulls, NaN, signed zeros, any bytes) or a value: the rule of all comparisons holds."""
    values = data.draw(st.lists(cells(kind), min_size=1, max_size=4))
    if kind.may_be_key:
        some = st.lists(st.sampled_from(values), unique_by=lambda value: key_form(value, kind.arrow))
        sides = [data.draw(some) for _ in "on"]
        old, new = (pa.table({"Id": pa.array(side, kind.arrow)}) for side in sides)
        left, right = ({key_form(value, kind.arrow) for value in side} for side in sides)
        expected = {("delete", item) for item in left - right} | {("insert", item) for item in right - left}
        found = [(change, key_form(row["Id"], kind.arrow)) for change, row, _ in _changes(old, new)]
        assert sorted(expected, key=repr) == sorted(found, key=repr)
    shuffled = data.draw(st.permutations(values))
    old, new = (pa.table({"Id": range(len(v)), "v": pa.array(v, kind.arrow)}) for v in (values, shuffled))
    expected = [
        number
        for number, pair in enumerate(zip(values, shuffled, strict=True))
        if same_form(pair[0], kind.arrow) != same_form(pair[1], kind.arrow)
    ]
    assert [row["Id"] for _, row, _ in _changes(old, new)] == expected


def test_changed_cells_are_told_by_row_and_column():
    """Of updates alone, with the values of both sides; equal values of other types are no change."""
    old = pa.table({"Id": [0.0, 1.0, 2.0], "a": [1, 2, 3], "b": ["1", "2", "x"], "gone": [1, 1, 1]})
    new = pa.table({"Id": [-0.0, 1.0, 3.0], "a": [1, 5, 3], "b": [7, 2, 3], "new": [None, None, "n"]})
    changes = compare_tables(old, new, ["Id"])

    assert {"a": [False, True, False, False], "b": [True, False, False, False]} == {
        name: mask.tolist() for name, mask in changes.changed.items()
    }
    assert (["update", "update", "delete", "insert"], ["1", "2", "x", None]) == (
        changes.table["_change_type"].to_pylist(),
        changes.before["b"].to_pylist(),
    )
    only = changes.of_columns(["a"])
    assert [(1.0, 5, 2, None)] == list(
        zip(*(column.to_pylist() for column in only.after.columns), strict=True)
    )
    assert (1, 2, 0, 1) == tuple(changes.counts.to_json().values())
