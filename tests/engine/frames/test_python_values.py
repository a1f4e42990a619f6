"""Dates and times that ``datetime`` cannot hold come back as numpy's, and as one text."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.update_cells import DAYS

from freezeframe.engine.frames.frames import to_pandas
from freezeframe.engine.frames.python_values import exact_texts, moment_text, python_values, shown_rows
from freezeframe.engine.frames.rows import Rows

FAR_DAYS = list(DAYS)
DAY, MOMENT = np.datetime64(2_932_897, "D"), np.datetime64(2**62, "us")
# Numbers, the type they are cast to, and the values.
FAR = {
    "date": ([2_932_897, None, 0], pa.int32(), pa.date32(), [DAY, None, np.datetime64(0, "D")]),
    "local time": ([2**62, None], pa.int64(), pa.timestamp("us"), [MOMENT, None]),
    "instant": ([2**62, None], pa.int64(), pa.timestamp("us", "UTC"), [MOMENT, None]),
    "list": (
        [[2_932_897, None], None, []],
        pa.list_(pa.int32()),
        pa.list_(pa.date32()),
        [[DAY, None], None, []],
    ),
    "struct": (
        [{"d": 2_932_897, "n": 1}, None, {"d": None, "n": 2}],
        pa.struct([("d", pa.int32()), ("n", pa.int64())]),
        pa.struct([("d", pa.date32()), ("n", pa.int64())]),
        [{"d": DAY, "n": 1}, None, {"d": None, "n": 2}],
    ),
    "map": (
        [[("a", [2**62, None])], None, [], [("b", None)]],
        pa.map_(pa.string(), pa.list_(pa.int64())),
        pa.map_(pa.string(), pa.list_(pa.timestamp("us"))),
        [[("a", [MOMENT, None])], None, [], [("b", None)]],
    ),
}


def dates(days):
    return pa.chunked_array([pa.array(days, pa.int32()).cast(pa.date32())])


@pytest.mark.parametrize(("numbers", "kind", "target", "values"), FAR.values(), ids=FAR)
def test_far_moments_of_every_type_are_numpys(numbers, kind, target, values):
    """Whatever holds them, in chunks and slices: values, nulls and lengths are those of the column."""
    column = pa.chunked_array([pa.array(numbers, kind).cast(target)] * 2)
    assert values * 2 == python_values(column)
    assert (values * 2)[1:] == python_values(column.slice(1))
    assert "datetime64" not in str(shown_rows(pa.table({"a": column})))


def test_dates_of_one_column_are_of_one_class():
    """So they can be ordered and compared; a column without far ones has ``datetime.date``."""
    assert [dt.date(2026, 1, 1), None] == python_values(dates([20454, None]))
    assert {np.datetime64} == {type(value) for value in python_values(dates(FAR_DAYS))}
    assert sorted(python_values(dates(FAR_DAYS))) == python_values(dates(FAR_DAYS))


def test_pandas_gets_far_dates_and_gives_them_back():
    """The frame can be printed, sorted and updated with; times are pandas' own."""
    far = pa.table(
        {
            "d": dates([2_932_897, None, 0]),
            "t": pa.array([2**62, None, 0], pa.timestamp("us", "UTC")),
            "l": pa.array([-(2**62), None, 0], pa.timestamp("us")),
        }
    )

    frame = to_pandas(far)

    assert "10000-01-01" in str(frame)
    assert far.equals(Rows(frame).to_arrow())
    assert frame["d"].dropna().sort_values(ascending=False).index.tolist() == [0, 2]
    assert str(frame["t"].dtype) == "datetime64[us, UTC]"


def test_every_date_has_one_text():
    """That of ISO 8601, which Spark writes as well; years have four digits at least."""
    assert list(DAYS.values()) == exact_texts(dates(FAR_DAYS)).to_pylist()
    assert exact_texts(dates([0, None])).to_pylist() == ["1970-01-01", None]
    assert exact_texts(dates([None])).to_pylist() == [None]
    assert moment_text(np.datetime64("10000-01-01T00:00:00.000001")) == "+10000-01-01T00:00:00.000001"


@given(st.dates())
def test_near_dates_have_pythons_text(day):
    """Also beside far ones."""
    days = pa.array([day, None], pa.date32()).cast(pa.int32()).to_pylist()
    assert [day.isoformat(), None, "+10000-01-01"] == exact_texts(dates([*days, 2_932_897])).to_pylist()


def test_far_dates_of_pandas_objects_are_dates():
    """A column of numpy's days is a column of dates."""
    series = pd.Series([np.datetime64(2_932_897, "D"), None, np.datetime64(0, "D")], dtype=object)
    assert dates([2_932_897, None, 0]).equals(Rows(pd.DataFrame({"d": series})).to_arrow()["d"])
