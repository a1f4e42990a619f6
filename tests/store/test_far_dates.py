"""Dates and times beyond ``datetime`` at every door: read, changed, refused, restored, exported and shown."""

import json
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from tests import given
from tests.given import counts

from freezeframe.cli.main import main
from freezeframe.engine.frames.frames import to_pandas
from freezeframe.engine.frames.row_hashes import frame_hashes, table_hashes
from freezeframe.errors import DuplicateKeyError, SchemaDriftError
from freezeframe.gluestick import get_row_hash
from freezeframe.identifiers import StreamName
from freezeframe.script.inputs.transfer import export_stream
from freezeframe.service.exports import export
from freezeframe.service.rows.column_statistics import StatisticsCache, stream_statistics
from freezeframe.service.rows.differences import DifferenceRequest, row_difference
from freezeframe.service.rows.import_preview import ImportFile, import_preview
from freezeframe.service.rows.row_previews import RowsRequest, change_preview, preview
from freezeframe.service.rows.streams import Moment
from freezeframe.storage import LocalStorage
from freezeframe.store.maintenance.restore import RowSelection, restore_rows

FAR, BEFORE = 2_932_897, -800_000
TEXTS = ["+10000-01-01", "-0221-09-04"]


def rows(days, moments):
    return pa.table(
        {
            "Id": pa.array(days, pa.int32()).cast(pa.date32()),
            "d": pa.array(days[::-1], pa.int32()).cast(pa.date32()),
            "t": pa.array(moments, pa.timestamp("us", "UTC")),
            "l": pa.array([[day] for day in days], pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
        }
    )


@pytest.fixture
def tenant(tmp_path):
    """A stream whose key is far dates: one row changed, one new in its second version."""
    tenant = given.tenant(LocalStorage(tmp_path))
    stream = tenant.stream("Account")
    stream.update(rows([FAR, 0], [2**62, None]), key="Id")
    stream.update(rows([FAR, BEFORE], [-(2**62), 0]), key="Id")
    return tenant


@pytest.fixture
def stream(tenant):
    """That stream."""
    return tenant.stream("Account")


def test_frames_have_numpys_days(stream):
    """Pandas gets every row, in the order of the key, and gives it back unchanged."""
    frame = stream.read()

    assert [np.datetime64(item, "D") for item in (BEFORE, 0, FAR)] == frame["Id"].tolist()
    assert "10000-01-01" in str(frame)
    assert stream.update(frame.drop(columns="l")).unchanged == 3


def test_changes_and_differences_are_told(tenant, stream):
    """As frames, as a page of a preview and as differences of the tenant."""
    assert stream.changes(since=0)["_change_type"].tolist() == ["insert", "update"]

    page = change_preview(stream, 0, None)
    told = [json.loads(line) for line in page.json_rows()]
    assert [TEXTS[1], TEXTS[0]] == [row["Id"] for row in told]
    assert [TEXTS[0]] == told[1]["l"]

    found, _ = row_difference(tenant, "Account", 0, 1, DifferenceRequest())
    assert {"insert": TEXTS[1], "update": TEXTS[0]} == {row.fate: row.after["Id"] for row in found.rows}


def test_rows_are_shown(stream, capsys, tmp_path):
    """By the service, by the command as text and as JSON."""
    told = [json.loads(line) for line in preview(stream, Moment(), RowsRequest()).json_rows()]
    assert [TEXTS[1], "1970-01-01", TEXTS[0]] == [row["Id"] for row in told]

    for arguments in (["show", "Account"], ["changes", "Account", "--since", "0"], ["diff", "Account", "0"]):
        for form in ([], ["--json"]):
            assert main(["stream", *arguments, "--dir", str(tmp_path), *form]) == 0
            assert all(text in capsys.readouterr().out for text in TEXTS[:1])


def test_columns_are_told(tenant):
    """The ends of a column."""
    found = stream_statistics(tenant, "Account", Moment(), StatisticsCache())

    (days,) = (column for column in found.columns if column.name == "Id")
    assert (TEXTS[1], TEXTS[0]) == (days.low, days.high)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_exports_hold_the_texts(stream, tmp_path, kind):
    """A file of a stream, and what the service sends."""
    text = export_stream(stream, tmp_path / "out", kind).read_text()
    sent = b"".join(export(stream, kind, Moment())).decode()

    assert all(item in text and item in sent for item in TEXTS)


def test_errors_name_the_values(stream):
    """A drift, and keys that are there twice."""
    drifting = pa.table({"Id": pa.array([FAR], pa.int32()).cast(pa.date32()), "t": rows([FAR], [0])["d"]})
    with pytest.raises(SchemaDriftError, match="10000-01-01"):
        stream.update(drifting)
    with pytest.raises(DuplicateKeyError, match="10000-01-01"):
        stream.update(rows([FAR, FAR], [0, 0]), drop_duplicates=False)


def test_rows_are_restored(tenant):
    """One row by its key, which is a far date."""
    wanted = RowSelection(StreamName("Account"), 0, rows([FAR], [0]).select(["Id"]))

    assert len(restore_rows(tenant.context, wanted).changes) == 1

    moments = tenant.stream("Account").read(as_="arrow")["t"].cast(pa.int64()).to_pylist()
    assert moments == [0, None, 2**62]


def test_an_import_of_them_is_previewed(tenant, stream, tmp_path):
    """A Parquet file of far dates has counts and examples."""
    file = export_stream(stream, tmp_path / "out", "parquet")

    with file.open("rb") as content:
        found = import_preview(tenant, "Account", ImportFile("parquet", content), ["Id"], {})

    assert (found.counts.unchanged, found.problem) == (3, None)


def test_hashes_take_them():
    """A row of a far date has a hash, whatever holds it, and another one than its neighbour."""
    hashes = {get_row_hash({"d": np.datetime64(day, "D")}, ["d"]) for day in (FAR, FAR + 1, BEFORE)}

    assert len(hashes) == 3
    assert get_row_hash({"d": date(2026, 1, 1)}, ["d"]) == get_row_hash(
        {"d": np.datetime64("2026-01-01")}, ["d"]
    )


def test_dates_become_one_text(stream):
    """With ``on_drift="string"`` arriving dates are the text that stored ones would be."""
    other = pa.table({"Id": pa.array([FAR], pa.int32()).cast(pa.date32()), "text": ["a"]})
    stream.update(other)

    receipt = stream.update(
        pa.table({"Id": other["Id"], "text": rows([BEFORE], [0])["d"]}), on_drift="string"
    )

    assert receipt.updated == 1
    assert TEXTS[1] in stream.read(as_="arrow")["text"].to_pylist()


def test_times_become_one_text(stream):
    """That of a CSV file: far ones with a sign, instants with an offset, a fraction only if there is one."""
    other = pa.table({"Id": pa.array([FAR, 0], pa.int32()).cast(pa.date32()), "text": ["a", "b"]})
    stream.update(other)
    instants = pa.array([253_402_300_800_000_000, 1], pa.int64()).cast(pa.timestamp("us", "UTC"))

    stream.update(pa.table({"Id": other["Id"], "text": instants}), on_drift="string")

    told = {"+10000-01-01 00:00:00+00:00", "1970-01-01 00:00:00.000001+00:00"}
    assert told <= set(stream.read(as_="arrow")["text"].to_pylist())


@pytest.mark.parametrize("number", [2**62, -(2**62), 253_402_300_800_000_000, 1])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_hashes_of_times_are_those_of_pandas(number, zone):
    """Also of a near moment beside a far one: a row's hash does not depend on the other rows."""
    kind = pa.timestamp("us", zone)
    table = pa.table({"t": pa.array([number, 0, None], kind)})

    assert frame_hashes(to_pandas(table)) == table_hashes(table)
    assert table_hashes(table)[1:] == table_hashes(pa.table({"t": pa.array([0, None], kind)}))


@pytest.mark.parametrize("days_are_stored", [True, False])
def test_far_dates_beside_moments_are_counted(days_are_stored):
    """A stream replaced by one whose column has dates for moments or moments for dates."""
    moments = pa.table({"Id": ["1", "2"], "v": pa.array([0, 0], pa.timestamp("us"))})
    dates = pa.table({"Id": ["1", "2"], "v": pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())})
    before, after = (dates, moments) if days_are_stored else (moments, dates)
    stream = given.tenant().stream("Account")
    stream.update(before, key="Id")
    receipt = stream.update(after, key="Id", override=True)
    assert counts(receipt) == (0, 1, 1, 0)
    assert after["v"].type.equals(stream.read(as_="arrow")["v"].type)


