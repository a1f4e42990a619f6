"""Predicates as SQL text match the rows that DuckDB matches, and are refused with a remedy."""

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product

import deltalake
import duckdb
import pyarrow as pa
import pytest
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it

from freezeframe.errors import InvalidOption, MissingColumn, TypeMismatch
from freezeframe.log import DeltaLog
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
        "Nothing": pa.nulls(5),
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
    "Open",
    "not Open and Id < 3",
    "Nothing or not Nothing or Id > 2",
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


NUMBERS = (None, math.nan, -math.inf, -1.0, -0.0, 0.0, 1.0, math.inf)
PAIRS = list(product(NUMBERS, NUMBERS))
FLOATS = pa.table(
    {
        "id": range(len(PAIRS)),
        "d": pa.array([left for left, _ in PAIRS], pa.float64()),
        "f": pa.array([right for _, right in PAIRS], pa.float32()),
        "i": pa.array([number % 3 - 1 if number % 4 else None for number in range(len(PAIRS))], pa.int32()),
        "s": pa.array([{"d": left} for left, _ in PAIRS], pa.struct([("d", pa.float64())])),
    }
)
COMPARED = ["d {} 1", "1 {} f", "d {} f", "f {} d", "i {} d", "d {} i", "s.d {} 0", "d {} 'NaN'", "f {} d"]
OF_FLOATS = [form.format(sign) for form in COMPARED for sign in ("=", "<>", "<", "<=", ">", ">=")]
OF_FLOATS += [
    *(
        "d between 0 and 'NaN'",
        "f between 0 and 1",
        "d in (1, 'NaN')",
        "d in (0)",
        "i in (0)",
        "s.d in ('NaN')",
    ),
    *("d = null", "d > 0 and f > d", "d > 0 or f < 0"),
]
OF_FLOATS += [f"not ({text})" for text in OF_FLOATS]


@pytest.fixture
def among(tmp_path):
    """Rows as a Delta table of a writer whose statistics pass over NaN, in two files."""
    for part in (FLOATS.slice(0, 40), FLOATS.slice(40)):
        deltalake.write_deltalake(tmp_path, part, mode="append")
    snapshot = DeltaLog.open(tmp_path).current_snapshot
    return lambda text: sorted(snapshot.to_arrow(["id"], where=text)["id"].to_pylist())


def test_nan_is_the_greatest_number(among):
    """As in DuckDB, at every comparison, beside columns and in structs; no file with NaN is left out."""
    rows = duckdb.from_arrow(FLOATS)
    expected = {text: rows.filter(text).order("id").to_arrow_table()["id"].to_pylist() for text in OF_FLOATS}
    found = {
        text: FLOATS.filter(parse_predicate(text, FLOATS.schema))["id"].to_pylist() for text in OF_FLOATS
    }
    assert expected == found
    assert expected == {text: among(text) for text in OF_FLOATS}


@pytest.mark.spark
def test_nan_is_the_greatest_number_as_in_spark(spark_session):
    """The rows are Spark's."""
    rows = spark_session.createDataFrame(FLOATS)
    chosen = [F.collect_list(F.expr(f"case when {text} then id end")) for text in OF_FLOATS]
    answers = rows.select(*map(F.sort_array, chosen)).first()
    found = [FLOATS.filter(parse_predicate(text, FLOATS.schema))["id"].to_pylist() for text in OF_FLOATS]
    assert dict(zip(OF_FLOATS, answers, strict=True)) == dict(zip(OF_FLOATS, found, strict=True))


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("Id >", InvalidOption, "not a predicate"),
        ("Id", TypeMismatch, "The column Id is no condition.*of type int32, not boolean"),
        ("City = 'Bern' or not Place.Zip", TypeMismatch, "The column Place.Zip is no condition"),
        ("lower(City) = 'bern'", InvalidOption, r"'LOWER\(City\)' is a function"),
        ("Id > 1; drop table x", InvalidOption, "not a predicate"),
        ("Price > 1e999999999", TypeMismatch, "of type decimal"),
        ("Id in (select 1)", InvalidOption, "not supported"),
        ("Id = 'x'", TypeMismatch, "of type int32"),
        ("City = 1", TypeMismatch, "of type string"),
        ("Open = 1", TypeMismatch, "of type bool"),
        ("Id > 99999999999999999999", TypeMismatch, "of type int32"),
        ("Id = cast(1.9 as int)", TypeMismatch, "of type int32"),
        ("City = cast('a' as string)", TypeMismatch, "of type string"),
        (" or ".join(f"Id = {number}" for number in range(3000)), InvalidOption, "too many conditions"),
        ("Born = '2026-13-01'", TypeMismatch, "of type date32"),
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

    assert error is type(refused.value)
    assert re.search(said, str(refused.value), re.DOTALL), refused.value
