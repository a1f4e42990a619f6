"""What a batch makes of stored rows, against a rule that goes row by row over dictionaries."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_columns import KINDS, cells, same_form

from freezeframe.store.updates.upsert import coalesce


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
    batch = pa.table({"Id": [1, 2], "at": [1.5, 2.5], "name": ["a", "b"]})
    stored = pa.table({"at": [1.0, 2.0], "name": ["a", "b"]})
    asked = []

    def old_values(names, which):
        asked.extend(names)
        return stored.select(list(names)).filter(pa.array(which))

    filled = coalesce(batch, batch.schema, ["Id", "at", "name"], ["Id"], old_values, keeps_nulls=True)

    assert asked == ["at"]
    assert batch == filled.rows


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
