"""A column gets another type if, and only if, every stored value survives it."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.given import files_of

from freezeframe.errors import InvalidOption, MissingColumn, SchemaDriftError, StreamNotFound
from freezeframe.script import open_tenant
from freezeframe.store.schema.columns import VALID_TO
from freezeframe.store.schema.type_compatibility import exact_cast

ROWS = pa.table({"Id": [1, 2, 3], "zip": ["3000", None, "8001"], "v": [0.5, -0.0, float("nan")]})


@pytest.fixture
def tenant(open_finding, local):
    """A tenant with one stream of two files."""
    tenant = open_finding(local, streams={"Account": ROWS})
    tenant.stream("Account").update(pa.table({"Id": [9], "zip": ["9000"]}))
    return tenant


def rows(stream, **options):
    return stream.read(as_="arrow", **options).to_pylist()


def test_a_column_gets_another_type_in_one_version(tenant):
    """All rows are kept, no row is changed, and earlier versions are as they were."""
    stream = tenant.stream("Account")
    done = stream.retype("zip", "int", who="ada", message="postcodes")

    assert (done.type_before, done.type_after, done.rows, done.tenant_version, done.committed) == (
        "string",
        "integer",
        4,
        2,
        True,
    )
    assert ([row["zip"] for row in rows(stream)], stream.version) == ([3000, None, 8001, 9000], 2)
    assert [row["zip"] for row in rows(stream, version=1)] == ["3000", None, "8001", "9000"]
    assert len(stream.changes(since=1)) == 0
    entry = tenant.history()[0]
    assert (entry.who, entry.message) == ("ada", "retype Account.zip as integer: postcodes")
    assert entry.streams["Account"].changed == 0
    tenant.restore(1)
    assert pa.string() == stream.schema.field("zip").type


def test_a_value_that_would_be_lost_is_named_and_nothing_is_written(tenant, local):
    """By the row's key; a dry run finds it as well, and tells what would be done where there is none."""
    stream = tenant.stream("Account")
    stream.update(pa.table({"Id": [10], "zip": ["03000"]}))
    before = files_of(local)

    for dry_run in (True, False):
        with pytest.raises(SchemaDriftError, match=r"Account\.zip") as caught:
            stream.retype("zip", "long", dry_run=dry_run)
        assert caught.value.details["rows"] == [{"Id": "10", "value": "'03000'"}]
    done = stream.retype("Id", "string", dry_run=True)
    assert (done.rows, done.tenant_version, done.committed) == (5, 2, False)
    assert before == files_of(local)


def test_a_key_becomes_text_and_numbers_again(tenant):
    stream = tenant.stream("Account")
    stream.retype("Id", "string")
    assert [row["Id"] for row in rows(stream)] == ["1", "2", "3", "9"]
    receipt = stream.update(pa.table({"Id": [9, 10], "zip": ["9001", "1"]}))
    assert (receipt.inserted, receipt.updated) == (1, 1)
    stream.retype("Id", "long")
    receipt = stream.update(pa.table({"Id": [10], "zip": ["2"]}))

    assert (receipt.inserted, receipt.updated) == (0, 1)
    assert [row["Id"] for row in rows(stream)] == [1, 2, 3, 9, 10]
    assert list(stream.changes(since=1)["_change_type"]) == ["update", "insert"]
    with pytest.raises(SchemaDriftError):  # the mark of a text key went with its type
        stream.update(pa.table({"Id": ["10"], "zip": ["3"]}))


def test_the_same_type_changes_nothing_and_an_open_one_is_decided(tenant):
    """No version in the first case; in the second a later batch has to fit."""
    stream = tenant.stream("Account")
    assert (stream.retype("zip", "text").committed, stream.version) == (False, 1)
    stream.update(pa.table({"Id": [1], "open": pa.nulls(1)}))
    assert stream.retype("open", "decimal(10,2)").committed
    assert pa.decimal128(10, 2) == stream.schema.field("open").type
    stream.update(pa.table({"Id": [1], "open": pa.array([7], pa.decimal128(10, 2))}))
    assert rows(stream)[0]["open"] == Decimal("7.00")


def test_what_cannot_be_asked_for(tenant, local):
    stream = tenant.stream("Account")
    stream.update(pa.table({"Id": [1], "part": [{"a": 1}]}))
    before = files_of(local)

    for column, kind in (("Id", "uuid"), ("Id", "void"), ("Id", "array<int>"), ("part", "string")):
        with pytest.raises(InvalidOption):
            stream.retype(column, kind)
    with pytest.raises(MissingColumn):
        stream.retype("ID", "string")
    with pytest.raises(StreamNotFound):
        tenant.stream("Nobody").retype("Id", "string")
    with pytest.raises(InvalidOption), tenant.job() as job:
        job.stream("Account").retype("Id", "string")
    assert before == files_of(local)


