"""Data without a type: what files hold of it, and how a first value's type takes it."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from freezeframe.engine.frames.untyped import NO_MEMBER, fit, has_untyped, settled_type

NULL, TEXT, LONG = pa.null(), pa.string(), pa.int64()
EMPTY, TYPED = pa.struct([]), pa.struct([("a", LONG)])

SETTLED = [
    (NULL, TEXT),
    (EMPTY, pa.struct([(NO_MEMBER, TEXT)])),
    (pa.list_(NULL), pa.list_(TEXT)),
    (pa.list_(pa.list_(NULL)), pa.list_(pa.list_(TEXT))),
    (pa.struct([("a", NULL), ("b", LONG)]), pa.struct([("a", TEXT), ("b", LONG)])),
    (pa.map_(TEXT, EMPTY), pa.map_(TEXT, pa.struct([(NO_MEMBER, TEXT)]))),
]


@pytest.mark.parametrize(("kind", "held"), SETTLED)
def test_files_hold_text_where_no_value_came(kind, held):
    """At any depth, and a member where a struct has none; what has a type keeps it."""
    assert (settled_type(kind), settled_type(held)) == (held, held)
    assert (has_untyped(kind), has_untyped(held)) == (True, False)


FITS = [
    ([[], None, [None]], pa.list_(NULL), pa.list_(TYPED)),
    ([[], None], pa.list_(TEXT), pa.list_(NULL)),
    ([[], None], pa.list_(TEXT), pa.list_(TYPED)),
    ([{"a": None}, None], pa.struct([("a", TEXT)]), pa.struct([("a", pa.list_(LONG))])),
    ([[("k", None)], [], None], pa.map_(TEXT, NULL), pa.map_(TEXT, TYPED)),
    ([None, None], TEXT, TYPED),
    ([1, None], pa.int32(), LONG),
]


@pytest.mark.parametrize(("values", "kind", "wanted"), FITS)
def test_what_has_no_value_takes_any_type(values, kind, wanted):
    """Lists stay as long, objects stay objects, nulls stay nulls, also in a part of an array."""
    array = pa.array([None, *values], kind)
    column = pa.chunked_array([array.slice(1), array.slice(0, 1)], kind)
    found = fit(column, wanted)
    found.validate(full=True)
    assert (found.type, found.to_pylist()) == (wanted, [*values, None])


def test_text_is_exact_at_any_depth():
    """Text of times, dates and decimals has one form, that of Spark's cast, also within lists."""
    values = [[dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 2, 0, 0, 0, 1)], None]  # noqa: DTZ001 - no zone is meant
    found = fit(pa.chunked_array([values], pa.list_(pa.timestamp("us"))), pa.list_(TEXT))
    assert [["2026-01-02 00:00:00", "2026-01-02 00:00:00.000001"], None] == found.to_pylist()
    assert ["0.0000001"] == fit(pa.chunked_array([[Decimal("0.0000001")]]), TEXT).to_pylist()


@pytest.mark.parametrize("whole", [2**64 - 1, -(2**64 - 2), 2**65 - 2])
@pytest.mark.parametrize("scale", [1, 9, 14, 18])
def test_a_decimal_loses_zeros_behind_the_point_and_nothing_else(whole, scale):
    """Arrow by itself finds a rest in some of these, which is none."""
    kind = pa.decimal128(38, scale)
    assert [whole, None] == fit(pa.array([Decimal(whole), None], kind), pa.decimal128(20, 0)).to_pylist()
    with pytest.raises(pa.ArrowInvalid):
        fit(pa.array([Decimal(f"{whole}.{1:0{scale}}")], kind), pa.decimal128(20, 0))


def test_an_object_without_members_gets_them_and_loses_none():
    """Members that are new are null, the placeholder goes, and one with a value is an error."""
    empty = pa.chunked_array([pa.array([{}, None])])
    held = fit(empty, settled_type(EMPTY))
    assert fit(held, TYPED).to_pylist() == fit(empty, TYPED).to_pylist() == [{"a": None}, None]
    assert fit(held, EMPTY).to_pylist() == [{}, None]
    with pytest.raises(pa.ArrowInvalid, match="has values for which"):
        fit(pa.chunked_array([pa.array([{"a": 1}])]), EMPTY)


@pytest.mark.parametrize("wanted", [NULL, TYPED])
def test_a_value_is_never_lost(wanted):
    """Text is neither nothing nor an object."""
    with pytest.raises(pa.ArrowException):
        fit(pa.chunked_array([["x", None]]), wanted)
