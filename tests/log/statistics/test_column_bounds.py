"""Bounds read from many statistics at once are those read one by one."""

import datetime as dt
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.log.scan.block_index import column_bounds
from freezeframe.log.scan.data_skipping import is_only_nulls, value_bounds

CENTURIES = [dt.datetime(year, 1, 1) for year in (1900, 2100)]  # noqa: DTZ001 - a column may have no zone
DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)).map(dt.date.isoformat)
MOMENTS = st.datetimes(*CENTURIES).map(lambda moment: moment.isoformat(timespec="milliseconds"))
KINDS = {
    "text": (pa.string(), st.text(max_size=4)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "byte": (pa.int8(), st.integers(-128, 200)),
    "double": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)),
    "date": (pa.date32(), DAYS),
    "moment": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda text: f"{text}Z")),
    "moment without a zone": (pa.timestamp("us"), MOMENTS),
    "decimal": (pa.decimal128(9, 2), st.integers(-999, 999)),
    "truth": (pa.bool_(), st.booleans()),
}
ODD = st.sampled_from(
    [None, "", " ", "{", "[]", "{}", '{"minValues":7}', '{"a":\n1}', '{"minValues":{"x":[]}}']
)


def texts(values):
    """Statistics as writers leave them: some groups missing, nulls among the bounds, other columns too."""
    group = st.fixed_dictionaries({}, optional={"x": values | st.none(), "y": st.integers()})
    counts = st.fixed_dictionaries({}, optional={"x": st.integers(0, 2)})
    whole = st.fixed_dictionaries(
        {},
        optional={
            "numRecords": st.integers(0, 2),
            "minValues": group,
            "maxValues": group,
            "nullCount": counts,
        },
    )
    return whole.map(json.dumps)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_bounds_read_at_once_are_those_read_one_by_one(kind, data):
    """For every type, well-formed statistics and odd ones: the same low, high and nothing-but-nulls."""
    arrow, values = KINDS[kind]
    mixed = st.lists(texts(values), max_size=6) | st.lists(
        texts(values | st.text(max_size=2)) | ODD, max_size=6
    )
    statistics = data.draw(mixed)
    field = pa.field("c", arrow)

    found = column_bounds(pa.chunked_array([pa.array(statistics, pa.string())]), field, "x")

    wanted = [value_bounds(field, "x", text) for text in statistics]
    assert [(low, high) for low, high in wanted] == [
        tuple(item if item.is_valid else None for item in pair)
        for pair in zip(found.low, found.high, strict=True)
    ]
    assert [is_only_nulls("x", text) for text in statistics] == found.only_nulls.tolist()


def test_no_files_have_no_bounds():
    """An empty table is no special case."""
    found = column_bounds(pa.chunked_array([], pa.string()), pa.field("c", pa.int64()), "c")
    assert 0 == len(found.low) == len(found.high) == len(found.only_nulls)
