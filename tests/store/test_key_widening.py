"""Keys that began as whole numbers and became text: the same rows, before and after, for every reader."""

import pandas as pd
import pyarrow as pa
import pytest
from tests import given
from tests.given import counts

from freezeframe.errors import SchemaDriftError
from freezeframe.identifiers import StreamName
from freezeframe.script.tenants import shared_engine
from freezeframe.storage import LocalStorage
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.maintenance.restore import RowSelection, restore_rows
from freezeframe.store.schema.columns import VALID_TO

FIRST = pa.table({"Id": [1, 2, 3], "v": ["a", "b", "c"]})
SECOND = pa.table({"Id": ["2", "X9"], "v": ["B", "x"]})


@pytest.fixture
def tenant(tmp_path):
    """A tenant of its own."""
    return given.tenant(LocalStorage(tmp_path), shared_engine())


@pytest.fixture
def stream(tenant):
    """A stream whose key became text with its second version."""
    account = tenant.stream("Account")
    account.update(FIRST, key="Id")
    account.update(SECOND)
    return account


def content(stream, **options):
    return dict(
        zip(*(stream.read(as_="arrow", **options)[name].to_pylist() for name in ("Id", "v")), strict=True)
    )


def test_a_later_key_that_is_no_number_makes_the_key_text(tenant):
    """In the same commit; stored keys are the text that the numbers print as, and rows keep their fate."""
    stream = tenant.stream("Account")
    stream.update(FIRST, key="Id")
    receipt = stream.update(SECOND)

    assert (counts(receipt), receipt.version) == ((1, 1, 0, 0), 1)
    assert tenant.history()[0].streams["Account"].to_json() == (
        {"inserted": 1, "updated": 1, "unchanged": 0, "deleted": 0}
    )
    assert content(stream) == {"1": "a", "2": "B", "3": "c", "X9": "x"}
    assert pa.string() == stream.schema.field("Id").type
    assert content(stream, version=0) == {1: "a", 2: "b", 3: "c"}
    assert sorted(
        (row["_change_type"], row["Id"]) for row in receipt.changed_rows(as_="arrow").to_pylist()
    ) == [("insert", "X9"), ("update", "2")]


@pytest.mark.spark
@pytest.mark.usefixtures("asked_spark")
@pytest.mark.parametrize("frame", ["arrow", "spark", "pieces"])
def test_a_later_sync_of_numbers_meets_the_same_keys(stream, spark_session, frame):
    """The stored type wins: numbers are taken as they print, whatever kind of frame brings them."""
    rows = pa.table({"Id": [3, 4], "v": ["C", "d"]})
    given = {
        "arrow": lambda: rows,
        "spark": lambda: spark_session.createDataFrame(rows.to_pandas()),
        "pieces": rows.to_reader,
    }
    receipt = stream.update(given[frame]())

    assert counts(receipt) == (1, 1, 0, 0)
    assert content(stream) == {"1": "a", "2": "B", "3": "C", "4": "d", "X9": "x"}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("ids", "is_taken"), [(["2", "X9"], True), (["2", "007"], False), (["2", "3"], False)]
)
def test_spark_frames_are_looked_at_for_it(tenant, spark_session, ids, is_taken):
    """The values of a landed frame decide as those in memory do."""
    stream = tenant.stream("Account")
    stream.update(FIRST, key="Id")
    frame = spark_session.createDataFrame([(id_, "n") for id_ in ids], "Id string, v string")

    if not is_taken:
        with pytest.raises(SchemaDriftError, match=r"'Account'.*'Id'"):
            stream.update(frame)
        assert stream.version == 0
        return
    assert counts(stream.update(frame)) == (1, 1, 0, 0)
    assert content(stream) == {"1": "a", "2": "n", "3": "c", "X9": "n"}


@pytest.mark.spark
def test_full_extracts_and_windows(tenant):
    """An absent number is deleted by its text; a window leaves the other rows, as text."""
    stream = tenant.stream("Account")
    stream.update(FIRST, key="Id")
    assert counts(
        stream.update(pa.table({"Id": ["1", "X9"], "v": ["a", "x"]}), mode="full", max_delete_ratio=1.0)
    ) == (1, 0, 1, 2)
    other = tenant.stream("Other")
    other.update(FIRST, key="Id")
    receipt = other.update(pa.table({"Id": ["2", "Y"], "v": ["b", "b"]}), replace_where="v = 'b'")
    assert (counts(receipt), content(other)) == ((1, 0, 1, 0), {"1": "a", "2": "b", "3": "c", "Y": "b"})


def test_a_history_goes_through(tenant):
    """Rows of the past are text as well, so that a key's past and present belong together."""
    stream = tenant.stream("Price")
    stream.update(FIRST, key="Id", history="scd2")
    stream.update(pa.table({"Id": [1], "v": ["A"]}))
    stream.update(SECOND)

    rows = stream.read(history=True, as_="arrow").to_pylist()
    found = sorted((row["Id"], row["v"], row[VALID_TO] is None) for row in rows)
    assert found == [
        ("1", "A", True),
        ("1", "a", False),
        ("2", "B", True),
        ("2", "b", False),
        ("3", "c", True),
        ("X9", "x", True),
    ]


