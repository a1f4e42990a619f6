"""`update_snapshot` and `get_snapshot`: every parameter of the seed, and what must never happen."""

from datetime import date, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from freezeframe.errors import (
    InvalidName,
    InvalidOption,
    MissingColumn,
    OutsideWindow,
    SchemaDriftError,
)
from freezeframe.script import get_snapshot, open_tenant, update_snapshot
from freezeframe.store.table import reader

ROWS = pd.DataFrame({"Id": ["007", "1"], "v": ["a", "b"], "w": [1, 2]})
REPORT = pd.DataFrame(
    {"Date": ["2026-09-30", "2026-10-01", "2026-10-01"], "Account#": ["1", "2", "2"], "A/R": [1, 2, 2]}
)
WINDOW = "Date >= '2026-10-01'"


@pytest.fixture
def snapshots(tmp_path):
    """A directory with one stream, `Account`."""
    update_snapshot(tmp_path, "Account", ["Id"], ROWS)
    return tmp_path


def _files(directory):
    return sorted(str(path) for path in directory.rglob("*"))


def test_a_missing_stream_is_none(tmp_path):
    """As in the seed; and asking makes nothing."""
    assert get_snapshot(tmp_path / "none", "Account") is None
    assert not (tmp_path / "none").exists()


def test_new_known_and_unchanged_rows_are_counted(snapshots):
    """The receipt says which rows were new, updated and unchanged."""
    frame = pd.DataFrame({"Id": ["007", "1", "2"], "v": ["a", "B", "c"], "w": [1, None, None]})
    receipt = open_tenant(snapshots).stream("Account").update(frame, key="Id")
    assert (receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted) == (1, 1, 1, 0)
    assert (receipt.version, receipt.committed) == (1, True)
    assert list(get_snapshot(snapshots, "Account").sort_values("Id")["v"]) == ["a", "B", "c"]


def test_a_batch_that_changes_nothing_makes_no_version(snapshots):
    """Neither a data file nor a commit; the receipt counts the unchanged rows."""
    before = _files(snapshots)
    receipt = open_tenant(snapshots).stream("Account").update(ROWS, key="Id")
    assert (receipt.updated, receipt.unchanged, receipt.committed, receipt.version) == (0, 2, False, 0)
    assert before == _files(snapshots)


def test_a_column_to_sort_by_must_be_somewhere(snapshots):
    """In the rows or in the stream; a name that is nowhere is refused before anything is written."""
    rows = pd.DataFrame({"Id": ["007"], "New": [1]})
    before = open_tenant(snapshots).version
    with pytest.raises(MissingColumn, match="There is no column 'Nope' to sort by"):
        update_snapshot(snapshots, "Account", "Id", rows, sort_columns=["New", "Nope"])
    assert before == open_tenant(snapshots).version
    assert len(update_snapshot(snapshots, "Account", "Id", rows, sort_columns=["New", "v"])) == 2


def test_persist_false_writes_nothing(snapshots):
    """The merge is returned; no commit, no file is left."""
    before = _files(snapshots)
    merged = update_snapshot(
        snapshots, "Account", "Id", pd.DataFrame({"Id": ["9"], "v": ["z"]}), persist=False
    )
    assert list(merged["Id"]) == ["007", "1", "9"]
    assert before == _files(snapshots)
    assert len(get_snapshot(snapshots, "Account")) == 2


def test_persist_false_on_a_new_stream_leaves_no_folder(tmp_path):
    """Nothing of a stream that was only tried remains."""
    merged = update_snapshot(tmp_path / "s", "Account", "Id", ROWS, persist=False)
    assert len(merged) == 2
    assert get_snapshot(tmp_path / "s", "Account") is None


def test_override_replaces_everything(snapshots):
    """Rows, columns and types are the batch's; the counts compare by key."""
    frame = pd.DataFrame({"Id": ["1", "2"], "w": ["text now", "new"]})
    after = update_snapshot(snapshots, "Account", "Id", frame, override=True)
    assert list(after.columns) == ["Id", "w"]
    assert list(after["Id"]) == ["1", "2"]
    assert len(get_snapshot(snapshots, "Account", version=0)) == 2


