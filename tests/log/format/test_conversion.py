"""Partition values: from the log's text to values and back."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.log.data_files import partition_text

from freezeframe.errors import CorruptLog
from freezeframe.log.format.conversion import partition_scalar

NAIVE = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), st.text(min_size=1)),
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.int8(), st.integers(-128, 127)),
        (pa.bool_(), st.booleans()),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.date32(), st.dates()),
        (pa.decimal128(20, 4), st.decimals(-(10**15), 10**15, places=4)),
        (NAIVE, st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))),  # noqa: DTZ001 - naive on purpose
        (INSTANT, st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))),  # noqa: DTZ001
    ],
    ids=str,
)
def test_values_come_back(kind, values):
    """A value written as text and read in its type is the same value."""

    @given(values)
    def check(value):
        assert value == partition_scalar(partition_text(value), kind).as_py()

    check()


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.int32(), pa.date32(), INSTANT, pa.binary(), pa.decimal128(5, 2)]
)
def test_nothing_and_the_empty_text_are_null(kind):
    """Null and the empty text are null in every type, both ways."""
    assert [partition_scalar(text, kind).as_py() for text in (None, "")] == [None, None]
    assert [partition_text(value) for value in (None, "")] == [None, None]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("2020-01-01 10:00:00", NAIVE, datetime(2020, 1, 1, 10, tzinfo=UTC).replace(tzinfo=None)),
        ("2020-01-01 10:00:00.5", INSTANT, datetime(2020, 1, 1, 10, 0, 0, 500_000, tzinfo=UTC)),
        ("2020-01-01T10:00:00.000000Z", INSTANT, datetime(2020, 1, 1, 10, tzinfo=UTC)),
        ("2020-01-01T10:00:00+02:00", INSTANT, datetime(2020, 1, 1, 8, tzinfo=UTC)),
        ("Infinity", pa.float64(), float("inf")),
        ("1.5", pa.decimal128(5, 2), Decimal("1.50")),
    ],
)
def test_other_writers_spellings_are_read(text, kind, value):
    """Times with and without a zone, and numbers, as other writers spell them."""
    assert value == partition_scalar(text, kind).as_py()


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        ("+10000-01-01", pa.date32(), 2_932_897),
        ("+10000-01-01 00:00:00", INSTANT, 2_932_897 * 86_400_000_000),
    ],
)
def test_years_of_five_digits_are_read(text, kind, count):
    """Spark writes them with a sign; Python's calendar ends before them."""
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    assert count == partition_scalar(text, kind).cast(whole).as_py()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(("x", pa.int64()), ("300", pa.int8()), ("2020-13-01", pa.date32()), ("maybe", pa.bool_())),
        *(("+9999999-01-01", INSTANT), ("\ud800", pa.string())),
    ],
)
def test_text_of_another_type_is_damage(text, kind):
    """What is not a value of the type is not null."""
    with pytest.raises(CorruptLog, match=re.escape(repr(text))):
        partition_scalar(text, kind)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2020-01-01 00:30:00", datetime(2019, 12, 31, 23, 30, tzinfo=UTC)),
        ("2020-07-01 00:30:00.25", datetime(2020, 6, 30, 22, 30, 0, 250_000, tzinfo=UTC)),
        ("2020-07-01T00:30:00Z", datetime(2020, 7, 1, 0, 30, tzinfo=UTC)),
        ("2020-10-25 02:30:00", datetime(2020, 10, 25, 0, 30, tzinfo=UTC)),
        ("2020-03-29 02:30:00", datetime(2020, 3, 29, 1, 30, tzinfo=UTC)),
    ],
    ids=["winter", "summer", "its own zone", "shown twice", "skipped"],
)
def test_an_instant_without_a_zone_is_of_the_zone_that_is_named(text, utc):
    """As Spark reads it in a session of that zone; a time without a zone stays as it is."""
    berlin = ZoneInfo("Europe/Berlin")
    assert utc == partition_scalar(text, INSTANT, berlin).as_py()
    assert partition_scalar("2020-07-01 00:30:00", NAIVE, berlin).as_py().hour == 0


def test_years_of_five_digits_have_zones_too():
    """The calendar of 400 years before is the same."""
    berlin = ZoneInfo("Europe/Berlin")
    found = partition_scalar("+10000-07-01 02:00:00", INSTANT, berlin).cast(pa.int64()).as_py()
    assert found == partition_scalar("+10000-07-01 00:00:00", INSTANT).cast(pa.int64()).as_py()
