"""A full extract: keys that it lacks are deletions, removed or flagged, and never more than they may be."""

import pandas as pd
import pyarrow as pa
import pytest
from tests.given import counts

from freezeframe.errors import BadInput, InvalidOption, TooManyDeletions
from freezeframe.script import get_snapshot, open_tenant, update_snapshot

ROWS = pd.DataFrame({"Id": ["1", "2", "3"], "v": ["a", "b", "c"], "w": [1, 2, 3]})


@pytest.fixture
def stream(tmp_path):
    """A stream of three rows."""
    account = open_tenant(tmp_path).stream("Account")
    account.update(ROWS, key="Id")
    return account


def _rows(frame):
    return frame.astype(object).where(frame.notna(), None).sort_values("Id").to_numpy().tolist()


def test_absent_keys_are_removed(stream):
    """The rest is an upsert: a null keeps the stored cell, and so does a column that is not there."""
    extract = pd.DataFrame({"Id": ["2", "3", "4"], "v": [None, "C", "d"]})

    receipt = stream.update(extract, mode="full")

    assert counts(receipt) == (1, 1, 1, 1)
    assert _rows(stream.read()) == [["2", "b", 2], ["3", "C", 3], ["4", "d", None]]
    kinds = receipt.changed_rows("arrow").select(["_change_type", "Id"]).to_pylist()
    assert [tuple(row.values()) for row in kinds] == [("delete", "1"), ("update", "3"), ("insert", "4")]


def test_whole_rows_are_taken_if_nulls_overwrite(stream):
    """`nulls="overwrite"` holds for an extract as for an upsert."""
    stream.update(pd.DataFrame({"Id": ["1", "2"], "v": [None, "B"]}), mode="full", nulls="overwrite")

    assert _rows(stream.read()) == [["1", None, 1], ["2", "B", 2]]


def test_a_row_keeps_the_key_that_it_has(tmp_path):
    """Zeros of both signs are one key: a row is told as changed where its cells changed, and only there."""
    stream = open_tenant(tmp_path).stream("Zero")
    stream.update(pa.table({"k": [-0.0, 1.0, 2.0], "v": ["a", "b", "c"]}), key="k")

    receipt = stream.update(pa.table({"k": [0.0, 1.0], "v": ["a", "B"]}), key="k", mode="full")

    assert counts(receipt) == (0, 1, 1, 1)
    told = receipt.changed_rows("arrow").select(["_change_type", "k"]).to_pylist()
    assert [tuple(row.values()) for row in told] == [("update", 1.0), ("delete", 2.0)]
    assert sorted(map(repr, stream.read(as_="arrow")["k"].to_pylist())) == ["-0.0", "1.0"]

    receipt = stream.update(pa.table({"k": [0.0, 1.0], "v": ["a", "B"]}), override=True)

    assert counts(receipt) == (0, 0, 2, 0)
    assert receipt.changed_rows("arrow").to_pylist() == []


def test_an_equal_extract_makes_no_version(stream):
    """Nothing is deleted, nothing is written."""
    receipt = stream.update(ROWS, mode="full")

    assert (counts(receipt), receipt.committed, stream.version) == ((0, 0, 3, 0), False, 0)
    assert len(receipt.changed_rows()) == 0


@pytest.mark.parametrize(
    ("extract", "deleted"),
    [(ROWS.head(1), 2), (ROWS.head(0), 3), (pd.DataFrame(), 3)],
    ids=["cut off", "empty", "no columns"],
)
def test_more_deletions_than_allowed_are_refused(stream, tmp_path, extract, deleted):
    """Two of three, or an empty batch: nothing is committed, no file is left; count and remedy are told."""
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(TooManyDeletions, match=f"delete {deleted} of 3 rows") as caught:
        stream.update(extract, mode="full")

    assert (deleted, 3) == (caught.value.details["deleted"], caught.value.details["stored"])
    assert "max_delete_ratio=" in caught.value.remedy
    assert before == sorted(tmp_path.rglob("*"))


def test_a_ratio_of_one_allows_everything(stream):
    """An empty extract, even one without columns, then empties the stream; its columns stay."""
    receipt = stream.update(pd.DataFrame(), mode="full", max_delete_ratio=1.0)

    assert counts(receipt) == (0, 0, 0, 3)
    assert (list(stream.read().columns), len(stream.read())) == (["Id", "v", "w"], 0)
    assert counts(stream.update(ROWS.head(0), mode="full")) == (0, 0, 0, 0)


def test_the_remedy_that_is_told_works(stream):
    """The ratio named in the error is enough."""
    with pytest.raises(TooManyDeletions) as caught:
        stream.update(ROWS.head(1), mode="full")
    ratio = float(caught.value.remedy.split("max_delete_ratio=")[1].split(";")[0])

    assert stream.update(ROWS.head(1), mode="full", max_delete_ratio=ratio).deleted == 2