def test_dropped_columns_leave_result_and_table(snapshots):
    """Unknown names are ignored; a key cannot be dropped; what was dropped does not come back."""
    after = update_snapshot(snapshots, "Account", "Id", ROWS.head(1), drop_column=["w", "nobody"])
    assert list(after.columns) == ["Id", "v"]
    assert list(get_snapshot(snapshots, "Account").columns) == ["Id", "v"]
    again = update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["5"], "w": [5]}))
    assert [w for w in again["w"] if not pd.isna(w)] == [5]
    with pytest.raises(InvalidOption):
        update_snapshot(snapshots, "Account", "Id", ROWS, drop_column="Id")


EVERY_KIND = pa.table(
    {
        "Id": [1, 2],
        "whole": pa.array([7, None]),
        "long": pa.array([2**53 + 1, None]),
        "small": pa.array([7, None], pa.int8()),
        "double": pa.array([7.0, None]),
        "single": pa.array([0.1, None], pa.float32()),
        "flag": pa.array([True, None]),
        "text": pa.array(["", None]),
        "amount": pa.array([Decimal("1.10"), None], pa.decimal128(12, 2)),
        "day": pa.array([date(2026, 3, 1), None]),
        "instant": pa.array([0, None], pa.timestamp("us", "UTC")),
        "local": pa.array([0, None], pa.timestamp("us")),
        "bytes": pa.array([b"x", None]),
        "list": pa.array([[1, None], None]),
        "times": pa.array([[0], None], pa.list_(pa.timestamp("us", "UTC"))),
        "struct": pa.array([{"a": 1, "b": None}, None], pa.struct([("a", pa.int64()), ("b", pa.bool_())])),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "empty": pa.nulls(2),
    }
)


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_a_frame_that_is_read_and_given_back_changes_nothing(tmp_path, backend):
    """What pandas shows in other types than are stored takes the stored ones again, in each of its types."""
    update_snapshot(tmp_path, "A", "Id", EVERY_KIND)
    frame = get_snapshot(tmp_path, "A", dtype_backend=backend)
    before = get_snapshot(tmp_path, "A", as_="arrow").schema
    receipt = open_tenant(tmp_path).stream("A").update(frame, "Id", schema="frozen")
    assert (0, 2, False) == (receipt.updated, receipt.unchanged, receipt.committed)
    assert before == get_snapshot(tmp_path, "A", as_="arrow").schema


@pytest.mark.spark
def test_dates_as_text_and_decimals_take_the_stored_types(tmp_path, spark_engine, spark_session):
    """A script that formats a stored date, or computes with decimals, gives them back; others are refused."""
    update_snapshot(tmp_path, "A", "Id", EVERY_KIND.select(["Id", "day", "double"]))
    given = pd.DataFrame({"Id": [3], "day": ["2026-04-01"], "double": [Decimal("0.10")]})

    update_snapshot(tmp_path, "A", "Id", given)
    update_snapshot(
        tmp_path, "A", "Id", spark_session.createDataFrame([(4, "2026-05-01")], "Id long, day string")
    )

    kept = get_snapshot(tmp_path, "A")
    assert [date(2026, 4, 1), date(2026, 5, 1)] == kept["day"].tolist()[2:]
    assert kept["double"][2] == 0.1
    for wrong in ("1.4.2026", "2026-02-30"):
        with pytest.raises(SchemaDriftError, match="day"):
            update_snapshot(tmp_path, "A", "Id", given.assign(day=wrong))


