"""Texts as exact values of a known type."""

import datetime as dt
import math

import pyarrow as pa
import pytest
from tests.script.text_columns import EXACT, INEXACT, NOT_WRITTEN, WRITTEN
from tests.typed_columns import same_form

from freezeframe.script.types.written_values import (
    json_array,
    naive_as_utc,
    written_values,
)


@pytest.mark.parametrize(("texts", "kind", "values"), [*WRITTEN, *EXACT], ids=repr)
def test_each_text_is_its_value(texts, kind, values):
    """In the very type; nulls are nulls, and so are members that an object lacks."""
    found = written_values(pa.chunked_array([pa.array(texts, pa.string())]), kind)
    assert found.type == kind
    assert [same_form(value, kind) for value in values] == [
        same_form(item, kind) for item in found.to_pylist()
    ]


@pytest.mark.parametrize(("texts", "kind"), [*NOT_WRITTEN, *INEXACT], ids=lambda case: repr(case)[:40])
def test_a_text_that_is_no_exact_value_leaves_the_column(texts, kind):
    """No JSON, a member twice, another kind of value, a digit too many."""
    assert written_values(pa.chunked_array([pa.array(texts, pa.string())]), kind) is None


def test_floats_of_json_lines_are_exact_in_their_width():
    """A float32 that was written as a double comes back; one that lost digits is none."""
    single = pa.list_(pa.float32())
    assert json_array([[0.10000000149011612, "NaN"]], single).to_pylist()[0][0] == 0.10000000149011612
    assert math.isnan(json_array([["NaN"]], single).to_pylist()[0][0])
    assert json_array([[0.1000000001]], single) is None
    assert json_array([[0.30000000000000004]], pa.list_(pa.decimal128(38, 20))) is None


def test_timestamps_without_a_zone_can_be_read_as_utc():
    """A catalog's date-time is an instant; taps that leave the zone out mean UTC."""
    naive = pa.chunked_array([["2020-01-01 00:00:00", None]])
    zoned = pa.chunked_array([["2020-01-01 00:00:00", "2020-01-01T00:00:00Z"]])
    assert [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None] == naive_as_utc(naive).to_pylist()
    assert naive_as_utc(zoned) is None
