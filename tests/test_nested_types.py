"""Nested types and arrays are taken apart and put together again without a change."""

import pyarrow as pa
import pytest

from freezeframe.nested_types import every_type, fold_array, inner, map_type, parts, with_inner, with_parts

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
VALUES = {
    STRUCT: [{"a": 1, "b": ["x", None]}, None, {"a": None, "b": []}, {"a": 2, "b": None}],
    pa.list_(STRUCT): [[{"a": 1, "b": ["x"]}, None], None, [], [{"a": None, "b": None}]],
    pa.map_(pa.string(), pa.list_(pa.int64())): [[("k", [1]), ("l", None)], None, [], [("k", [2, None])]],
    pa.list_(pa.map_(pa.string(), STRUCT)): [[[("k", {"a": 1, "b": None})], None], None, [], [[]]],
    pa.struct([]): [{}, None, {}, None],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("part", [slice(0, 4), slice(1, 3), slice(2, 4), slice(1, 1)], ids=str)
def test_an_array_is_rebuilt_from_what_is_inside(kind, part):
    """Also a slice of one, with nulls, empty lists and structs without members, at every depth."""
    array = pa.array(VALUES[kind], kind)[part]
    rebuilt = fold_array(
        array, lambda whole, arrays: with_inner(whole, arrays, whole.type) if parts(whole.type) else whole
    )
    assert VALUES[kind][part] == rebuilt.to_pylist()
    assert [field.type for field in parts(kind)] == [held.type for held in inner(array)]
    rebuilt.validate(full=True)


@pytest.mark.parametrize("layout", [pa.large_list, pa.list_, lambda item: pa.list_(item, 2), pa.list_view])
def test_lists_of_any_layout_have_one_element(layout):
    """They become plain lists."""
    lists = pa.array([[1, 2], None, [3, None]], layout(pa.int64()))
    assert [1, 2, 3, None] == inner(lists)[0].to_pylist()
    plain = with_inner(lists, inner(lists), with_parts(lists.type, [pa.int64()]))
    assert (pa.list_(pa.int64()), lists.to_pylist()) == (plain.type, plain.to_pylist())


def test_a_type_is_changed_at_every_depth():
    """The innermost first; leaves are dictionaries, too."""
    kind = pa.map_(pa.int32(), pa.list_(pa.struct([("x", pa.int32())])))
    wide = map_type(kind, lambda part: pa.int64() if part == pa.int32() else part)
    assert pa.map_(pa.int64(), pa.list_(pa.struct([("x", pa.int64())]))) == wide
    assert [kind, pa.int32(), kind.item_type, kind.item_type.value_type, pa.int32()] == list(every_type(kind))
    assert parts(pa.dictionary(pa.int8(), pa.string())) == []
