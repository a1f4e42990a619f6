"""Text as values of a known type: exactly, or not at all."""

import datetime as dt

import pyarrow as pa
import pytest
from tests.script.text_columns import EXACT, INEXACT

from freezeframe.script.types.written_values import exact_values, naive_as_utc


def exact(texts, kind):
    column = exact_values(pa.chunked_array([texts], pa.string()), kind)
    return None if column is None else column.to_pylist()


@pytest.mark.parametrize(("texts", "kind", "values"), EXACT)
def test_plain_ways_to_write_a_value_are_taken(texts, kind, values):
    """What JSON, ISO 8601 and pandas write for a value is read as that value."""
    assert values == exact(texts, kind)


@pytest.mark.parametrize(("texts", "kind"), INEXACT)
def test_one_value_that_is_not_exact_leaves_the_column_as_text(texts, kind):
    """No digit, zero or offset is ever dropped."""
    assert exact(texts, kind) is None


def test_timestamps_without_a_zone_can_be_read_as_utc():
    """A catalog's date-time is an instant; taps that leave the zone out mean UTC."""
    naive = pa.chunked_array([["2020-01-01 00:00:00", None]])
    zoned = pa.chunked_array([["2020-01-01 00:00:00", "2020-01-01T00:00:00Z"]])

    assert [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None] == naive_as_utc(naive).to_pylist()
    assert naive_as_utc(zoned) is None
