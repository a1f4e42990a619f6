"""A row's history: each version that inserted, updated or deleted it, by the files that can hold it alone."""

from datetime import date

import pyarrow as pa
import pytest

from freezeframe.errors import BadInput, InvalidOption, StreamNotFound
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.arrow_engine import ArrowEngine


@pytest.fixture
def tenant(tmp_path):
    storage = LocalStorage(tmp_path)
    return Tenant(storage, ArrowEngine(storage), Settings())


@pytest.fixture
def stream(tenant):
    """Four leads: 007 is changed at version 2, deleted at 4, and there again since 5."""
    stream = tenant.stream("Lead")
    stream.update(leads("001", "007", "008", "a/b"), "Id")
    stream.update(leads("008", stage="won"), "Id")
    with tenant.job("job-2", who="sync", message="nightly") as job:
        job.stream("Lead").update(leads("007", stage="won"), "Id")
    tenant.files.write("notes.txt", b"nothing of the stream")
    rest = pa.concat_tables([leads("001", "a/b"), leads("008", stage="won")])
    stream.update(rest, "Id", override=True)
    stream.update(leads("007", stage="lost"), "Id")
    return stream


def leads(*ids, stage="new"):
    return pa.table({"Id": list(ids), "Stage": [stage] * len(ids), "Score": [1.5] * len(ids)})


def told(history):
    return [(one.version, one.change, one.changed) for one in history.versions]


def test_each_version_that_touched_the_row_is_given_with_its_values(stream):
    """The newest first, with who and which job; versions that left the row as it was are left out."""
    history = stream.row_history("007")
    assert told(history) == [
        (5, "insert", ()),
        (4, "delete", ()),
        (2, "update", ("Stage",)),
        (0, "insert", ()),
    ]
    update = history.versions[2]
    assert (update.before["Stage"], update.after["Stage"]) == ("new", "won")
    assert (update.entry.who, update.entry.job_id, update.entry.message) == ("sync", "job-2", "nightly")
    assert (history.versions[1].after, history.versions[1].before["Stage"]) == (None, "won")
    assert history.row == {"Id": "007", "Stage": "lost", "Score": 1.5}
    assert (history.is_whole, history.following) == (True, None)


def test_a_row_is_seen_from_a_version_and_in_steps(stream):
    """``until`` looks from an earlier version, ``limit`` tells where to go on."""
    assert told(stream.row_history("007", until=3)) == [(2, "update", ("Stage",)), (0, "insert", ())]
    first = stream.row_history("007", limit=3)
    rest = stream.row_history("007", until=first.following)
    assert told(stream.row_history("007")) == told(first) + told(rest)
    assert stream.row_history("007", until=4).row is None


@pytest.mark.parametrize(("key", "touched"), [("a/b", [0]), ("008", [1, 0]), ("7", []), ("", [])])
def test_keys_are_the_texts_that_they_are(stream, key, touched):
    """No key is another one that looks like it."""
    assert touched == [one.version for one in stream.row_history(key).versions]


def test_a_restoration_and_a_dropped_stream_are_versions_of_the_row(tenant, stream):
    """The kind says that a version was restored; a row goes with its stream and comes with a new one."""
    tenant.restore(1)
    stream.update(leads("100"), "Id", override=True)
    tenant.drop_stream("Lead")
    stream.update(leads("007", stage="back"), "Id")
    history = stream.row_history("007")
    assert [(one.version, one.change) for one in history.versions[:4]] == [
        (9, "insert"),
        (7, "delete"),
        (6, "update"),
        (5, "insert"),
    ]
    assert (history.versions[2].entry.kind, history.versions[2].entry.restored) == ("restore", 1)
    assert history.is_whole


def test_keys_of_several_columns_and_other_types(tenant):
    """By tuple or by name; a column that came between is told as a change of the rows that have a value."""
    stream = tenant.stream("Rate")
    days = [date(2026, 11, 1), date(2026, 11, 2)]
    stream.update(pa.table({"Day": days, "Ccy": ["EUR", "EUR"], "Rate": [1.0, 2.0]}), ["Day", "Ccy"])
    later = {"Day": days, "Ccy": ["EUR", "EUR"], "Rate": [1.5, 2.0], "Source": ["ledger", None]}
    stream.update(pa.table(later), ["Day", "Ccy"], override=True)
    history = stream.row_history((days[0], "EUR"))
    assert told(history) == [(1, "update", ("Rate", "Source")), (0, "insert", ())]
    assert {"Day": days[0], "Ccy": "EUR", "Rate": 1.0} == {**history.versions[0].before}
    assert history == stream.row_history({"Ccy": "EUR", "Day": days[0]})
    assert told(stream.row_history((days[1], "EUR"))) == [(0, "insert", ())]


@pytest.mark.spark
def test_a_stream_that_keeps_its_past_or_flags_deletions_has_one_row_a_key(tmp_path, spark_engine):
    """Of a history the row that held then counts; a flag is a deletion."""
    tenant = Tenant(LocalStorage(tmp_path), spark_engine, Settings())
    for options in ({"history": "scd2"}, {"deletes": "flag"}):
        stream = tenant.stream("-".join(options))
        stream.update(leads("1", "2"), "Id", mode="full", **options)
        stream.update(leads("1", stage="won"), "Id", mode="full")
        assert [one.change for one in stream.row_history("2").versions] == ["delete", "insert"]
        newest = stream.row_history("1").versions[0]
        assert (newest.change, newest.before["Stage"], newest.after["Stage"]) == ("update", "new", "won")


def test_another_key_or_forgotten_versions_end_what_is_known(tenant, stream):
    """The history then says that it is not whole."""
    tenant.set_retention(keep_versions=3)
    tenant.gc()
    history = stream.row_history("007")
    assert (told(history), history.is_whole) == ([(5, "insert", ()), (4, "delete", ())], False)
    stream.update(pa.table({"Other": ["007"], "Id": ["007"]}), "Other", override=True)
    history = stream.row_history("007")
    assert (told(history), history.is_whole) == ([], False)


def test_wrong_keys_and_streams_are_refused(tenant, stream):
    """Before anything is read of the rows."""
    for key in (7, ("007", "x"), {"Name": "007"}):
        with pytest.raises(BadInput):
            stream.row_history(key)
    with pytest.raises(StreamNotFound):
        tenant.stream("Deal").row_history("007")
    with pytest.raises(InvalidOption):
        stream.row_history("007", limit=0)
    tenant.stream("Log").update(pa.table({"Text": ["x"]}), override=True)
    with pytest.raises(InvalidOption):
        tenant.stream("Log").row_history("x")


def test_files_that_cannot_hold_the_key_are_not_read(tmp_path):
    """By their statistics: they may even be missing."""
    storage = LocalStorage(tmp_path)
    tenant = Tenant(storage, ArrowEngine(storage), Settings(vectors_from_bytes=0))
    stream = tenant.stream("Lead")
    stream.update(leads(*(f"{number:04d}" for number in range(5000))), "Id")
    before = set(tmp_path.rglob("*.parquet"))
    for step in range(3):
        stream.update(leads(*(f"{number:04d}" for number in range(6000, 6040)), stage=f"{step}"), "Id")
    newer = set(tmp_path.rglob("*.parquet")) - before
    for file in newer:
        file.unlink()
    assert newer
    assert told(stream.row_history("0007")) == [(0, "insert", ())]
