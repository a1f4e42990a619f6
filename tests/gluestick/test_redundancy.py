"""``drop_redundant``, ``get_row_hash`` and ``merge_id_from_snapshot``, without gluestick's accidents."""

import hashlib

import numpy as np
import pandas as pd
import pytest

import freezeframe.gluestick as gs
from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.script import get_snapshot, open_tenant

ROWS = pd.DataFrame({"id": [1, 2], "v": ["a", "b"]}, index=[10, 20])


def test_a_first_run_keeps_every_row(tmp_path):
    """All is new; rows, index and types are those given, and the state needs no Spark."""
    fresh = gs.drop_redundant(ROWS, "Deals", tmp_path, pk=["id"])
    pd.testing.assert_frame_equal(ROWS, fresh)
    assert open_tenant(tmp_path).streams() == ("Deals.hash",)
    assert list(get_snapshot(tmp_path, "Deals.hash").columns) == ["id", "hash"]


def test_an_empty_first_run_leaves_no_state(tmp_path):
    """There is nothing to remember yet, and the columns are there."""
    fresh = gs.drop_redundant(ROWS.head(0), "Deals", tmp_path, pk="id", updated_flag=True)
    assert list(fresh.columns) == ["id", "v", "_updated"]
    assert open_tenant(tmp_path).streams() == ()


def test_only_new_and_changed_rows_are_kept(tmp_path):
    """Each later run is compared with all earlier ones; the flag tells changed from new."""
    gs.drop_redundant(ROWS, "Deals", tmp_path, pk=["id"])
    later = pd.DataFrame({"id": [1, 2, 3], "v": ["a", "B", "c"]})
    fresh = gs.drop_redundant(later, "Deals", tmp_path, pk=["id"], updated_flag=True)
    again = gs.drop_redundant(later, "Deals", tmp_path, pk=["id"], updated_flag=True)
    assert fresh.to_numpy().tolist() == [[2, "B", True], [3, "c", False]]
    assert list(fresh.index) == [1, 2]
    assert str(fresh["_updated"].dtype) == "bool"
    assert again.to_numpy().tolist() == []


def test_hashes_have_separators_and_names(tmp_path):
    """Bug 5: 1 and 23 are not 12 and 3, nor is a value that moved to another column the same."""
    assert gs.get_row_hash({"a": 1, "b": 23}, ["a", "b"]) != gs.get_row_hash({"a": 12, "b": 3}, ["a", "b"])
    assert gs.get_row_hash({"a": "x", "b": None}, ["a", "b"]) != gs.get_row_hash(
        {"a": None, "b": "x"}, ["a", "b"]
    )


def test_no_key_is_needed_and_text_is_a_key(tmp_path):
    """Bug 6: the default key works in the second run, and so does one name."""
    gs.drop_redundant(ROWS, "A", tmp_path)
    gs.drop_redundant(ROWS, "B", tmp_path, pk="id")
    later = pd.concat([ROWS, pd.DataFrame({"id": [1], "v": ["new"]})])
    assert list(gs.drop_redundant(later, "A", tmp_path)["v"]) == ["new"]
    assert list(gs.drop_redundant(later, "B", tmp_path, pk="id")["v"]) == ["new"]


def test_the_last_duplicate_counts(tmp_path):
    """Bug 7: of rows that share a key the last to come is kept, as everywhere."""
    twice = pd.DataFrame({"id": [1, 1], "v": ["old", "new"]})
    assert list(gs.drop_redundant(twice, "Deals", tmp_path, pk="id")["v"]) == ["new"]


def test_a_null_in_an_integer_column_changes_no_other_row(tmp_path):
    """Bug 8: 5 as an integer and 5.0 as a float are one value; a list or array is no error."""
    first = pd.DataFrame({"id": [1, 2], "n": [5, 6], "tags": [[1, 2], np.array([3])]})
    gs.drop_redundant(first, "Deals", tmp_path, pk="id")
    later = pd.DataFrame({"id": [1.0, 2.0, 3.0], "n": [5, None, 7], "tags": [[1, 2], [3], None], "new": None})
    assert list(gs.drop_redundant(later, "Deals", tmp_path, pk="id")["id"]) == [2, 3]


def test_the_updated_flag_is_there_from_the_first_run(tmp_path):
    """Bug 9: nothing was known before."""
    fresh = gs.drop_redundant(ROWS, "Deals", tmp_path, pk=["id"], updated_flag=True)
    assert list(fresh["_updated"]) == [False, False]


def test_a_column_called_hash_is_the_callers(tmp_path):
    """gluestick would drop it; it is a value like any other, but cannot be a key."""
    frame = pd.DataFrame({"id": [1], "hash": ["mine"]})
    assert list(gs.drop_redundant(frame, "Deals", tmp_path, pk="id").columns) == ["id", "hash"]
    with pytest.raises(InvalidOption):
        gs.drop_redundant(frame, "Deals", tmp_path, pk="hash")


def test_a_key_that_is_not_there_is_named(tmp_path):
    """Before anything is kept."""
    with pytest.raises(MissingColumn, match="'ID'"):
        gs.drop_redundant(ROWS, "Deals", tmp_path, pk="ID")
    assert open_tenant(tmp_path).streams() == ()


@pytest.mark.parametrize("extension", ["csv", "parquet"])
@pytest.mark.parametrize("key", [["id"], []])
def test_gluesticks_own_state_is_gone_on_with(tmp_path, extension, key):
    """Rows whose MD5 by gluestick's rule is in its file are not sent again after the change."""
    frame = pd.DataFrame({"id": ["01", "02", "03"], "n": [1, 2, 3]})
    texts = [f"{one}{number}" for one, number in zip(frame["id"], frame["n"], strict=True)]
    state = frame[key].assign(hash=[hashlib.md5(text.encode()).hexdigest() for text in texts]).head(2)
    if extension == "csv":
        state.to_csv(tmp_path / "Deals.hash.snapshot.csv", index=False)
    else:
        state.to_parquet(tmp_path / "Deals.hash.snapshot.parquet", index=False)
    assert list(gs.drop_redundant(frame, "Deals", tmp_path, pk=key)["id"]) == ["03"]
    assert list(gs.drop_redundant(frame, "Deals", tmp_path, pk=key)["id"]) == []
    frame["n"] = [1, 20, 3]
    assert list(gs.drop_redundant(frame, "Deals", tmp_path, pk=key)["id"]) == ["02"]


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
    with pytest.raises(InvalidOption, match=r"No PK found for 'contacts'\. Cannot merge\."):
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
