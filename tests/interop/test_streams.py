"""A stream is a plain Delta table: Spark with Delta and delta-rs read what we read, at every version."""

import datetime as dt
import decimal
import functools
import json
import math

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from freezeframe.log import DeltaLog
from freezeframe.script import get_snapshot, open_tenant, update_snapshot
from freezeframe.script.inputs.transfer import export_stream
from freezeframe.store.schema.columns import TENANT_LOG_FEATURE

pytestmark = pytest.mark.spark

TYPED = pa.table(
    {
        "Id": ["007", "2", "3"],
        "whole": pa.array([2**53 + 1, None, -1], pa.int64()),
        "small": pa.array([1, 2, None], pa.int32()),
        "part": [1.5, float("inf"), None],
        "exact": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-3.00")], pa.decimal128(10, 2)),
        "day": pa.array([dt.date(2026, 11, 21), None, dt.date(1969, 12, 31)]),
        "moment": pa.array(
            [dt.datetime(2026, 11, 21, 4, 0, 0, 1, dt.UTC), None, None], pa.timestamp("us", "UTC")
        ),
        "active": [True, None, False],
        "bytes": [b"\x00\xff", None, b""],
        "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
        "address": pa.array([{"city": "Bern", "zip": "03000"}, {"city": None, "zip": None}, None]),
    }
)


@pytest.fixture
def typed(tmp_path, spark_engine):
    """A stream with every kind of column and three versions: made, changed and widened."""
    update_snapshot(tmp_path, "Typed", "Id", TYPED)
    update_snapshot(tmp_path, "Typed", "Id", pa.table({"Id": ["2"], "whole": [7], "active": [True]}))
    update_snapshot(
        tmp_path, "Typed", "Id", pa.table({"Id": ["2", "4"], "small": pa.array([2**40, 0], pa.int64())})
    )
    update_snapshot(tmp_path, "Typed", "Id", pa.table({"Id": ["4"], "extra": ["x"]}))
    return tmp_path


def _rows(table):
    return sorted(table.to_pylist(), key=lambda row: row["Id"])


def _versions(directory, stream):
    return range(open_tenant(directory).stream(stream).version + 1)


def test_spark_with_delta_reads_the_same(typed, delta_session):
    """Rows, columns and version are equal at each version."""
    path = typed / "Typed.snapshot"
    history = delta_session.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()

    assert list(_versions(typed, "Typed")) == sorted(row["version"] for row in history)
    for version in _versions(typed, "Typed"):
        ours = get_snapshot(typed, "Typed", version=version, as_="arrow")
        theirs = delta_session.read.format("delta").option("versionAsOf", version).load(str(path)).toArrow()
        assert ours.column_names == theirs.column_names
        assert _rows(ours) == _rows(theirs)


def test_delta_rs_reads_the_same(typed):
    """Rows, columns and version are equal at each version."""
    for version in _versions(typed, "Typed"):
        table = DeltaTable(str(typed / "Typed.snapshot"), version=version)
        ours = get_snapshot(typed, "Typed", version=version, as_="arrow")
        theirs = table.to_pyarrow_table()

        assert version == table.version()
        assert ours.column_names == [field.name for field in table.schema().fields]
        assert _rows(ours) == _rows(theirs)


def test_odd_names_are_read_by_all(tmp_path, spark_engine, delta_session):
    """Names with spaces, dots, braces and emoji reach other readers through column mapping."""
    names = ["First Name", "a.b", "{x}", "a,b;c", "tab\there", "😀", "Product/Service", "a=b"]
    parts = [{"First Name": "Ada", "plain": 1}, None]
    frame = pa.table({"Id": ["1", "2"], **{name: [name, None] for name in names}, "parts": parts})
    update_snapshot(tmp_path, "Odd", "Id", frame.slice(0, 1))
    update_snapshot(tmp_path, "Odd", "Id", frame)
    path = str(tmp_path / "Odd.snapshot")

    found = delta_session.read.format("delta").load(path).toArrow()
    assert frame.column_names == found.column_names
    assert _rows(frame) == _rows(found) == _rows(get_snapshot(tmp_path, "Odd", as_="arrow"))
    by_rust = pa.table(
        QueryBuilder().register("odd", DeltaTable(path)).execute("select * from odd").read_all()
    )
    assert _rows(frame) == _rows(by_rust)


