"""``--where``: text becomes a predicate in the columns' own types."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.script.types.written_values import predicate

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
