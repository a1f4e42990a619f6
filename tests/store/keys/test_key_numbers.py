"""Which rows have a key of the batch: told by numbers, for any type and any number of columns."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_columns import KINDS, key_form

from freezeframe.store.table.keys import KeyNumbers

KEY_KINDS = [kind for kind in KINDS.values() if kind.may_be_key]


def found(keys, rows):
    at, numbers = KeyNumbers(keys).found_in(rows)
    return list(zip(at.tolist(), numbers.tolist(), strict=True))


@st.composite
def searches(draw):
    """(types of a key's one to three columns, keys that are there once, rows of the same few values)."""
    kinds = draw(st.lists(st.sampled_from(KEY_KINDS), min_size=1, max_size=3))
    pools = [[*draw(st.lists(kind.values, min_size=1, max_size=3)), None] for kind in kinds]
    row = st.tuples(*map(st.sampled_from, pools))
    keys = draw(st.lists(row, max_size=8, unique_by=lambda key: form(kinds, key)))
    return kinds, keys, draw(st.lists(row, max_size=20))


def form(kinds, row):
    return tuple(key_form(value, kind.arrow) for kind, value in zip(kinds, row, strict=True))


def table(kinds, rows):
    arrays = [pa.array([row[n] for row in rows], kind.arrow) for n, kind in enumerate(kinds)]
    return pa.table(arrays, names=[f"k{n}" for n in range(len(kinds))])


@given(search=searches())
def test_rows_are_found_as_by_a_dictionary(search):
    """The number of a key is its row among the keys; all that equals it is found, in order."""
    kinds, keys, rows = search
    numbers = {form(kinds, key): number for number, key in enumerate(keys)}
    expected = [(at, numbers[form(kinds, row)]) for at, row in enumerate(rows) if form(kinds, row) in numbers]
    assert found(table(kinds, keys), table(kinds, rows)) == expected


def test_equal_is_what_is_equal_to_spark():
    """Zeros of either sign, any NaN, nulls."""
    keys = pa.table({"a": pa.array([0.0, math.nan, None])})
    rows = pa.table({"a": pa.array([None, -0.0, -math.nan, 1.0])})
    assert found(keys, rows) == [(0, 2), (1, 0), (2, 1)]


def test_columns_are_told_apart():
    """The same values in other columns are another key."""
    keys = pa.table({"a": ["x", "y"], "b": ["y", "x"], "c": ["z", "z"]})
    rows = pa.table({"a": ["x", "x", "y", "y"], "b": ["x", "y", "x", "y"], "c": ["z"] * 4})
    assert found(keys, rows) == [(1, 0), (2, 1)]


@pytest.mark.parametrize("stored", [pa.int32(), pa.null()])
def test_rows_of_another_type_are_compared_in_the_keys(stored):
    """A column that was widened since, and one that no file had a value for."""
    keys = pa.table({"a": pa.array([2**40, 2, None], pa.int64())})
    values = [None, 2, 3] if stored == pa.int32() else [None] * 3
    expected = [(0, 2), (1, 1)] if stored == pa.int32() else [(0, 2), (1, 2), (2, 2)]
    assert found(keys, pa.table({"a": pa.array(values, stored)})) == expected


def test_pairs_of_many_values_do_not_run_over():
    """Four columns of 70,000 values each: their product is more than 64 bits hold."""
    count = 70_000
    columns = {name: pa.array(range(count)) for name in "abcd"}
    assert [(0, 7), (1, count - 1)] == found(
        pa.table(columns), pa.table({name: pa.array([7, count - 1, count]) for name in "abcd"})
    )