def test_the_types_of_pandas_frames_are_chosen_at_every_verb(tmp_path, monkeypatch):
    """By ``dtype_backend``, or for a process by the setting; other frames have none."""
    frame = pd.DataFrame({"Id": [1], "n": [7]})

    def types(place, **options):
        stream = open_tenant(tmp_path / place).stream("A")
        found = [
            update_snapshot(tmp_path / place, "A", "Id", frame, **options),
            update_snapshot(tmp_path / place, "A", "Id", frame, persist=False, **options),
            get_snapshot(tmp_path / place, "A", **options),
            stream.read(**options),
            stream.changes(**options),
            stream.preview(frame.assign(n=8), "Id").changed_rows(**options),
        ]
        return {str(item["n"].dtype) for item in found}

    assert [{"int64"}, {"Int64"}] == [types("a"), types("a", dtype_backend="numpy_nullable")]
    monkeypatch.setenv("FREEZEFRAME_DTYPE_BACKEND", "pyarrow")
    assert [{"int64[pyarrow]"}, {"int64"}] == [types("b"), types("b", dtype_backend="numpy")]
    with pytest.raises(InvalidOption, match="dtype_backend"):
        get_snapshot(tmp_path / "a", "A", as_="arrow", dtype_backend="pyarrow")
    before = _files(tmp_path)
    with pytest.raises(InvalidOption, match="dtype_backend"):
        update_snapshot(tmp_path / "a", "A", "Id", frame.assign(n=9), dtype_backend="arrow")
    assert before == _files(tmp_path)


@pytest.mark.parametrize("name", ["../t2/x", "a/b", "", ".."])
def test_a_stream_cannot_lead_elsewhere(tmp_path, name):
    """A name with a path in it is refused by reader and writer."""
    with pytest.raises(InvalidName):
        get_snapshot(tmp_path, name)
    with pytest.raises(InvalidName):
        update_snapshot(tmp_path, name, "Id", ROWS)


@pytest.mark.spark
@pytest.mark.usefixtures("spark_engine")
def test_a_window_is_replaced_and_the_rest_kept(tmp_path):
    """A report without a key: equal rows are unchanged, the rest of the window is new or gone."""
    stream = open_tenant(tmp_path).stream("Ledger")
    stream.update(REPORT, override=True)
    fresh = pd.DataFrame({"Date": ["2026-10-01", "2026-10-02"], "Account#": ["2", "3"], "A/R": [2, 3]})
    receipt = stream.update(fresh, replace_where=WINDOW)
    assert (receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted) == (1, 0, 1, 1)
    assert sorted(stream.read()["Date"]) == ["2026-09-30", "2026-10-01", "2026-10-02"]
    assert len(stream.read(version=0)) == 3


@pytest.mark.spark
@pytest.mark.usefixtures("spark_engine")
@pytest.mark.parametrize(
    ("window", "error"),
    [("Date >= '2026-11-01'", OutsideWindow), ("Date >=", InvalidOption), ("Nope = 1", InvalidOption)],
)
def test_a_bad_window_writes_nothing(tmp_path, window, error):
    """Rows outside their window, and predicates that are none, are refused."""
    update_snapshot(tmp_path, "Ledger", None, REPORT, override=True)
    before = _files(tmp_path)
    with pytest.raises(error):
        update_snapshot(tmp_path, "Ledger", None, REPORT, replace_where=window)
    assert before == _files(tmp_path)


@pytest.mark.spark
@pytest.mark.usefixtures("spark_engine")
def test_a_window_on_a_new_stream_makes_it(tmp_path):
    """The first sync of a report needs no other call."""
    after = update_snapshot(tmp_path, "Ledger", None, REPORT.iloc[1:], replace_where=WINDOW)
    assert len(after) == 2


@pytest.mark.spark
def test_spark_frames_come_and_go(snapshots, spark_session):
    """A Spark frame is merged where it is, and a lazy one comes back."""
    frame = spark_session.createDataFrame(pa.table({"Id": ["1", "3"], "v": ["B", "c"]}))
    after = update_snapshot(snapshots, "Account", "Id", frame)
    assert [(row["Id"], row["v"]) for row in after.collect()] == [("007", "a"), ("1", "B"), ("3", "c")]
    assert get_snapshot(snapshots, "Account", as_="spark").count() == 3