def test_a_job_with_several_updates(tenant):
    """Numbers, text and numbers again in one job: one version, one key."""
    with tenant.job("j") as job:
        for rows in (FIRST, SECOND, pa.table({"Id": [3], "v": ["C"]})):
            job.stream("Account").update(rows, key="Id")

    assert content(tenant.stream("Account")) == {"1": "a", "2": "B", "3": "C", "X9": "x"}
    assert tenant.stream("Account").version == 0


def test_changes_across_it_are_of_the_same_rows(tenant, stream):
    """Forward and back, whole and in pages: nothing is deleted and inserted for its type alone."""
    changes = stream.changes(since=0, as_="arrow").to_pylist()
    assert sorted((row["_change_type"], row["Id"], row["_before"]) for row in changes) == [
        ("insert", "X9", None),
        ("update", "2", {"Id": 2, "v": "b"}),
    ]
    comparison = Comparison(stream.snapshot(version=0), stream.snapshot())
    assert (
        comparison.counts().inserted,
        comparison.counts().updated,
        comparison.counts().deleted,
    ) == (1, 1, 0)
    assert tenant.diff(0, 1).streams["Account"].counts.to_json() == (
        {"inserted": 1, "updated": 1, "unchanged": 0, "deleted": 0}
    )
    back = Comparison(stream.snapshot(), stream.snapshot(version=0)).page(10).changes.table.to_pylist()
    assert [(row["_change_type"], row["Id"], row["_before"]["Id"]) for row in back] == [
        ("update", "2", "2"),
        ("delete", "X9", "X9"),
    ]


def test_restoring_across_it(tenant, stream):
    """The whole stream comes back with its numbers, and widens again; single rows come back as text."""
    tenant.restore(0)
    assert content(stream) == {1: "a", 2: "b", 3: "c"}
    assert counts(stream.update(SECOND)) == (1, 1, 0, 0)

    keys = pa.table({"Id": ["2", "X9", "none"]})
    done = restore_rows(tenant.context, RowSelection(StreamName("Account"), 0, keys))
    found = done.changes.counts
    assert (found.inserted, found.updated, found.deleted) == (0, 1, 1)
    assert content(stream) == {"1": "a", "2": "b", "3": "c"}


@pytest.mark.parametrize("key", ["2", 2])
def test_erasing_across_it(tenant, stream, key):
    """By the text or the number; old versions, which held the number, are gone, and the scan is clean."""
    done = tenant.erase("Account", [key])

    assert (done.rows_erased, done.left.is_clean) == (1, True)
    assert content(stream) == {"1": "a", "3": "c", "X9": "x"}


def test_what_may_be_meant_as_a_number_is_refused(open_on, memory):
    """Or is a number and nothing else: nothing is written, and the remedy is harmless."""
    stream = open_on(memory, streams={"Account": FIRST}).stream("Account")

    for texts, named in ((["X9", "007"], ["'007'"]), (["1", "2"], ["'1'", "'2'"])):
        with pytest.raises(SchemaDriftError, match=r"'Account'.*'Id'") as caught:
            stream.update(pa.table({"Id": texts, "v": ["x", "y"]}))
        assert named == [row["value"] for row in caught.value.details["rows"]]
        assert caught.value.remedy.startswith("Cast the column to")
        assert "override" not in str(caught.value)
    assert stream.version == 0


def test_text_keys_take_no_numbers(open_on, memory):
    """7 may be stored as 007: only a key that was made of numbers takes them."""
    stream = open_on(memory, streams={"Account": {"Id": ["007", "8"], "v": ["a", "b"]}}).stream("Account")

    with pytest.raises(SchemaDriftError, match="007"):
        stream.update(pa.table({"Id": [7], "v": ["A"]}))
    assert counts(stream.update(pa.table({"Id": [8], "v": ["B"]}), on_drift="string"))[:2] == (0, 1)


def test_dates_widen_to_timestamps(tenant):
    """In values and in keys; a later date is the same key as its midnight."""
    stream = tenant.stream("Day")
    days = pd.to_datetime(["2026-10-01", "2026-10-02"])
    stream.update(pd.DataFrame({"Day": days.date, "seen": days.date}), key="Day")
    later = pd.to_datetime(["2026-10-02T00:00:00", "2026-10-02T12:00:00"])
    assert counts(stream.update(pd.DataFrame({"Day": later, "seen": later + pd.Timedelta("1h")}))) == (
        1,
        1,
        0,
        0,
    )
    assert counts(stream.update(pd.DataFrame({"Day": days.date[:1]}))) == (0, 0, 1, 0)

    assert (pa.timestamp("us"),) * 2 == tuple(stream.schema.types)
    assert list(stream.changes(since=0)["_change_type"]) == ["update", "insert"]


@pytest.mark.spark
@pytest.mark.parametrize("key", ["string", "double"])
def test_a_time_that_spark_wrote_has_one_text(tenant, spark_session, key):
    """Spark writes a frame with a floating-point key to files; its times read as those in memory do."""
    stream = tenant.stream("Call")
    kind = {"string": pa.string(), "double": pa.float64()}[key]
    stream.update(pa.table({"Id": pa.array([1], pa.int64()).cast(kind), "At": [""]}), key="Id")
    frame = spark_session.sql(f"SELECT CAST('2' AS {key}) AS Id, TIMESTAMP_NTZ'2026-01-01 00:00:00' AS At")
    stream.update(frame, on_drift="string")
    assert ["", "2026-01-01 00:00:00"] == stream.read(as_="arrow").sort_by("Id")["At"].to_pylist()
