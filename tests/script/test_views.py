"""The streams of a tenant as views of SQL."""

import pandas as pd
import pytest

from freezeframe import spark, update_snapshot
from freezeframe.errors import InvalidOption, StreamNotFound, VersionNotFound
from freezeframe.script import snapshot_views

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_engine")]


@pytest.fixture
def snapshots(tmp_path):
    """A tenant with a stream of two versions, and one of a name that is not an identifier."""
    for number in (1, 2):
        update_snapshot(tmp_path, "Account", "Id", pd.DataFrame({"Id": ["1"], "v": [number]}))
    update_snapshot(tmp_path, "Order lines@qbo", "Id", pd.DataFrame({"Id": ["7"], "v": [7]}))
    return tmp_path


def value(view):
    """The only value of the column ``v``."""
    [row] = spark().sql(f"select v from {view}").collect()
    return row[0]


def test_each_stream_is_a_view_at_any_version(snapshots):
    """The name is the stream's after the prefix, quoted where SQL needs it; views stay at their version."""
    now = snapshot_views(snapshots)
    assert now == {"Account": "Account", "Order lines@qbo": "`Order lines@qbo`"}
    past = snapshot_views(snapshots, version=0, prefix="old_")
    assert past == {"Account": "old_Account"}
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["1"], "v": [3]}))
    assert [value(view) for view in (*now.values(), *past.values())] == [2, 7, 1]
    assert snapshot_views(snapshots, streams=["Account"]) == {"Account": "Account"}
    assert (value("Account"), spark().table(now["Account"]).first()["v"]) == (3, 3)


def test_words_of_sql_and_other_names_are_views_as_well(tmp_path):
    """The returned name is good in a statement, whatever the stream's name is."""
    names = ["Order", "Group", "2024", "Left", "User", "Select", "Über", "a.b"]
    for number, name in enumerate(names):
        update_snapshot(tmp_path, name, "Id", pd.DataFrame({"Id": ["1"], "v": [number]}))
    views = snapshot_views(tmp_path)
    columns = ", ".join(f"(select v from {views[name]})" for name in names)
    assert list(spark().sql(f"select {columns}").first()) == list(range(len(names)))


def test_a_file_that_is_not_taken_over_yet_is_read(snapshots):
    """A stream whose snapshot file was written by somebody else meanwhile shows what the file says."""
    (snapshots / "Account.snapshot.csv").write_text("Id,v\n1,9\n")
    snapshot_views(snapshots)
    assert value("Account") == 9
    snapshot_views(snapshots, version=1)
    assert value("Account") == 2


def test_what_cannot_be_shown_replaces_no_view(snapshots, tmp_path):
    """An unknown stream or version, and two versions at once, are refused; no stream, no view."""
    snapshot_views(snapshots)
    with pytest.raises(StreamNotFound):
        snapshot_views(snapshots, version=0, streams=["Account", "Lead"])
    with pytest.raises(VersionNotFound):
        snapshot_views(snapshots, version=99)
    with pytest.raises(InvalidOption):
        snapshot_views(snapshots, version=0, as_of="2026-01-01")
    assert value("Account") == 2
    assert snapshot_views(tmp_path / "nobody") == {}


def test_columns_that_are_empty_so_far_are_there(tmp_path):
    """A query runs for a tenant without phone numbers, and the frame of an update has them."""
    rows = pd.DataFrame({"Id": ["1"], "phone": [None], "lines": [[]], "meta": [{}]})
    update_snapshot(tmp_path, "Lead", "Id", rows)
    snapshot_views(tmp_path)
    query = "select Id from Lead where phone is null and size(lines) = 0 and to_json(meta) = '{}'"
    assert [row.Id for row in spark().sql(query).collect()] == ["1"]

    for persist in (False, True):
        frame = spark().sql("select '2' Id, null phone, array() lines")
        after = update_snapshot(tmp_path, "Lead", "Id", frame, persist=persist)
        assert after.dtypes == [
            ("Id", "string"),
            ("phone", "string"),
            ("lines", "array<string>"),
            ("meta", "struct<>"),
        ]
        assert [row.asDict(recursive=True) for row in after.orderBy("Id").collect()] == [
            {"Id": "1", "phone": None, "lines": [], "meta": {}},
            {"Id": "2", "phone": None, "lines": [], "meta": None},
        ]
