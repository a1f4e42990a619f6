"""Adopted snapshot files stay up to date for scripts that open them, and are never taken for news."""

import json
import logging

import pandas as pd
import pyarrow.parquet as pq
import pytest

from freezeframe.gluestick import snapshot_records
from freezeframe.script import get_snapshot, open_tenant, update_snapshot
from freezeframe.script.adoption import pending_adoption

CSV = "Name,Id,n\nAnn,007,1\nBo,8,\n"


@pytest.fixture
def snapshots(tmp_path):
    """A directory in which an update has adopted a CSV file."""
    (tmp_path / "Account.snapshot.csv").write_text(CSV)
    update_snapshot(tmp_path, "Account", "Id", pd.DataFrame({"Id": ["9"], "City": ["Bern"]}))
    return tmp_path


def _stream(directory):
    return open_tenant(directory).stream("Account")


def _record(directory):
    return json.loads((directory / "_freezeframe/exported/Account.json").read_text())


def test_the_file_has_the_new_content(snapshots):
    """Its columns stay in their order, new ones come last; whoever opens it with pandas gets the rows."""
    text = (snapshots / "Account.snapshot.csv").read_text()
    assert text == "Name,Id,n,City\nAnn,007,1,\nBo,8,,\n,9,,Bern\n"
    assert len(pd.read_csv(snapshots / "Account.snapshot.csv")) == 3


def test_our_own_copy_is_not_adopted(snapshots):
    """Reading gives the stream, and the next update does not take the file over again."""
    stream = _stream(snapshots)
    assert pending_adoption(snapshots, stream) is None
    before = stream.stream_version
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["9"], "City": ["Thun"]}))
    assert before + 1 == stream.stream_version
    assert "Thun" in (snapshots / "Account.snapshot.csv").read_text()


def test_a_batch_that_changes_nothing_leaves_the_file(snapshots):
    """As it leaves the stream."""
    before = (snapshots / "Account.snapshot.csv").stat().st_mtime_ns
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["9"], "City": ["Bern"]}))
    assert before == (snapshots / "Account.snapshot.csv").stat().st_mtime_ns


def test_a_file_that_was_removed_is_not_made_again(snapshots):
    """Who removes it has no use for it; the stream goes on."""
    (snapshots / "Account.snapshot.csv").unlink()
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["10"]}))
    assert not (snapshots / "Account.snapshot.csv").exists()
    assert len(get_snapshot(snapshots, "Account")) == 4


@pytest.mark.parametrize("landed", [True, False])
def test_a_crash_between_record_and_file_is_understood(snapshots, landed):
    """Whichever of the two contents is there, it is ours, and the next update brings it up to date."""
    record = _record(snapshots)
    held, other = record["held"], {"sha256": "0" * 64, "version": record["held"]["version"] - 1}
    crashed = {"held": other, "pending": held} if landed else {"held": held, "pending": other}
    (snapshots / "_freezeframe/exported/Account.json").write_text(json.dumps({**record, **crashed}))
    assert pending_adoption(snapshots, _stream(snapshots)) is None
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["10"]}))
    assert "10" in (snapshots / "Account.snapshot.csv").read_text()
    assert _record(snapshots)["pending"] is None


def test_a_file_that_cannot_be_written_is_a_warning(snapshots, caplog):
    """The update is committed; what was there stays, and the next update tries again."""
    before = (snapshots / "Account.snapshot.csv").read_bytes()
    lock = snapshots / "_freezeframe/exported/Account.lock"
    lock.unlink()
    lock.mkdir()
    with caplog.at_level(logging.WARNING):
        after = update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["10"]}))
    assert (4, before) == (len(after), (snapshots / "Account.snapshot.csv").read_bytes())
    assert "could not be written" in caplog.text


def test_the_setting_switches_it_off(tmp_path, monkeypatch):
    """`FREEZEFRAME_EXPORT_ADOPTED_FILES=false` leaves files as they were adopted."""
    monkeypatch.setenv("FREEZEFRAME_EXPORT_ADOPTED_FILES", "false")
    (tmp_path / "Account.snapshot.csv").write_text(CSV)
    update_snapshot(tmp_path, "Account", "Id", pd.DataFrame({"Id": ["10"]}))
    assert (tmp_path / "Account.snapshot.csv").read_text() == CSV
    assert len(get_snapshot(tmp_path, "Account")) == 3


def test_a_parquet_file_stays_one(tmp_path):
    """Its columns and their order, its compression; gluestick's functions write it again as well."""
    path = tmp_path / "Account.snapshot.parquet"
    frame = pd.DataFrame({"v": ["a"], "id": [1]})
    frame.to_parquet(path, compression="gzip", index=False)
    snapshot_records(pd.DataFrame({"id": [2], "v": ["b"]}), "Account", tmp_path)
    assert pd.read_parquet(path).to_dict("records") == [{"v": "a", "id": 1}, {"v": "b", "id": 2}]
    assert pq.read_metadata(path).row_group(0).column(0).compression == "GZIP"
    snapshot_records(pd.DataFrame({"id": [3], "v": ["c"]}), "Account", tmp_path, overwrite=True)
    assert pd.read_parquet(path).to_dict("records") == [{"v": "c", "id": 3}]
    assert pending_adoption(tmp_path, open_tenant(tmp_path).stream("Account")) is None


def test_a_history_survives_what_a_file_lost(snapshots):
    """A changed file is an extract to a stream with a history: its absent keys are closed."""
    stream = _stream(snapshots)
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["10"]}), history="scd2")
    path = snapshots / "Account.snapshot.csv"
    assert "_valid" not in path.read_text()
    path.write_text("Name,Id,n,City\n,10,,\n")
    update_snapshot(snapshots, "Account", "Id", pd.DataFrame({"Id": ["11"]}))
    assert sorted(stream.read()["Id"]) == ["10", "11"]
    assert stream.read(history=True)["_valid_to"].notna().sum() == 3