def test_a_full_extract_begins_a_stream(tmp_path):
    """Nothing is stored, so nothing is deleted, flagged or not."""
    after = update_snapshot(tmp_path, "New", "Id", ROWS, mode="full", deletes="flag")

    assert list(after["_deleted"]) == [False] * 3
    nothing = open_tenant(tmp_path).stream("Other").update(pd.DataFrame(), key="Id", mode="full")
    assert (nothing.stream_version, len(nothing.changed_rows())) == (-1, 0)


def test_absent_keys_are_flagged(stream):
    """The row stays with `_deleted`; flagged once, it is not counted again; it comes back as an update."""
    first = stream.update(ROWS.tail(2), mode="full", deletes="flag")
    again = stream.update(ROWS.tail(2), mode="full")
    gone = stream.read().set_index("Id")["_deleted"].to_dict()
    back = stream.update(ROWS.head(1))
    after = stream.read().set_index("Id")["_deleted"].to_dict()

    assert counts(first) == (0, 0, 2, 1)
    assert (counts(again), again.committed) == ((0, 0, 2, 0), False)
    assert gone == {"1": True, "2": False, "3": False}
    assert counts(back) == (0, 1, 0, 0)
    assert after == {"1": False, "2": False, "3": False}
    assert list(first.changed_rows()["_change_type"]) == ["delete"]
    assert [(row["_change_type"], row["_before"]) for row in back.changed_rows("arrow").to_pylist()] == [
        ("update", {"Id": "1", "v": "a", "w": 1, "_deleted": True})
    ]


def test_flagged_rows_are_no_part_of_the_ratio(stream):
    """Of two rows left one may go; deleting it again from the flagged ones takes `deletes="remove"`."""
    stream.update(ROWS.tail(2), mode="full", deletes="flag")
    stream.update(ROWS.tail(1), mode="full")
    with pytest.raises(TooManyDeletions, match="delete 1 of 1 rows"):
        stream.update(ROWS.head(0), mode="full")

    receipt = stream.update(ROWS.tail(1), mode="full", deletes="remove")

    assert counts(receipt) == (0, 0, 1, 2)
    assert _rows(stream.read()) == [["3", "c", 3, False]]


def test_a_column_of_the_flags_name_is_refused(stream, tmp_path):
    """The rows', in any case; or one that the stream has from before."""
    other = open_tenant(tmp_path).stream("Other")
    other.update(ROWS.rename(columns={"w": "_deleted"}), key="Id")
    with pytest.raises(InvalidOption, match="'_deleted' already"):
        other.update(ROWS[["Id", "v"]], mode="full", deletes="flag")
    with pytest.raises(BadInput, match="'_Deleted'"):
        stream.update(ROWS.rename(columns={"w": "_Deleted"}), mode="full", deletes="flag")

    stream.update(ROWS.tail(2), mode="full", deletes="flag")
    with pytest.raises(BadInput, match="'_deleted'"):
        stream.update(stream.read())
    with pytest.raises(InvalidOption, match="'_deleted' cannot be dropped"):
        stream.update(ROWS, drop_column="_deleted")
    # An override begins anew: the column is the rows' own then.
    assert list(
        update_snapshot(
            tmp_path, "Account", "Id", pd.DataFrame({"Id": ["1"], "_deleted": [True]}), override=True
        )["_deleted"]
    ) == [True]
    assert stream.update(pd.DataFrame({"Id": ["1"], "_deleted": [False]})).updated == 1


def test_persist_false_tries_an_extract(stream, tmp_path):
    """The merge is returned, guarded as well; nothing is written."""
    before = sorted(tmp_path.rglob("*"))

    merged = update_snapshot(tmp_path, "Account", "Id", ROWS.tail(2), persist=False, mode="full")
    with pytest.raises(TooManyDeletions):
        update_snapshot(tmp_path, "Account", "Id", ROWS.tail(1), persist=False, mode="full")

    assert list(merged["Id"]) == ["2", "3"]
    assert before == sorted(tmp_path.rglob("*"))


@pytest.mark.spark
def test_a_spark_frame_is_an_extract(stream, tmp_path, spark_session):
    """As any frame; also where flags are kept from the first write on."""
    frame = spark_session.createDataFrame(pa.table({"Id": ["2", "3"], "v": ["b", "C"]}))

    receipt = stream.update(frame, mode="full", deletes="flag")
    new = open_tenant(tmp_path).stream("New").update(frame, key="Id", mode="full", deletes="flag")

    assert (counts(receipt), counts(new)) == ((0, 1, 1, 1), (2, 0, 0, 0))
    assert list(get_snapshot(tmp_path, "New")["_deleted"]) == [False, False]
