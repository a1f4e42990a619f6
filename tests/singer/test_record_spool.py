"""The rows of streams in one file until their commit: every value exact, in its declared type."""

import datetime as dt
import decimal
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from tests.singer.taps import record, run, schema

import freezeframe
from freezeframe.errors import SchemaDriftError, UnreadableInput
from freezeframe.singer.messages import RecordMessage, SchemaMessage
from freezeframe.singer.record_spool import BatchLimits, RecordSpool

UTC = dt.UTC
D = decimal.Decimal


def kept(root, name="Value"):
    """The column's type and values, by key."""
    rows = freezeframe.open(root).tenant("acme").stream("Account").read(as_="arrow").sort_by("Id")
    return rows.schema.field(name).type, rows[name].to_pylist()


def raw(value, key="1"):
    """A RECORD whose value is this JSON, letter by letter."""
    return f'{{"type": "RECORD", "stream": "Account", "record": {{"Id": "{key}", "Value": {value}}}}}'


@pytest.mark.parametrize(
    ("declared", "given", "kind", "expected"),
    [
        ({"type": ["null", "integer"]}, ["9007199254740993", "null"], pa.int64(), [9007199254740993, None]),
        ({"type": "integer"}, ["2.0"], pa.int64(), [2]),
        ({"type": "integer"}, ["1", "18446744073709551616"], pa.decimal128(38, 0), [D(1), D(2**64)]),
        ({"type": ["null", "integer"]}, ["-0", "1e3", "2.0"], pa.int64(), [0, 1000, 2]),
        ({"type": "number"}, ["0.1", "1e300"], pa.float64(), [0.1, 1e300]),
        (
            {"type": "number"},
            ["1", "0.10000000000000000000000001"],
            pa.decimal128(38, 26),
            [D("1"), D("0.10000000000000000000000001")],
        ),
        ({"type": "number"}, ["9007199254740993"], pa.decimal128(38, 18), [D(9007199254740993)]),
        ({"type": "number", "multipleOf": 0.01}, ["1.10", "3"], pa.decimal128(38, 2), [D("1.10"), D("3.00")]),
        (
            {"type": "number", "multipleOf": 1e-10},
            ["12345678901234567890.0000000001"],
            pa.decimal128(38, 10),
            [D("12345678901234567890.0000000001")],
        ),
        (
            {"type": ["string", "null"], "format": "singer.decimal", "precision": 12, "scale": 3},
            ['"1.500"'],
            pa.decimal128(12, 3),
            [D("1.500")],
        ),
        ({"type": ["null", "boolean"]}, ["true", "false", "null"], pa.bool_(), [True, False, None]),
        ({"type": "string"}, ['"007"', '""', '"NA"', '"ü\\u00fc"'], pa.string(), ["007", "", "NA", "üü"]),
        (
            {"type": "string", "format": "date"},
            ['"2026-10-01"'],
            pa.date32(),
            [dt.date(2026, 10, 1)],
        ),
        (
            {"type": ["null", "string"], "format": "date-time"},
            ['"2026-10-01T06:00:00.123456+02:00"', '"2026-10-01T04:00:00Z"'],
            pa.timestamp("us", "UTC"),
            [
                dt.datetime(2026, 10, 1, 4, 0, 0, 123456, tzinfo=UTC),
                dt.datetime(2026, 10, 1, 4, tzinfo=UTC),
            ],
        ),
        (
            {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
            ['"2026-10-01T06:00:00"'],
            pa.timestamp("us", "UTC"),
            [dt.datetime(2026, 10, 1, 6, tzinfo=UTC)],
        ),
        (
            {"type": ["object", "array", "null"]},
            ['{"b": 1.10, "a": [9007199254740993, null, "ü"]}', "[]"],
            pa.string(),
            ['{"b": 1.10, "a": [9007199254740993, null, "ü"]}', "[]"],
        ),
        ({"type": ["string", "integer"]}, ['"007"', "7"], pa.string(), ["007", "7"]),
        ({}, ["7", "1.5"], pa.float64(), [7.0, 1.5]),
        ({}, ["7", "-0", "1e3"], pa.int64(), [7, 0, 1000]),
        ({}, ['"7"', "true"], pa.string(), ["7", "true"]),
    ],
)
def test_values_come_back_exactly(tmp_path, declared, given, kind, expected):
    """The column has the declared type, or the next one that holds every value exactly."""
    run(tmp_path, schema(Value=declared), *(raw(one, key) for key, one in enumerate(given)))
    assert (kind, expected) == kept(tmp_path)


def test_columns_without_a_schema_have_the_types_of_their_values(tmp_path):
    """A property that the SCHEMA does not name is kept, under the types that its values have."""
    run(tmp_path, schema(), record(Id="1", Extra=1), record(Id="2", Extra=2), record(Id="3"))
    assert (pa.int64(), [1, 2, None]) == kept(tmp_path, "Extra")


def test_the_stored_type_counts_where_all_values_fit(tmp_path):
    """A stream of decimals takes the integers of a later run as decimals."""
    run(tmp_path, schema(Value={"type": "number", "multipleOf": 0.01}), raw("1.5"))
    run(tmp_path, schema(Value={"type": "integer"}), raw("2", key="2"))
    assert (pa.decimal128(38, 2), [D("1.50"), D("2.00")]) == kept(tmp_path)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ({"type": "integer"}, '"1"'),
        ({"type": "string"}, "1"),
        ({"type": "boolean"}, "0"),
        ({"type": ["null", "string"]}, "{}"),
        ({"type": "number"}, "1e-400"),
        ({"type": "number"}, "1e400"),
    ],
)
def test_a_value_of_another_type_is_refused(tmp_path, declared, value):
    """The error names line, stream and column; there is no tenant after it."""
    with pytest.raises(UnreadableInput, match="Line 2") as caught:
        run(tmp_path, schema(Value=declared), raw(value))
    assert (caught.value.details["stream"], caught.value.details["column"]) == ("Account", "Value")
    assert freezeframe.open(tmp_path).tenants() == ()


@pytest.mark.parametrize(("declared", "value"), [("integer", "1.5"), ("number", "12345678901234567890" * 2)])
def test_a_number_that_no_type_holds_is_refused(tmp_path, declared, value):
    """Numbers never become text behind the schema's back."""
    with pytest.raises(SchemaDriftError, match="no type holds all numbers"):
        run(tmp_path, schema(Value={"type": declared}), raw(value))


ROWS = 100


def test_streams_are_read_side_by_side():
    """Threads that read several streams of one file at once get each its own rows."""
    with tempfile.TemporaryFile() as file:
        spools = {}
        for name in ("a", "b", "c"):
            schema = SchemaMessage(1, name, {"Id": {"type": "string"}}, ("Id",))
            spools[name] = RecordSpool(file, schema, BatchLimits(1, 2**20))
            for number in range(ROWS):
                spools[name].add(RecordMessage(2, name, {"Id": f"{name}{number}"}, None))

        def read(name):
            return name, spools[name].reader(None).read_all()["Id"].to_pylist()

        with ThreadPoolExecutor(6) as threads:
            found = list(threads.map(read, [*spools] * 6))

    assert found == [(name, [f"{name}{number}" for number in range(ROWS)]) for name, _ in found]
