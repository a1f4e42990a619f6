"""Texts as exact values of a known type, and conditions on columns."""

import datetime as dt
import math
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.script.text_columns import EXACT, INEXACT, NOT_WRITTEN, WRITTEN
from tests.typed_columns import same_form

from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.script.types.written_values import (
    json_array,
    naive_as_utc,
    predicate,
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


ROWS = pa.table(
    {
        "Id": ["007", "8", None, "x = y"],
        "N": pa.array([1, 20, None, -3], pa.int64()),
        "N of": pa.array([Decimal("1.10"), None, Decimal("2.00"), Decimal("1.10")], pa.decimal128(10, 2)),
        "N=": [True, False, None, True],
        "At": pa.array(
            [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)], pa.timestamp("us", "UTC")
        ),
        "List": pa.array([[1], [], None, [2]], pa.list_(pa.int64())),
    }
)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["Id = 007"], [0]),
        (["Id = '007'"], [0]),
        (['Id="x = y"'], [3]),
        (["Id = x = y"], [3]),
        (["Id != 007"], [1, 3]),
        (["Id < 8"], [0]),
        (["N >= 1"], [0, 1]),
        (["N>1"], [1]),
        (["N <= -3"], [3]),
        (["N is null"], [2]),
        (["N IS NOT NULL"], [0, 1, 3]),
        (["N of == 1.1"], [0, 3]),
        (["N= = true"], [0, 3]),
        (["At >= 2026-01-03T00:00:00"], [2, 3]),
        (["At >= 2026-01-02T00:00:00Z", "N < 0"], [3]),
        (["List is null"], [2]),
    ],
)
def test_a_condition_selects_rows(conditions, expected):
    """Values are compared as the column's type, all conditions must hold, and nulls meet no comparison."""
    numbered = ROWS.append_column("row", pa.array(range(4)))
    assert numbered.filter(predicate(conditions, ROWS.schema))["row"].to_pylist() == expected


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("Nope = 1", MissingColumn),
        ("Number = 1", MissingColumn),
        ("", MissingColumn),
        ("N = x", InvalidOption),
        ("N = 1.5", InvalidOption),
        ("N = 007", InvalidOption),
        ("N =", InvalidOption),
        ("N ~ 1", InvalidOption),
        ("N", InvalidOption),
        ("At = yesterday", InvalidOption),
        ("List = [1]", InvalidOption),
    ],
)
def test_what_is_no_condition_is_refused(condition, error):
    """An unknown column, no comparison, or a value that is none of the column."""
    with pytest.raises(error):
        predicate([condition], ROWS.schema)
