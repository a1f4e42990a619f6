"""Texts as exact values of a known type."""

import datetime as dt
import math
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from tests.script.text_columns import EXACT, INEXACT, NOT_WRITTEN, WRITTEN
from tests.typed_columns import same_form

from freezeframe.script.types.typed_columns import KnownTypes
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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-03-29T02:30Z", "2026-03-29T02:30:00+00:00"),
        ("2026-03-29 02:30", "2026-03-29T02:30:00"),
        ("2026-03-29T02", "2026-03-29T02:00:00"),
        ("20260329T023000Z", "2026-03-29T02:30:00+00:00"),
        ("20260329T0230", "2026-03-29T02:30:00"),
        ("2026-03-29T0230+0200", "2026-03-29T00:30:00+00:00"),
        ("2026-03-29T02:30:00+02", "2026-03-29T00:30:00+00:00"),
        ("2026-03-29 02:30:00.5 -03:30", "2026-03-29T06:00:00.500000+00:00"),
        ("2026-03-29T02:30:00,25", "2026-03-29T02:30:00.250000"),
        ("2026-03-29T02:30:00.123456000Z", "2026-03-29T02:30:00.123456+00:00"),
        ("2026-03-29T02:30:00.123456789Z", None),
        ("2026-03-29T25:30", None),
        ("2026-03-29T2:30", None),
        ("20260329", None),
        ("2026-03", None),
        ("2026-03-29T02:30 CET", None),
    ],
)
def test_times_are_read_in_every_form_of_iso_8601(text, wanted):
    """Short or long, with a fraction of microseconds; what pandas reads is the same moment."""
    column = pa.chunked_array([[text, None]])
    found = [written_values(column, pa.timestamp("us", zone)) for zone in (None, "UTC")]
    values = [item.to_pylist()[0].isoformat() for item in found if item is not None]
    assert values == ([] if wanted is None else [wanted])
    if wanted is not None:
        moment = pd.Timestamp(text)
        utc = moment if moment.tz is None else moment.tz_convert("UTC")
        # As text: pandas 2.2 finds a time that was written with a comma unequal to the same one with a point.
        assert wanted == utc.to_pydatetime().isoformat()


def test_stored_numbers_are_read_as_numbers_however_they_are_written():
    """Where the digits behind the point differ as well; what is no number, or too long for one, is text."""
    cases = [
        (pa.int64(), ["20.5", "0.10"], [20.5, 0.1]),
        (pa.int32(), ["3000000000", "1"], [3_000_000_000, 1]),
        (pa.decimal128(9, 2), ["1.125", "2.50"], [Decimal("1.125"), Decimal("2.500")]),
        (pa.int64(), ["007", "20.5"], ["007", "20.5"]),
        (pa.int64(), ["0.1234567890123456", "2.50"], ["0.1234567890123456", "2.50"]),
        (pa.string(), ["20.5", "0.10"], ["20.5", "0.10"]),
    ]
    for stored, texts, wanted in cases:
        found = KnownTypes(pa.schema([("v", stored)])).table(pa.table({"v": texts}))
        assert wanted == found["v"].to_pylist()
    (nan,) = KnownTypes(pa.schema([("v", pa.float64())])).table(pa.table({"v": ["nan"]}))["v"].to_pylist()
    assert math.isnan(nan)