def test_a_key_keeps_its_kind(open_finding, local):
    """True and 1 are never one key to a comparison, so all rows would be told as gone and new."""
    stream = open_finding(local, streams={"Flag": {"Id": [True, False], "v": [True, None]}}).stream("Flag")

    with pytest.raises(InvalidOption, match="'Id'"):
        stream.retype("Id", "long")
    assert stream.retype("Id", "string").committed
    assert len(stream.changes(since=0)) == 0
    assert stream.retype("v", "long").committed
    assert [row["Id"] for row in rows(stream)] == ["false", "true"]


class Meanwhile:
    """A storage in which something happens just before the first new entry of the tenant's log."""

    def __init__(self, inner, happen):
        self._inner, self._happen = inner, [happen]

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def put_if_absent(self, name, content):
        if "/log/" in name and self._happen:
            self._happen.pop()()
        self._inner.put_if_absent(name, content)


@pytest.mark.parametrize(("late", "is_kept"), [("7000", True), ("x", False)])
def test_rows_that_come_meanwhile_are_looked_at(open_finding, local, late, is_kept):
    """The step is carried out again on the newer state, and refuses what it finds there."""
    other = open_finding(local, streams={"Account": ROWS}).stream("Account")
    tenant = open_finding(Meanwhile(local, lambda: other.update(pa.table({"Id": [8], "zip": [late]}))))

    if is_kept:
        assert tenant.stream("Account").retype("zip", "int").rows == 4
    else:
        with pytest.raises(SchemaDriftError):
            tenant.stream("Account").retype("zip", "int")
    assert (int(late) if is_kept else late) == rows(other)[-1]["zip"]


def test_rows_of_the_past_take_part(tmp_path):
    stream = open_tenant(tmp_path).stream("Price")
    stream.update(pa.table({"Item": ["pen"], "CHF": ["2"]}), key="Item", history="scd2")
    stream.update(pa.table({"Item": ["pen"], "CHF": ["3"]}))
    stream.retype("CHF", "long")

    found = [(row["CHF"], row[VALID_TO] is None) for row in rows(stream, history=True)]
    assert sorted(found) == [(2, False), (3, True)]
    with pytest.raises(InvalidOption):
        stream.retype(VALID_TO, "string")


@pytest.mark.parametrize(
    ("value", "before", "after", "is_kept"),
    [
        (-0.0, pa.float64(), pa.int64(), False),
        (float("nan"), pa.float64(), pa.string(), True),
        (float("nan"), pa.float32(), pa.float64(), True),
        (0.1, pa.float64(), pa.float32(), False),
        (2**53 + 1, pa.int64(), pa.float64(), False),
        (Decimal("0.0000001"), pa.decimal128(9, 7), pa.string(), True),
        (Decimal("1.50"), pa.decimal128(9, 2), pa.decimal128(9, 1), True),
        (Decimal("1.55"), pa.decimal128(9, 2), pa.decimal128(9, 1), False),
        ("1.50", pa.string(), pa.decimal128(9, 2), True),
        ("1.5", pa.string(), pa.decimal128(9, 2), False),
        ("True", pa.string(), pa.bool_(), False),
        ("true", pa.string(), pa.bool_(), True),
        (dt.datetime(2026, 10, 1, 12, tzinfo=dt.UTC), pa.timestamp("us", "UTC"), pa.date32(), False),
        (dt.date(2026, 10, 1), pa.date32(), pa.timestamp("us"), True),
        (dt.date(2026, 10, 1), pa.date32(), pa.string(), True),
        (dt.datetime(2026, 10, 1, tzinfo=dt.UTC), pa.timestamp("us", "UTC"), pa.string(), True),
        (dt.datetime.fromisoformat("2026-10-01 01:02:03.0004"), pa.timestamp("us"), pa.string(), True),
        ("2026-10-01 01:02:03.000400+00:00", pa.string(), pa.timestamp("us", "UTC"), True),
        ("2026-10-01T01:02:03Z", pa.string(), pa.timestamp("us", "UTC"), False),
        ("+10000-10-01 01:02:03", pa.string(), pa.timestamp("us"), True),
        ("+999999-10-01 01:02:03", pa.string(), pa.timestamp("us"), False),
        (b"\xff", pa.binary(), pa.string(), False),
    ],
)
def test_which_values_survive(value, before, after, is_kept):
    column = pa.chunked_array([pa.array([None, value], before)])

    assert is_kept == (exact_cast(column, after) is not None)
    assert exact_cast(column.slice(0, 1), after).to_pylist() == [None]
