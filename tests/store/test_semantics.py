"""Lines of the page "What an update means" that no other file has a test for."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests import given
from tests.given import counts
from tests.text_types import TEXT
from tests.typed_columns import KINDS

from freezeframe.errors import BadInput, DuplicateKeyError, NullKeyError, SchemaDriftError
from freezeframe.script import get_snapshot, open_tenant, update_snapshot
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.maintenance import repair

ROWS = pd.DataFrame({"Id": ["1", "2"], "v": [1, 2]})


@pytest.mark.parametrize("override", [False, True])
def test_repeated_keys_are_an_error_where_asked(open_on, memory, override):
    """`drop_duplicates=False` names up to ten keys; without it the last wins, by override as well."""
    stream = open_on(memory).stream("A")
    twice = pd.DataFrame({"Id": [*range(12), *range(12)], "v": [*range(24)]})

    with pytest.raises(DuplicateKeyError, match=r"12 keys.* 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and more"):
        stream.update(twice, key="Id", override=override, drop_duplicates=False)

    assert stream.version == -1
    stream.update(twice, key="Id", override=override)
    assert list(range(12, 24)) == list(stream.read()["v"])


@pytest.mark.spark
def test_a_spark_frame_needs_an_order_for_rows_that_differ(tmp_path, spark_engine, spark_session):
    """It has none of its own: equal rows collapse, others are an error, unless columns decide."""
    rows = [("1", 1, "a"), ("1", 3, "c"), ("1", None, "d"), ("2", 1, "x"), ("2", 1, "x")]
    frame = spark_session.createDataFrame(rows, "Id string, at int, v string")
    stream = open_tenant(tmp_path).stream("A")

    with pytest.raises(DuplicateKeyError, match="'1'"):
        stream.update(frame, key="Id")
    stream.update(frame, key="Id", order_by="at")

    assert sorted(zip(stream.read()["Id"], stream.read()["v"], strict=True)) == [("1", "c"), ("2", "x")]


def test_a_null_in_a_key_is_refused_matched_or_dropped(tmp_path):
    """Rows without a key do not pile up: they are one row, or none and counted."""
    stream = open_tenant(tmp_path).stream("A")
    frame = pd.DataFrame({"Id": ["1", None], "v": [1, 2]})
    with pytest.raises(NullKeyError, match="'Id' is null in 1 of 2 rows"):
        stream.update(frame, key="Id")

    dropped = stream.update(frame, key="Id", null_keys="drop")
    first = stream.update(frame, null_keys="match")
    again = stream.update(frame.assign(v=[1, 3]), null_keys="match")

    assert (dropped.inserted, dropped.null_keys_dropped) == (1, 1)
    assert ((first.inserted, first.updated), (again.inserted, again.updated)) == ((1, 0), (0, 1))
    assert sorted(stream.read()["v"]) == [1, 3]


def test_values_stay_exactly_as_they_came(tmp_path):
    """Through a write, a merge and back to pandas, in types that have room for what is missing."""
    row = {
        "Id": "007",
        "na": "NA",
        "empty": "",
        "nan": "nan",
        "big": 9007199254740993,
        "day": dt.date(2026, 2, 28),
        "cost": Decimal("1.10"),
        "ok": True,
        "at": pd.Timestamp("2026-03-29T01:30:00.000007Z"),
        "tags": ["a", None],
    }
    first = update_snapshot(tmp_path, "A", "Id", pd.DataFrame([row]))
    merged = update_snapshot(tmp_path, "A", "Id", pd.DataFrame({"Id": ["7", "NA"], "extra": [1, 2]}))

    kept = merged[merged["Id"] == "007"].drop(columns="extra")
    found = [first.to_dict("records"), kept.to_dict("records")]
    assert [[row]] * 2 == [[{**record, "tags": list(record["tags"])} for record in item] for item in found]
    assert {name: str(merged[name].dtype) for name in ("big", "ok", "empty", "at")} == {
        "big": "Int64",
        "ok": "object",
        "empty": TEXT,
        "at": "datetime64[us, UTC]",
    }
    assert list(merged["Id"]) == ["007", "7", "NA"]


def test_an_override_mends_a_key_that_is_stored_twice(open_finding, memory, monkeypatch):
    """The further row of the key counts as deleted, so the right content is written."""
    tenant = open_finding(memory)
    damaged = pa.table({"Id": [1, 1, 2], "v": ["a", "a", "b"]})
    tenant.stream("Lead").update(damaged, override=True)
    tenant.stream("Lead").release()
    monkeypatch.setattr(repair, "are_distinct", lambda _: True)  # as a fault would have stored them
    tenant.adopt("Lead", "Id")
    right = damaged.slice(1)

    receipt = tenant.stream("Lead").update(right, override=True)

    assert (0, 0, 2, 1) == counts(receipt)
    assert right.to_pylist() == tenant.stream("Lead").read(as_="arrow").to_pylist()


def test_a_key_of_another_type_is_refused(open_on, memory):
    """ "1" and 1 never become two rows; nothing is written."""
    stream = open_on(memory, streams={"A": ROWS}).stream("A")

    with pytest.raises(
        SchemaDriftError, match="key column 'Id' is stored as string, but the batch has int64"
    ):
        stream.update(pd.DataFrame({"Id": [1]}))
    assert stream.version == 0


def test_whatever_pandas_misses_is_null(open_on, memory):
    """The text "nan" stays text; a NaN in Arrow stays NaN."""
    missing = [np.nan, None, pd.NaT, pd.NA, "nan"]
    tenant = open_on(memory, streams={"A": pd.DataFrame({"Id": range(5), "v": missing})})
    tenant.stream("B").update(pa.table({"Id": [1, 2], "x": [float("nan"), None]}), key="Id")

    assert tenant.stream("A").read(as_="arrow")["v"].to_pylist() == [None, None, None, None, "nan"]
    assert (
        tenant.stream("B").read(as_="arrow")["x"].null_count,
        str(tenant.stream("B").read(as_="arrow")["x"][0].as_py()),
    ) == (1, "nan")


@pytest.mark.parametrize(
    "batch", [ROWS.head(0), pd.DataFrame(), pd.DataFrame({"Id": []})], ids=["columns", "none", "no types"]
)
def test_an_empty_batch_makes_no_version(open_on, memory, batch):
    """With or without columns: nothing came, nothing changes."""
    stream = open_on(memory, streams={"A": ROWS}).stream("A")

    receipt = stream.update(batch)

    assert (receipt.version, receipt.committed, stream.count()) == (0, False, 2)


def test_time_travel_has_three_ways(tmp_path):
    """By the stream's version, by the tenant's, by a moment; from the script as from the stream."""
    tenant = open_tenant(tmp_path)
    tenant.stream("A").update(ROWS, key="Id")
    tenant.stream("B").update(ROWS.head(1), key="Id")
    _, first = tenant.history()

    assert len(get_snapshot(tmp_path, "A", version=0)) == 2
    assert len(get_snapshot(tmp_path, "A", tenant_version=0)) == 2
    assert len(get_snapshot(tmp_path, "A", as_of=first.timestamp)) == 2
    assert get_snapshot(tmp_path, "B", tenant_version=0) is None


def test_a_stream_of_a_flow_is_one_of_its_own(tmp_path):
    """`Account@qbo` beside `Account`: other rows, another folder, listed by its name."""
    tenant = open_tenant(tmp_path)
    tenant.stream("Account").update(ROWS, key="Id")
    tenant.stream("Account@qbo").update(ROWS.head(1), key="Id")

    assert tenant.streams() == ("Account", "Account@qbo")
    assert (len(get_snapshot(tmp_path, "Account")), len(get_snapshot(tmp_path, "Account@qbo"))) == (2, 1)
    assert (tmp_path / "Account@qbo.snapshot" / "_delta_log").is_dir()


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS.values() if kind.may_be_key], ids=lambda kind: kind.name
)
def test_a_null_in_a_key_is_an_error(local, open_on, kind):
    """Without a rule for it, a null in a key of any type is refused before anything is written."""
    stream = open_on(local).stream("Account")

    with pytest.raises(NullKeyError):
        stream.update(pa.table({"Id": pa.array([None], kind.arrow), "v": [1]}), key="Id")

    assert stream.stream_version == -1


@pytest.mark.spark
def test_spark_frames_under_names_that_need_mapping(spark_engine, spark_session, tmp_path):
    """A Spark frame's columns arrive under any name, by every route: first write, merge, window, override."""
    stream = given.tenant(LocalStorage(tmp_path), spark_engine).stream("Account")
    pair = pa.struct([("a b", pa.int32())])

    def update(ids, numbers, kind, **options):
        columns = {"Id": pa.array(ids), "n m": pa.array(numbers, kind), "{p}": [{"a b": 1}] * len(ids)}
        table = pa.table(columns, schema=pa.schema([("Id", pa.string()), ("n m", kind), ("{p}", pair)]))
        stream.update(spark_session.createDataFrame(table), **options)
        found = stream.read(as_="arrow").to_pylist()
        assert all(row["{p}"] == {"a b": 1} for row in found)
        return {row["Id"]: row["n m"] for row in found}

    assert update(["1", "2"], [1, 2], pa.int32(), key="Id") == {"1": 1, "2": 2}
    assert update(["2"], [2**40], pa.int64()) == {"1": 1, "2": 2**40}
    assert update(["2", "3"], [7, 9], pa.int64(), replace_where="`n m` > 6") == {"1": 1, "2": 7, "3": 9}
    assert update(["2", "3"], [7, 10], pa.int64(), mode="full") == {"2": 7, "3": 10}
    assert update(["4"], [4], pa.int32(), override=True) == {"4": 4}


