"""The rule by which stored rows and a batch are merged: cells, fates, histories and flags."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_columns import KINDS, cells, same_form

from freezeframe.store.schema.columns import SystemColumns
from freezeframe.store.updates.rule import Fates, MergeRule, coalesce, merge_rows

US = pa.timestamp("us", tz="UTC")
PLAIN = MergeRule(pa.schema({"Id": pa.int64(), "v": pa.int64()}), ("Id", "v"), ("Id",), keeps_nulls=True)
HISTORY = replace(PLAIN, own=SystemColumns(has_history=True), moment_us=3_000_000, since_us=1_000_000)
FLAGS = replace(PLAIN, own=SystemColumns(flags_deleted=True))


def second(value):
    return (
        (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).seconds if isinstance(value, dt.datetime) else value
    )


def merged(rule, stored, at, batch, inside=None):
    """The rows as tuples, their fates, and whether they changed."""
    whole = pa.Table.from_pylist(
        [dict(zip(rule.target.names, row, strict=True)) for row in stored], rule.target
    )
    rows = pa.Table.from_pylist([{"Id": key, "v": value} for key, value in batch], rule.columns)
    found = merge_rows(whole, np.array(at, np.int64), rows, rule, inside)
    told = [tuple(map(second, row.values())) for row in found.rows.to_pylist()]
    assert rule.target == found.rows.schema
    return told, found.fates, found.is_changed


@pytest.mark.parametrize(
    ("absent", "rows", "fates"),
    [
        ("kept", [(1, 10), (2, 2), (3, 3), (4, 4), (5, 50)], Fates(2, 2, 0, 5, 0)),
        ("removed", [(1, 10), (2, 2), (3, 3), (5, 50)], Fates(2, 2, 1, 5, 1)),
    ],
)
def test_each_stored_row_has_one_fate(absent, rows, fates):
    """Changed, equal, kept by a null, absent: rows stay in their order."""
    rule = replace(PLAIN, absent=absent)
    stored, batch = [(n, n) for n in range(1, 6)], [(1, 10), (2, 2), (3, None), (5, 50)]
    found = merged(rule, stored, [0, 1, 2, 4], batch)
    assert (rows, fates, True) == found


def test_rows_that_no_value_changes_are_the_stored_ones():
    """Nothing has to be written, with a history or flags neither."""
    stored, fates = [(1, 1), (2, 2)], Fates(0, 1, 0, 2, 0)
    assert (stored, fates, False) == merged(PLAIN, stored, [1], [(2, None)])
    flagged = [(1, 1, False), (2, 2, False)]
    assert (flagged, fates, False) == merged(FLAGS, flagged, [1], [(2, None)])
    without = [(1, 1, None), (2, 2, False)]  # the first was written before the stream had flags
    assert (flagged, fates, False) == merged(FLAGS, without, [1], [(2, None)])
    found = merged(HISTORY, moments([(1, 1, 0, None), (2, 2, 0, None)]), [1], [(2, None)])
    assert ([(1, 1, 0, None), (2, 2, 0, None)], fates, False) == found


def test_only_absent_rows_inside_the_window_go():
    """What is outside, or not known to be inside, stays."""
    rule = replace(PLAIN, keeps_nulls=False, absent="removed")
    inside = np.array([True, True, False])
    found = merged(rule, [(1, 1), (2, 2), (3, 3)], [0], [(1, None)], inside)
    assert ([(1, None), (3, 3)], Fates(1, 0, 1, 3, 1), True) == found


def moments(rows):
    def at(seconds):
        return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC)

    return [(key, value, at(begin), at(end)) for key, value, begin, end in rows]


def test_a_key_leads_to_two_rows_in_a_history():
    """The row of before is closed, that of now follows it; absent rows are closed, closed ones stay."""
    stored = moments([(1, 0, 0, 2), (1, 1, 2, None), (2, 2, None, None), (3, 3, None, None), (4, 4, 0, None)])
    rule = replace(HISTORY, absent="removed")
    rows, fates, _ = merged(rule, stored, [1, 2, 4], [(1, 10), (2, None), (4, 40)])
    expected = [(1, 0, 0, 2), (1, 1, 2, 3), (1, 10, 3, None), (2, 2, 1, None), (3, 3, 1, 3)]
    assert ([*expected, (4, 4, 0, 3), (4, 40, 3, None)], Fates(2, 1, 1, 4, 1)) == (rows, fates)
    assert [(4, 40, 3, None)] == [
        tuple(map(second, row.values()))
        for row in rule.new_rows(pa.table({"Id": [4], "v": [40]})).to_pylist()
    ]


def test_flags_are_set_once_and_taken_off():
    """Of absent rows the live ones are flagged; a row that comes back is live again, and updated."""
    stored = [(1, 1, True), (2, 2, None), (3, 3, True)]
    rows, fates, _ = merged(replace(FLAGS, absent="flagged"), stored, [2], [(3, 3)])
    assert ([(1, 1, True), (2, 2, True), (3, 3, False)], Fates(1, 0, 1, 1, 1)) == (rows, fates)
    rows, fates, _ = merged(replace(FLAGS, absent="flagged"), stored, [1], [(2, 2)])
    assert ([(1, 1, True), (2, 2, False), (3, 3, True)], Fates(0, 1, 0, 1, 0)) == (rows, fates)
    rows, fates, _ = merged(replace(FLAGS, absent="removed"), stored, [2], [(3, 3)])
    assert ([(3, 3, False)], Fates(1, 0, 2, 1, 1)) == (rows, fates)
    rows, fates, _ = merged(FLAGS, stored, [2], [(3, 3)])
    assert ([(1, 1, True), (2, 2, False), (3, 3, False)], Fates(1, 0, 0, 1, 0)) == (rows, fates)


@st.composite
def meetings(draw):
    """A table of stored rows, a batch of as many rows with the same keys, and the columns of the result."""
    kinds = {f"c{number}": draw(st.sampled_from(list(KINDS.values()))) for number in range(3)}
    stored = [name for name in kinds if draw(st.booleans())]
    given_ = [name for name in kinds if name not in stored or draw(st.booleans())]
    rows = draw(st.integers(0, 5))
    columns = {
        name: draw(st.lists(cells(kind), min_size=rows, max_size=rows)) for name, kind in kinds.items()
    }
    old = {name: columns[name] for name in stored}
    # A cell of the batch is often the stored one, so that rows stay unchanged.
    new = {
        name: [draw(st.sampled_from([None, value]) | cells(kinds[name])) for value in columns[name]]
        for name in given_
    }
    types = {name: kind.arrow for name, kind in kinds.items()}
    return types, {"Id": list(range(rows)), **old}, {"Id": list(range(rows)), **new}


def by_rule(types, old, new, *, keeps_nulls):
    """The rows that change, as they become, and for each row whether it does."""
    changed_rows, changed = [], []
    for number in old["Id"]:
        before = {name: old[name][number] if name in old else None for name in types}
        after = {}
        for name in types:
            value = new[name][number] if name in new else None
            keeps = name not in new or (keeps_nulls and value is None)
            after[name] = before[name] if keeps else value
        differs = any(same_form(before[n], types[n]) != same_form(after[n], types[n]) for n in types)
        changed.append(differs)
        if differs:
            changed_rows.append((number, *(same_form(after[n], types[n]) for n in types)))
    return changed_rows, changed


def table(columns, types):
    whole = {"Id": pa.int64(), **types}
    return pa.table({name: pa.array(values, whole[name]) for name, values in columns.items()})


@pytest.mark.parametrize("keeps_nulls", [True, False], ids=["keep", "overwrite"])
@given(found=meetings())
def test_rows_are_filled_by_the_rule(keeps_nulls, found):
    """Whatever is absent, null or equal: the changed rows are those of the rule, whole, and only those."""
    types, old, new = found
    target = pa.schema([("Id", pa.int64()), *types.items()])
    stored = table(old, types)
    asked = []

    def old_values(names, which):
        asked.extend(names)
        return stored.select(list(names)).filter(pa.array(which))

    filled = coalesce(table(new, types), target, list(old), ["Id"], old_values, keeps_nulls=keeps_nulls)

    rows, changed = by_rule(types, old, new, keeps_nulls=keeps_nulls)
    assert changed == filled.changed.tolist()
    assert rows == [
        (row["Id"], *(same_form(row[name], types[name]) for name in types)) for row in filled.rows.to_pylist()
    ]
    assert target == filled.rows.schema
    assert len(asked) == len(set(asked)) <= len(old) - 1, (
        "each stored column is read at most once, the key never"
    )


def test_columns_that_decide_nothing_are_not_read():
    """When one column shows that every row changes, and no cell is open, no other column is read."""
    batch = pa.table({"Id": [1, 2], "at": [1.5, 2.5], "a name": ["a", "b"]})
    stored = pa.table({"at": [1.0, 2.0], "a name": ["a", "b"]})
    asked = []

    def old_values(names, which):
        asked.extend(names)
        return stored.select(list(names)).filter(pa.array(which))

    filled = coalesce(batch, batch.schema, ["Id", "at", "a name"], ["Id"], old_values, keeps_nulls=True)

    assert asked == ["at"]
    assert batch == filled.rows


def test_a_column_that_the_batch_lacks_hides_no_change_behind_it():
    """Old values of both are read, since one is absent and the other one has a null; one row changes."""
    batch, stored = pa.table({"Id": [1, 2], "b": [None, 5]}), pa.table({"a": [1, 2], "b": [1, 2]})
    target = pa.schema([("Id", pa.int64()), ("a", pa.int64()), ("b", pa.int64())])

    def old_values(names, which):
        return stored.select(list(names)).filter(pa.array(which))

    filled = coalesce(batch, target, ["Id", "a", "b"], ["Id"], old_values, keeps_nulls=True)

    assert ([False, True], [{"Id": 2, "a": 2, "b": 5}]) == (filled.changed.tolist(), filled.rows.to_pylist())


def test_old_values_of_a_narrower_type_are_widened():
    """What was stored as an int is compared and kept as the long that the column has become."""
    batch = pa.table({"Id": [1, 2], "n": pa.array([7, None], pa.int64())})
    stored = pa.table({"n": pa.array([7, 8], pa.int32()), "m": pa.array([1, 2], pa.int32())})
    target = pa.schema([("Id", pa.int64()), ("n", pa.int64()), ("m", pa.int64()), ("new", pa.string())])

    def old_values(names, which):
        return stored.select(list(names)).filter(pa.array(which))

    filled = coalesce(batch, target, ["Id", "n", "m"], ["Id"], old_values, keeps_nulls=False)

    assert filled.changed.tolist() == [False, True]
    assert filled.rows.to_pylist() == [{"Id": 2, "n": None, "m": 2, "new": None}]
    assert np.bool_ == filled.changed.dtype


def test_a_batch_that_meets_no_stored_row_changes_none():
    """Where all keys are new nothing is read, though the batch lacks a column; the columns are whole."""
    target = pa.schema([("Id", pa.int64()), ("n", pa.string())])

    def old_values(names, which):
        raise AssertionError((names, which))

    filled = coalesce(
        target.empty_table().select(["Id"]), target, ["Id", "n"], ["Id"], old_values, keeps_nulls=True
    )

    assert target.empty_table() == filled.rows
    assert filled.changed.tolist() == []
