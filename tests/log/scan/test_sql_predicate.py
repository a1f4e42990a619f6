"""Predicates as SQL text match the rows that DuckDB matches, and are refused with a remedy."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.log.scan.sql_predicate import parse_predicate

LONG = "12345678901234567890123456789012345678"
ROWS = pa.table(
    {
        "Id": pa.array([1, 2, 3, None, 5], pa.int32()),
        "City": ["Bern", "Basel", None, "O'Hare", "bern"],
        "Size of it": [1.5, 2.0, None, -0.5, 9e9],
        "Price": pa.array([Decimal("1.50"), None, Decimal("10.00"), Decimal("0.00"), Decimal("-2.25")]),
        "Long": pa.array([Decimal(LONG), Decimal("-" + LONG), None, Decimal(1), Decimal(LONG[:-1] + "9")]),
        "Born": pa.array([date(2026, 1, day) for day in (1, 2, 3, 4)] + [None]),
        "Seen": pa.array([datetime(2026, 1, 1, 10, tzinfo=UTC)] * 4 + [None], pa.timestamp("us", "UTC")),
        "Open": [True, False, None, True, False],
        "Comment": pa.nulls(5, pa.string()),
        "Place": pa.array([{"Zip": "1"}, {"Zip": "2"}, None, {"Zip": None}, {"Zip": "1"}]),
    }
)
PREDICATES = [
    "Id > 2",
    "2 < Id",
    "Id >= 2 and Id <> 3",
    "not (Id > 2)",
    "Id = 1.5",
    "Id > 1.5",
    "Id in (1, 5, 7)",
    "Id not in (1, 5)",
    "not (Id in (1, 5) or City = 'Basel')",
    "Id between 2 and 3",
    "Id is null or City is not null and Open",
    "City = 'Bern'",
    r"City = 'O\'Hare' or City = 'O''Hare'",
    "Comment is null and Comment is not null",
    "City like 'b%'",
    "City not like 'B%'",
    "City <> 'Bern' and not Open",
    '"Size of it" = 1.5 or "Size of it" = -0.5',
    '"Size of it" > 1e9',
    "Price = 1.5",
    f"Long = {LONG} or Long = -{LONG}",
    "Price < 0 or Price >= 10.00",
    "Born >= '2026-01-02'",
    "Born = date '2026-01-01'",
    "Seen < '2026-01-01 11:00:00+00:00'",
    "Seen < '2026-01-01 11:00:00' and Seen >= '2026-01-01' and Seen = '2026-01-01T10:00:00Z'",
    "Open = true",
    "Open = false or Id = null",
    "Id = Price",
    "Place.Zip = '1'",
]


@pytest.mark.parametrize("text", PREDICATES)
def test_the_rows_are_duckdbs(text):
    """Missing values are neither equal nor unequal to anything, under ``not`` and ``in`` as well."""
    expected = duckdb.from_arrow(ROWS).filter(text.replace(r"\'", "''")).to_arrow_table()

    found = ROWS.filter(parse_predicate(text.replace('"', "`"), ROWS.schema))

    assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("Id >", InvalidOption, "not a predicate"),
        ("Id", InvalidOption, "not supported"),
        ("lower(City) = 'bern'", InvalidOption, r"'LOWER\(City\)' is no column"),
        ("Id > 1; drop table x", InvalidOption, "not a predicate"),
        ("Price > 1e999999999", InvalidOption, "of type decimal"),
        ("Id in (select 1)", InvalidOption, "not supported"),
        ("Id = 'x'", InvalidOption, "of type int32"),
        ("City = 1", InvalidOption, "of type string"),
        ("Open = 1", InvalidOption, "of type bool"),
        ("Id > 99999999999999999999", InvalidOption, "of type int32"),
        ("Id = cast(1.9 as int)", InvalidOption, "of type int32"),
        ("City = cast('a' as string)", InvalidOption, "of type string"),
        (" or ".join(f"Id = {number}" for number in range(3000)), InvalidOption, "too many conditions"),
        ("Born = '2026-13-01'", InvalidOption, "of type date32"),
        ("City = Bern", MissingColumn, "'Bern'.*single quotes"),
        ("city = 'Bern'", MissingColumn, "'city'.*Upper and lower case"),
        ("City = 'Bern", InvalidOption, "not a predicate"),
        ("Case = 'x'", InvalidOption, "backticks"),
        ("City like 'a' escape '|'", InvalidOption, "not supported"),
        ("", InvalidOption, "It is empty"),
    ],
)
def test_what_cannot_be_understood_is_refused(text, error, said):
    """The cause names the part, and the remedy shows how a predicate is written."""
    with pytest.raises(error) as refused:
        parse_predicate(text, ROWS.schema)

    assert re.search(said, str(refused.value), re.DOTALL), refused.value