@pytest.mark.spark
def test_only_a_large_result_is_sorted_by_ranges(snapshots, spark_session, monkeypatch):
    """Few bytes are sorted in one task, without a shuffle; the rows and their order are the same."""
    frame = spark_session.createDataFrame(pa.table({"Id": ["1", "3"], "v": ["B", "c"]}))
    small = update_snapshot(snapshots, "Account", "Id", frame)
    monkeypatch.setattr(reader, "SMALL_BYTES", 1)
    large = update_snapshot(snapshots, "Account", "Id", frame)
    assert "Exchange" not in small._explain_string()
    assert "Exchange rangepartitioning" in large._explain_string()
    assert small.collect() == large.collect()


@pytest.mark.spark
def test_a_preview_of_a_spark_frame_keeps_types_and_clocks(tmp_path, spark_session):
    """A time without a zone stays one, and what it says, whatever zone the session is in."""
    noon = datetime.fromisoformat("2026-01-01T12:00")
    stored = pa.table({"Id": ["1"], "at": pa.array([noon], pa.timestamp("us"))})
    update_snapshot(tmp_path, "Account", "Id", stored)
    name = "spark.sql.session.timeZone"
    before = spark_session.conf.get(name)
    spark_session.conf.set(name, "America/New_York")
    try:
        frame = spark_session.sql("select '2' Id, timestamp_ntz'2026-01-01 12:00:00' at")
        after = update_snapshot(tmp_path, "Account", "Id", frame, persist=False)
        assert after.dtypes == [("Id", "string"), ("at", "timestamp_ntz")]
        assert [("1", noon), ("2", noon)] == [tuple(row) for row in after.collect()]
    finally:
        spark_session.conf.set(name, before)
    assert len(get_snapshot(tmp_path, "Account")) == 1


@pytest.mark.spark
def test_a_preview_of_a_spark_frame_reads_what_it_would_write(tmp_path, spark_session, monkeypatch):
    """Rows of the caller's session: stored ones are read by Spark when they are asked for, and in order."""
    monkeypatch.setenv("FREEZEFRAME_VECTORS_FROM_BYTES", "0")
    stored = pa.table({"Id": pa.array(range(20_000)), "v": ["stored"] * 20_000})
    update_snapshot(tmp_path, "Account", "Id", stored)
    frame = spark_session.createDataFrame(pa.table({"Id": [7, -1], "v": ["new"] * 2}))
    taken = []
    make = spark_session.createDataFrame
    monkeypatch.setattr(
        spark_session, "createDataFrame", lambda rows, **how: taken.append(rows) or make(rows, **how)
    )
    after = update_snapshot(tmp_path, "Account", "Id", frame, persist=False)
    assert [len(rows) for rows in taken if isinstance(rows, pa.Table) and "v" in rows.column_names] == [2]
    assert after.sparkSession is spark_session
    assert [tuple(row) for row in after.limit(2).collect()] == [(-1, "new"), (0, "stored")]
    assert (after.count(), after.where("v = 'new'").count()) == (20_001, 2)
    assert get_snapshot(tmp_path, "Account", as_="spark").where("v = 'stored'").count() == 20_000


def test_projection_and_predicate(snapshots):
    """Columns and rows can be chosen while reading."""
    found = get_snapshot(snapshots, "Account", columns=["w"], where=[("Id", "=", "007")])
    assert found.to_numpy().tolist() == [[1]]


def test_a_frozen_stream_and_drift_as_text(snapshots):
    """The caller decides what may happen to columns; text keeps what did not fit, on both sides."""
    with pytest.raises(SchemaDriftError, match="'extra' is new"):
        update_snapshot(
            snapshots, "Account", "Id", pd.DataFrame({"Id": ["1"], "extra": [1]}), schema="frozen"
        )
    after = update_snapshot(
        snapshots, "Account", "Id", pd.DataFrame({"Id": ["1"], "w": ["N/A"]}), on_drift="string"
    )
    assert dict(zip(after["Id"], after["w"], strict=True)) == {"007": "1", "1": "N/A"}