@pytest.mark.spark
@pytest.mark.parametrize("row_count", [2, 60_000])
def test_a_frames_dates_that_no_moment_reaches_are_refused(tmp_path, spark_engine, spark_session, row_count):
    """A Spark frame, small or large, brings a far date for a column of moments."""
    stream = given.tenant(LocalStorage(tmp_path), spark_engine, engine="spark").stream("Account")
    stream.update(pa.table({"Id": ["1"], "v": pa.array([0], pa.timestamp("us"))}), key="Id")
    far = "date_from_unix_date(2147483647) v"
    frame = spark_session.range(row_count).selectExpr("cast(id as string) Id", far)
    with pytest.raises(SchemaDriftError):
        stream.update(frame, key="Id")
    assert stream.read(as_="arrow").num_rows == 1


@pytest.mark.parametrize("mode", ["upsert", "full"])
@pytest.mark.parametrize("column", ["Id", "v"])
def test_moments_do_not_widen_a_column_of_far_dates_in_this_process(tenant, column, mode):
    """A stored date that no moment reaches refuses the type, also one of the key."""
    stream = tenant.stream("Visit")
    far, moment = pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), pa.array([0], pa.timestamp("us"))
    stream.update(pa.table({"Id": far, "v": far}), key="Id")
    with pytest.raises(SchemaDriftError, match="stored value does not fit"):
        stream.update(pa.table({"Id": far, "v": far} | {column: moment}), mode=mode)
    assert pa.date32() == stream.read(as_="arrow")[column].type


@pytest.mark.spark
def test_moments_do_not_widen_a_column_of_far_dates(tmp_path, spark_engine):
    """A stored date that no moment reaches refuses the type, and the stream stays as it was."""
    stream = given.tenant(LocalStorage(tmp_path), spark_engine, engine="spark").stream("Account")
    stream.update(pa.table({"Id": ["1"], "v": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}), key="Id")
    with pytest.raises(SchemaDriftError):
        stream.update(pa.table({"Id": ["1"], "v": pa.array([0], pa.timestamp("us"))}), key="Id")
    assert pa.date32() == stream.read(as_="arrow")["v"].type
