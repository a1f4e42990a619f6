"""One rule says whether two cells differ, and it is that of the values, whatever their type."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_columns import KINDS, cells, same_form

from freezeframe.store.schema.type_compatibility import cells_differ


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@given(data=st.data())
def test_cells_differ_where_their_values_do(kind, data):
    """For every type: null equals null, NaN equals NaN, maps have no order, and all else is compared."""
    drawn = data.draw(st.lists(cells(kind), min_size=1, max_size=6))
    # The same values in another order, so that equal ones meet often.
    other = data.draw(st.permutations(drawn))
    old, new = (pa.chunked_array([pa.array(values, kind.arrow)]) for values in (drawn, other))

    expected = [
        same_form(left, kind.arrow) != same_form(right, kind.arrow)
        for left, right in zip(drawn, other, strict=True)
    ]

    assert cells_differ(old, new).to_pylist() == expected


def test_maps_are_compared_without_their_order():
    """The entries of a map have no order, not even inside of a list."""
    kind = pa.list_(pa.map_(pa.string(), pa.int64()))
    old = pa.chunked_array([pa.array([[[("a", 1), ("b", None)]]], kind)])
    new = pa.chunked_array([pa.array([[[("b", None), ("a", 1)]]], kind)])

    assert cells_differ(old, new).to_pylist() == [False]


def test_chunks_need_not_agree():
    """Columns are compared cell by cell, however they are cut into chunks."""
    old = pa.chunked_array([pa.array([1, None]), pa.array([3])])
    new = pa.chunked_array([pa.array([1]), pa.array([2, 3])])

    assert cells_differ(old, new).to_pylist() == [False, True, False]
