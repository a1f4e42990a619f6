"""`merge_id_from_snapshot`: a target's ids beside the records that it knows."""

import pandas as pd
import pytest

import freezeframe.gluestick as gs
from freezeframe.errors import InvalidOption, MissingColumn


@pytest.fixture
def snapshots(tmp_path):
    """A directory in which a target has left an id map."""
    text = "InputId,RemoteId\n007,r7\n8,old\n8,r8\n,lost\n9,\n"
    (tmp_path / "contacts_F1.snapshot.csv").write_text(text)
    return tmp_path


def test_known_records_get_their_remote_id(snapshots):
    """The last entry counts, zeros count, and what is unknown is None; rows keep order and index."""
    frame = pd.DataFrame({"externalId": ["8", "007", "7", "9", None], "n": range(5)}, index=list("abcde"))

    merged = gs.merge_id_from_snapshot(frame, snapshots, "contacts", "F1", "Id")

    assert list(merged.columns) == ["externalId", "n", "Id"]
    assert list(merged["Id"]) == ["r8", "r7", None, None, None]
    assert list(merged.index) == list("abcde")
    assert list(frame.columns) == ["externalId", "n"]


def test_ids_of_different_types_are_the_same_id(tmp_path):
    """A number in the map and text in the rows, and the other way round; whole floats are integers."""
    (tmp_path / "contacts_F1.snapshot.csv").write_text("InputId,RemoteId\n7,70\n8,80\n")

    for ids in (["7", "9"], [7, 9], [7.0, None]):
        frame = pd.DataFrame({"externalId": ids})
        assert list(gs.merge_id_from_snapshot(frame, tmp_path, "contacts", "F1", "Id")["Id"]) == [70, None]


def test_an_id_that_is_there_already_stays_where_the_map_has_none(snapshots):
    """One column, not two of one name."""
    frame = pd.DataFrame({"externalId": ["8", "x"], "Id": ["before", "mine"], "RemoteId": ["a", "b"]})

    merged = gs.merge_id_from_snapshot(frame, snapshots, "contacts", "F1", "Id")

    assert list(merged.columns) == ["externalId", "Id", "RemoteId"]
    assert list(merged["Id"]) == ["r8", "mine"]
    assert list(merged["RemoteId"]) == ["a", "b"]


def test_without_an_id_map_the_rows_come_back(tmp_path):
    """There is nothing to merge yet."""
    frame = pd.DataFrame({"externalId": ["8"]})

    assert frame is gs.merge_id_from_snapshot(frame, tmp_path, "contacts", "F1", "Id")


def test_what_is_missing_is_named(snapshots):
    """The key, the rows' externalId, and the columns of the map."""
    (snapshots / "deals_F1.snapshot.csv").write_text("InputId,Remote\n1,2\n")

    with pytest.raises(InvalidOption):
        gs.merge_id_from_snapshot(pd.DataFrame({"externalId": ["8"]}), snapshots, "contacts", "F1", "")
    with pytest.raises(MissingColumn, match="externalId"):
        gs.merge_id_from_snapshot(pd.DataFrame({"id": ["8"]}), snapshots, "contacts", "F1", "Id")
    with pytest.raises(MissingColumn, match="RemoteId"):
        gs.merge_id_from_snapshot(pd.DataFrame({"externalId": ["8"]}), snapshots, "deals", "F1", "Id")


def test_a_target_rewrites_its_map_at_every_job(snapshots):
    """The file is read as it is now, and reading commits nothing."""
    frame = pd.DataFrame({"externalId": ["8"]})
    gs.merge_id_from_snapshot(frame, snapshots, "contacts", "F1", "Id")
    (snapshots / "contacts_F1.snapshot.csv").write_text("InputId,RemoteId\n8,r88\n")

    assert list(gs.merge_id_from_snapshot(frame, snapshots, "contacts", "F1", "Id")["Id"]) == ["r88"]
    assert [path.name for path in snapshots.iterdir()] == ["contacts_F1.snapshot.csv"]
