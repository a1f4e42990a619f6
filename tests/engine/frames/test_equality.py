"""Which cells are equal: the one rule, for every type, in columns and as numbers of cells and rows."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.typed_columns import KINDS, cells, same_form

from freezeframe.engine.frames.equality import cell_codes, cells_differ, joined_codes


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_cells_differ_where_their_values_do(kind, data):
    """For every type, also in an object or a list: null equals null, NaN NaN, and maps have no order."""
    drawn = data.draw(st.lists(cells(kind), min_size=1, max_size=6))
    # The same values in another order, so that equal ones meet often.
    other = data.draw(st.permutations(drawn))
    expected = [
        same_form(left, kind.arrow) != same_form(right, kind.arrow)
        for left, right in zip(drawn, other, strict=True)
    ]
    sides = [pa.array(values, kind.arrow) for values in (drawn, other)]
    wrapped = [
        sides,
        [pa.StructArray.from_arrays([side], ["a"]) for side in sides],
        [pa.ListArray.from_arrays(pa.array(range(len(side) + 1), pa.int32()), side) for side in sides],
    ]
    # The first row is cut off, so that the arrays begin amid their buffers.
    for old, new in wrapped:
        assert expected == cells_differ(pa.chunked_array([old]), pa.chunked_array([new])).to_pylist()
        rest = (pa.chunked_array([side.slice(1)], side.type) for side in (old, new))
        assert expected[1:] == cells_differ(*rest).to_pylist()

    codes = cell_codes(*(pa.chunked_array([side]) for side in sides))
    forms = [same_form(value, kind.arrow) for value in (*drawn, *other)]
    numbers = [*codes[0].tolist(), *codes[1].tolist()]
    assert [forms.index(form) for form in forms] == [numbers.index(number) for number in numbers]
    assert [form is None for form in forms] == [number == -1 for number in numbers]


def test_maps_are_compared_without_their_order():
    kind = pa.list_(pa.map_(pa.string(), pa.int64()))
    old = pa.chunked_array([pa.array([[[("a", 1), ("b", None)]], None, [None]], kind)])
    new = pa.chunked_array([pa.array([[[("b", None), ("a", 1)]], [], [[]]], kind)])

    assert [False, True, True] == cells_differ(old, new).to_pylist()


def test_chunks_need_not_agree():
    old = pa.chunked_array([pa.array([1, None]), pa.array([3])])
    new = pa.chunked_array([pa.array([1]), pa.array([2, 3])])

    assert [False, True, False] == cells_differ(old, new).to_pylist()


def test_cells_of_two_types_differ_unless_both_are_null():
    old = pa.chunked_array([pa.array([1, 1, None, None])])
    new = pa.chunked_array([pa.array(["1", None, "1", None])])

    assert [True, True, True, False] == cells_differ(old, new).to_pylist()
    untyped = pa.chunked_array([pa.nulls(2)])
    assert [False, False] == cells_differ(untyped, untyped).to_pylist()


def test_rows_have_one_number_where_all_their_cells_are_equal():
    rows = pa.table({"a": [1, 1, None, 1], "b": ["x", "y", "x", "x"]})
    first, second, third, fourth = joined_codes(
        [code for column in rows.columns for code in cell_codes(column)], 4
    )

    assert (first == fourth, len({first, second, third})) == (True, 3)
    assert [0, 0] == joined_codes([], 2).tolist()