@pytest.mark.parametrize("name", ["n", "n m"])
def test_an_empty_frame_makes_an_empty_table(local, open_on, name):
    """No rows but columns, on a new stream, or all rows dropped: the columns are there, under any name."""
    tenant = open_on(local, streams={"Empty": pa.table({"Id": ["1"], name: [1]}).slice(1)})
    nulls = pa.table({"Id": pa.array([None], pa.string()), name: [1]})
    receipt = tenant.stream("Dropped").update(nulls, key="Id", null_keys="drop")

    assert receipt.null_keys_dropped == 1
    for stream in ("Empty", "Dropped"):
        found = tenant.stream(stream).read(as_="arrow")
        assert (["Id", name], 0) == (found.column_names, found.num_rows)


@pytest.mark.parametrize("engine", ["auto", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_part_of_a_key_may_be_open(tmp_path, engine):
    """A part that is null in every row so far says nothing; with its first value it is a part like others."""
    settings = Settings(vectors_from_bytes=0, engine=engine)
    stream = Tenant(LocalStorage(tmp_path), shared_engine(), settings).stream("Account")

    def update(ids, lines, values):
        rows = pd.DataFrame({"Id": ids, "Line": lines, "v": values})
        receipt = stream.update(rows, key=["Id", "Line"], null_keys="match")
        return receipt.inserted, receipt.updated, receipt.unchanged

    assert update(["1", "2"], [None, None], [1, 2]) == (2, 0, 0)
    assert update(["1", "2", "3"], [None] * 3, [1, 3, 4]) == (1, 1, 1)
    assert update(["1", "1"], [None, "x"], [5, 6]) == (1, 1, 0)
    found = {(row["Id"], row["Line"]): row["v"] for row in stream.read(as_="arrow").to_pylist()}
    assert found == {("1", None): 5, ("2", None): 3, ("3", None): 4, ("1", "x"): 6}


def test_a_key_without_any_value_is_refused(local, open_on):
    """Rows under a key whose columns have neither value nor type cannot be told apart, now or later."""
    stream = open_on(local).stream("Account")

    with pytest.raises(NullKeyError, match="no column of it ever had a value"):
        stream.update(pd.DataFrame({"Id": [None], "v": [1]}), key="Id", null_keys="match")

    assert stream.stream_version == -1


def test_rows_without_any_value_are_refused(local, open_on):
    """A row of nothing but nulls in columns of no type could not be written, so it is not counted either."""
    stream = open_on(local).stream("Account")

    with pytest.raises(BadInput, match="no value at all"):
        stream.update(pd.DataFrame({"Id": [None], "v": [None]}), key="Id", null_keys="match")

    assert stream.stream_version == -1
