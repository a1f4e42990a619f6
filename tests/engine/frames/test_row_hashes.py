"""A row's hash: one for each value, whatever the types it came in."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.engine.frames.frames import to_pandas
from freezeframe.engine.frames.row_hashes import (
    canonical_cell,
    content_hashes,
    frame_hashes,
    row_hash,
    table_hashes,
)
from freezeframe.engine.frames.rows import Rows

NAIVE = dt.datetime.fromisoformat("2020-01-01")
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.dates(),
    st.datetimes(),
)


@given(st.lists(CELLS, max_size=3), st.lists(CELLS, max_size=3))
def test_different_rows_have_different_hashes(first, second):
    """Neither separators nor missing cells run together; numbers of one value are one."""

    def facts(row):
        return {f"c{place}": (_kind(cell), cell) for place, cell in enumerate(row) if cell is not None}

    def named(row):
        return {f"c{place}": cell for place, cell in enumerate(row)}

    assert (facts(first) == facts(second)) == (row_hash(named(first)) == row_hash(named(second)))


def _kind(cell):
    number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return "number" if number else type(cell).__name__


@pytest.mark.parametrize(
    "same",
    [
        [7, 7.0, np.int8(7), np.float32(7), Decimal(7), Decimal("7.00")],
        [0.1, np.float64(0.1), Decimal("0.1"), Decimal("0.10")],
        [0, 0.0, Decimal("-0.0")],
        [-0.0, np.float32(-0.0)],
        [1e-7, Decimal("0.0000001")],
        [1e22, 10**22, Decimal("1E+22")],
        [float("inf"), np.inf],
        [True, np.True_],
        [NAIVE, pd.Timestamp("2020-01-01"), np.datetime64("2020-01-01", "us")],
        [pd.Timestamp("2020-01-01", tz="UTC"), pd.Timestamp("2020-01-01 01:00", tz="Europe/Zurich")],
        [[1, "a"], (1, "a"), [1.0, "a"]],
        [np.array([1, 2]), [1, 2]],
        [{"a": 1}, {"a": 1.0, "b": None}],
        [{1, 2}, {2, 1}],
        [b"x", bytearray(b"x")],
        [None, float("nan"), pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT", "ns")],
    ],
)
def test_one_value_in_many_types_is_one(same):
    """What pandas, Arrow and Python make of a value does not change it."""
    assert len({canonical_cell(value) for value in same}) == 1


def test_values_of_different_kinds_differ():
    """Text that looks like a number, a date or a truth is text."""
    values = [1, "1", True, "True", b"1", dt.date(2020, 1, 1), "2020-01-01", NAIVE, [1], {}]
    values += ["", None, [], [None], [[]], "\ud800", -0.0, 0.0, dt.time(1), dt.timedelta(1), 2**53, 2**53 + 1]
    assert len(values) == len({canonical_cell(value) for value in values})


def test_the_order_of_columns_does_not_count():
    """A hash is of names and values."""
    frame = pd.DataFrame({"b": [1], "a": ["x"]})
    assert frame_hashes(frame) == frame_hashes(frame[["a", "b"]])
    assert frame_hashes(frame) == [row_hash({"a": "x", "b": 1})]
    assert len(frame_hashes(frame)[0]) == 32


def test_pandas_and_arrow_agree():
    """A frame, its Arrow table and the frame that comes back have the same hashes."""
    frame = pd.DataFrame(
        {"i": [1, None], "t": ["a", None], "b": [True, False], "d": [dt.date(2020, 1, 1), None]}
    )
    frame["z"] = pd.to_datetime(["2020-01-01T00:00:00.000001Z", None])
    table = Rows(frame).to_arrow()
    assert frame_hashes(frame) == table_hashes(table) == frame_hashes(to_pandas(table))


def test_a_frame_without_columns_has_rows():
    """Each row is the empty one."""
    assert len(frame_hashes(pd.DataFrame(index=[0, 1]))) == 2
    assert table_hashes(pa.table({"a": pa.array([], pa.int64())})) == []


@pytest.mark.parametrize(
    ("left", "right", "are_equal"),
    [
        (pa.array([7]), pa.array([7.0]), True),
        (pa.array([7], pa.int8()), pa.array([Decimal("7.00")]), True),
        (pa.array([Decimal("1.10")]), pa.array([Decimal("1.1")]), True),
        (pa.array([Decimal("0.0000001")]), pa.array([Decimal("0.00000010")]), True),
        (pa.array([Decimal(10)]), pa.array([Decimal(1)]), False),
        (pa.array([0.0]), pa.array([-0.0]), False),
        (pa.array([math.nan]), pa.array([None], pa.float64()), False),
        (pa.array([[math.nan]]), pa.array([[None]], pa.list_(pa.float64())), False),
        (
            pa.array([{"a": None}], pa.struct({"a": pa.int64()})),
            pa.array([None], pa.struct({"a": pa.int64()})),
            False,
        ),
        (pa.array(["7"]), pa.array([7]), False),
        (pa.array(["a"]), pa.array([b"a"]), False),
        (pa.array([""]), pa.array([None], pa.string()), False),
        (pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("us", "UTC")), False),
        (pa.array([0], pa.timestamp("us", "UTC")), pa.array([0], pa.timestamp("s", "Europe/Berlin")), True),
        (pa.array([10**7], pa.int32()).cast(pa.date32()), pa.array([10**7], pa.int32()), False),
        (pa.array([True]), pa.array(["true"]), False),
    ],
)
def test_the_hash_of_stored_content_tells_apart_what_a_stream_does(left, right, are_equal):
    """Numbers count by value; NaN, null, zeros, text, bytes and times of two kinds are different cells."""
    hashes = [content_hashes(pa.table({"a": cells, "b": ["x"]})) for cells in (left, right)]
    assert are_equal == (hashes[0] == hashes[1])


def test_the_hash_of_stored_content_stays():
    """It is kept in states of deliveries: another one would send all rows again."""
    table = pa.table(
        {
            "text": ["ä", None],
            "number": [1.5, 1e-7],
            "decimal": [Decimal("1.50"), Decimal("0.10")],
            "time": pa.array([1, None], pa.timestamp("us", "UTC")),
            "list": [[{"a": 1.0}], None],
            "bytes": [b"\0", b""],
            "flag": [True, None],
        }
    )
    assert content_hashes(table) == ["d5395ca053f7dd6d186e49271a507146", "7e913ba91eff951e00ee175be35ed730"]
    assert content_hashes(table) == content_hashes(table.select(sorted(table.column_names)))


@pytest.mark.parametrize("hashes", [content_hashes, table_hashes])
@pytest.mark.parametrize(
    ("kind", "far"),
    [
        (pa.timestamp("us", "UTC"), 3 * 10**17),
        (pa.timestamp("us", "Europe/Berlin"), 3 * 10**17),
        (pa.timestamp("us"), 3 * 10**17),
        (pa.timestamp("s", "UTC"), 3 * 10**11),
        (pa.date32(), 10**7),
    ],
    ids=str,
)
def test_a_hash_does_not_depend_on_the_moments_of_other_rows(hashes, kind, far):
    """A date beyond the year 9999 in the same column, nested or not, changes no other row's hash."""
    numbers = pa.array([20_000, 20_001, None, far, -far], pa.int32() if far == 10**7 else pa.int64())
    moments, numbers = numbers.cast(kind), pa.array([1.0, math.nan, 2.0, math.nan, 3.0])
    whole = pa.StructArray.from_arrays([moments, numbers], names=["t", "x"])
    lists = pa.ListArray.from_arrays(range(6), whole)
    for cells in (moments, whole, lists):
        table = pa.table({"a": cells})
        alone = [hashes(table.slice(row, 1))[0] for row in range(5)]
        assert alone == hashes(table)
        assert len(set(alone)) == len(alone)


def test_names_and_cells_do_not_run_together():
    """Lengths separate them; a null column changes no row, columns have no order."""
    rows = [{"a": "1", "b": "23"}, {"a": "12", "b": "3"}, {"a1": "", "b": "23"}, {"a": "123"}, {"ab": "123"}]
    hashes = [content_hashes(pa.table({name: [cell] for name, cell in row.items()}))[0] for row in rows]
    assert len(set(hashes)) == len(rows)
    with_null = pa.table({"b": ["23"], "z": pa.nulls(1, pa.string()), "a": ["1"]})
    assert content_hashes(with_null) == hashes[:1]