def test_small_streams_ask_nothing_of_readers(typed):
    """Reader version 1: every Delta reader there is."""
    protocol = DeltaTable(str(typed / "Typed.snapshot")).protocol()

    assert protocol.min_reader_version == 1


def test_spark_refuses_to_write_around_the_tenant_log(typed, delta_session):
    """The guard is a writer feature that Delta does not know, so it must refuse."""
    table = f"delta.`{typed / 'Typed.snapshot'}`"
    for statement in (f"DELETE FROM {table} WHERE Id = '2'", f"INSERT INTO {table} (Id) VALUES ('9')"):
        with pytest.raises(Exception, match=r"DELTA_UNSUPPORTED_FEATURES_FOR_WRITE|freezeframe\.tenantLog"):
            delta_session.sql(statement).collect()

    assert len(list(_versions(typed, "Typed"))) == 4


def test_delta_rs_refuses_to_write_around_the_tenant_log(typed):
    """So does delta-rs."""
    with pytest.raises(DeltaError):
        write_deltalake(
            str(typed / "Typed.snapshot"), pa.table({"Id": ["9"]}), mode="append", schema_mode="merge"
        )

    assert len(list(_versions(typed, "Typed"))) == 4


def test_spark_writes_after_us_where_there_is_no_guard(tmp_path, spark_engine, delta_session):
    """Without the feature in its protocol the same table is anybody's, and we read what they wrote."""
    update_snapshot(tmp_path, "Open", "Id", pd.DataFrame({"Id": ["1", "2"], "v": [1, 2]}))
    update_snapshot(tmp_path, "Open", "Id", pd.DataFrame({"Id": ["2"], "v": [20]}))
    path = tmp_path / "Open.snapshot"
    _without_guard(path)

    delta_session.sql(f"INSERT INTO delta.`{path}` VALUES ('3', 30)").collect()
    delta_session.sql(f"DELETE FROM delta.`{path}` WHERE Id = '1'").collect()
    delta_session.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT '2' Id, 21L v) s ON t.Id = s.Id "
        "WHEN MATCHED THEN UPDATE SET *"
    ).collect()

    snapshot = DeltaLog(tenant_storage(tmp_path), "Open.snapshot").update()
    assert snapshot.version == 4
    assert _rows(snapshot.to_arrow()) == [{"Id": "2", "v": 21}, {"Id": "3", "v": 30}]


def tenant_storage(directory):
    """The storage of a tenant's directory."""
    from freezeframe.storage import LocalStorage

    return LocalStorage(directory)


def _without_guard(path):
    for file in sorted((path / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.get("commitInfo", {}).pop("contentSha256", None)
            if "protocol" in line:
                line["protocol"]["writerFeatures"].remove(TENANT_LOG_FEATURE)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))


NAN = pa.table({"id": [1, 2, 3, 4], "f": [0.1, math.nan, 0.1, None]})
NAN = NAN.append_column("s", pa.array([{"f": value} for value in NAN["f"].to_pylist()]))
CONDITIONS = [
    "{} > 1",
    "{} >= 0.2",
    "{} = double('NaN')",
    "{} <> 0.1",
    "NOT ({} < 1)",
    "{} IN (double('NaN'), 7)",
]


def test_spark_finds_the_rows_with_nan(tmp_path, spark_engine, delta_session):
    """In a stream and in an exported file, by any condition, in nested columns as well."""
    update_snapshot(tmp_path, "S", "id", NAN)
    file = export_stream(open_tenant(tmp_path).stream("S"), tmp_path / "out", "parquet")
    plain = delta_session.createDataFrame(NAN)
    frames = {
        "stream": delta_session.read.format("delta").load(str(tmp_path / "S.snapshot")),
        "export": delta_session.read.parquet(file.as_uri()),
    }

    conditions = [condition.format(column) for condition in CONDITIONS for column in ("f", "s.f")]

    def found(frame):
        parts = [frame.where(item).selectExpr(f"{n} AS n", "id") for n, item in enumerate(conditions)]
        told = [(row.n, row.id) for row in functools.reduce(lambda one, two: one.union(two), parts).collect()]
        return [sorted(id_ for n, id_ in told if n == number) for number in range(len(conditions))]

    expected = found(plain)
    assert [2] == expected[0]
    assert {name: found(frame) for name, frame in frames.items()} == dict.fromkeys(frames, expected)
