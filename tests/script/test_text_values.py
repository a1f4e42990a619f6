"""Text as values of a known type: exactly, or not at all."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from freezeframe.script.text_values import NAIVE_TIMESTAMP, UTC_TIMESTAMP, exact_values


def exact(texts, kind, **options):
    column = exact_values(pa.chunked_array([texts], pa.string()), kind, **options)
    return None if column is None else column.to_pylist()


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["1.0", "-2", None], pa.int64(), [1, -2, None]),
        (["1.50", "1e5", "-0.25"], pa.float64(), [1.5, 100000.0, -0.25]),
        (["0e5"], pa.float64(), [0.0]),
        (["0.30000000000000004"], pa.float64(), [0.30000000000000004]),
        (["1.50"], pa.decimal128(10, 1), [Decimal("1.5")]),
        (["True", "false", None], pa.bool_(), [True, False, None]),
        (["2020-02-29"], pa.date32(), [dt.date(2020, 2, 29)]),
        (
            ["2020-01-01T00:00:00-0800", "2020-01-01 00:00:00.5Z"],
            UTC_TIMESTAMP,
            [
                dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC),
                dt.datetime(2020, 1, 1, 0, 0, 0, 500000, tzinfo=dt.UTC),
            ],
        ),
        (["007", "1e5"], pa.string(), ["007", "1e5"]),
        ([None, None], pa.list_(pa.int8()), [None, None]),
    ],
)
def test_plain_ways_to_write_a_value_are_taken(texts, kind, values):
    """What JSON, ISO 8601 and pandas write for a value is read as that value."""
    assert values == exact(texts, kind)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "007"], pa.int64()),
        (["1.5"], pa.int64()),
        (["9223372036854775808"], pa.int64()),
        (["300"], pa.int8()),
        (["9007199254740993"], pa.float64()),
        (["1e400"], pa.float64()),
        (["1e-400"], pa.float64()),
        (["nan"], pa.float64()),
        (["1.55"], pa.decimal128(10, 1)),
        (["1"], pa.bool_()),
        (["2020-02-30"], pa.date32()),
        (["2020-01-01T00:00:00"], UTC_TIMESTAMP),
        (["2020-01-01T00:00:00Z"], NAIVE_TIMESTAMP),
        (["2020-01-01T00:00:00.123456789Z"], UTC_TIMESTAMP),
        (["9999-12-31T23:59:59-0800"], UTC_TIMESTAMP),
        ([""], pa.int64()),
        (["a"], pa.binary()),
    ],
)
def test_one_value_that_is_not_exact_leaves_the_column_as_text(texts, kind):
    """No digit, zero or offset is ever dropped."""
    assert exact(texts, kind) is None


def test_timestamps_without_a_zone_can_be_read_as_utc():
    """A catalog's date-time is an instant; taps that leave the zone out mean UTC."""
    texts = ["2020-01-01 00:00:00"]

    assert [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] == exact(texts, UTC_TIMESTAMP, naive_is_utc=True)
    assert exact([*texts, "2020-01-01T00:00:00Z"], UTC_TIMESTAMP, naive_is_utc=True) is None
