"""A tenant's past: history, views, differences, tags, and bringing a version back."""

import contextlib
import os
import pwd
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests import given
from tests.examples import sampled
from tests.given import content, table

from freezeframe.errors import (
    AlreadyExists,
    ConflictError,
    CorruptData,
    FileNotFound,
    FreezeframeError,
    InvalidName,
    InvalidOption,
    MissingColumn,
    NotFound,
    StreamNotFound,
    VersionNotFound,
)
from freezeframe.identifiers import StreamName
from freezeframe.storage import LocalStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.maintenance.restore import RowSelection, restore_rows
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import Author, RequestContext
from freezeframe.store.tenant import with_check


@pytest.fixture
def past(open_finding, memory):
    """A tenant with five versions, and what it held at each."""
    tenant = open_finding(memory, streams={"Account": table(1, 2)})
    with tenant.job("sync", message="Nightly", who="ops") as job:
        job.stream("Lead").update(table(5), key="Id")
        job.files.write("config.json", b'{"a": 1}\n')
    with tenant.job() as job:
        job.stream("Account").update(table(3), key="Id")
        job.files.write("config.json", b'{"a": 2}\n')
    tenant.stream("Account").update(table(7), override=True)
    with tenant.job() as job:
        job.files.delete("config.json")
        job.files.write("new/b.txt", b"b")
    return tenant, [content(tenant.at(version)) for version in range(5)]


def test_a_view_is_one_moment(past):
    """Streams and files of one commit, by version or by time; nothing can be changed there."""
    tenant, then = past

    assert then[0] == ({"Account": [1, 2]}, {})
    assert then[2] == ({"Account": [1, 2, 3], "Lead": [5]}, {"config.json": b'{"a": 2}\n'})
    assert then[2] == content(tenant.at(tenant.at(2).timestamp))
    with pytest.raises(InvalidOption, match="earlier version"):
        tenant.at(2).stream("Account").update(table(1), key="Id")
    with pytest.raises(InvalidOption, match="earlier version"):
        tenant.at(2).files.write("a", b"")
    for absent in (5, -1):
        with pytest.raises((VersionNotFound, InvalidOption)):
            tenant.at(absent)


def test_history_tells_who_and_what(past):
    """Newest first; by job, stream or file only those that have to do with it."""
    tenant, _ = past

    found = {entry.version: entry for entry in tenant.history()}

    assert list(found) == [4, 3, 2, 1, 0]
    assert (found[1].job_id, found[1].who, found[1].message) == ("sync", "ops", "Nightly")
    assert (found[1].files_written, found[4].files_deleted) == (("config.json",), ("config.json",))
    assert [entry.version for entry in tenant.history(job_id="sync")] == [1]
    assert [entry.version for entry in tenant.history(2, stream="Account")] == [3, 2]
    assert [entry.version for entry in tenant.history(until=3, path="config.json")] == [2, 1]
    assert {"author", "kind", "files_written", "tags"} <= found[1].to_json().keys()
    with pytest.raises(InvalidOption):
        tenant.history(-1)


def test_a_difference_is_by_key_and_by_line(past):
    tenant, _ = past

    found = tenant.diff(1, 3)

    assert {name: one.fate for name, one in found.streams.items()} == {"Account": "changed"}
    assert (found.streams["Account"].counts.inserted, found.streams["Account"].counts.deleted) == (1, 2)
    assert found.files["config.json"].text().splitlines() == (
        ["--- config.json", "+++ config.json", "@@ -1 +1 @@", '-{"a": 1}', '+{"a": 2}']
    )
    assert {name: one["fate"] for name, one in tenant.diff(0).to_json()["streams"].items()} == {
        "Lead": "added",
        "Account": "changed",
    }
    assert tenant.diff(1, 0).streams["Lead"].counts.deleted == 1
    assert (tenant.diff(2, 2).streams, tenant.diff(2, 2).files) == ({}, {})


@pytest.mark.parametrize("version", [0, 2, 4])
def test_any_listed_version_restores_equal(past, memory, version):
    """A new version holds what that one held; the versions between are still there."""
    tenant, then = past
    data = [status.name for status in memory.list_below("") if not status.name.endswith(".json")]

    preview = tenant.restore(version, dry_run=True)
    assert tenant.version == 4
    done = tenant.restore(version)

    assert then[version] == content(tenant)
    assert (preview.streams, preview.files_written, preview.files_deleted) == (
        done.streams,
        done.files_written,
        done.files_deleted,
    )
    assert (version != 4, 4 + (version != 4)) == (done.committed, tenant.version)
    assert then == [content(tenant.at(item)) for item in range(5)]
    assert data == [status.name for status in memory.list_below("") if not status.name.endswith(".json")]


def test_a_restored_tenant_goes_on(past):
    """Updates after a restoration, of streams that it removed as well, and restoring the restoration."""
    tenant, then = past
    tenant.restore(0)
    assert tenant.streams() == ("Account",)
    with pytest.raises(StreamNotFound):
        tenant.stream("Lead").read()

    receipt = tenant.stream("Lead").update(pa.table({"Id": ["9"], "v": [9], "w": ["new"]}), key=["Id", "w"])
    assert (receipt.inserted, tenant.stream("Lead").key) == (1, ("Id", "w"))
    assert tenant.stream("Lead").read(as_="arrow").to_pydict() == {"Id": ["9"], "v": [9], "w": ["new"]}

    tenant.restore(4)
    assert then[4] == content(tenant)
    tenant.stream("Account").update(table(70), key="Id")
    assert content(tenant)[0]["Account"] == [7, 70]


def test_single_streams_and_files_are_restored_alone(past):
    tenant, then = past

    effect = tenant.restore(2, streams=["Account"], dry_run=True).streams["Account"]
    assert (effect.fate, effect.rows_before, effect.rows_after) == ("changed", 1, 3)
    tenant.restore(2, streams=["Account"])
    assert ({"Account": [1, 2, 3], "Lead": [5]}, then[4][1]) == content(tenant)
    tenant.restore(1, files=["config.json"])
    assert then[1][1] | then[4][1] == content(tenant)[1]

    for wrong, error in (({"streams": ["Nope"]}, StreamNotFound), ({"files": ["nope"]}, FileNotFound)):
        with pytest.raises(error):
            tenant.restore(1, **wrong)
    with pytest.raises(InvalidName):
        tenant.restore(1, streams=["../x"])


def test_a_version_without_its_files_is_not_restored(past, memory):
    """A data file that somebody deleted is found before anything is committed."""
    tenant, _ = past
    for status in list(memory.list_below("Account.snapshot")):
        if status.name.endswith(".parquet") and status.name not in _live(tenant):
            memory.delete(f"Account.snapshot/{status.name}")

    with pytest.raises(CorruptData):
        tenant.restore(0)
    assert tenant.version == 4


def _live(tenant):
    return tenant.stream("Account")._snapshot().files["path"].to_pylist()


def test_columns_come_back_as_they_were(open_finding, memory):
    """Types and columns of that version; names that need a mapping keep it."""
    tenant = open_finding(memory)
    stream = tenant.stream("Account")
    stream.update(table(1), key="Id")
    stream.update(pa.table({"Id": ["2"], "a b": ["x"]}), override=True, key="Id")
    protocol = stream._snapshot().protocol

    tenant.restore(0)
    assert table(1).equals(stream.read(as_="arrow"))
    assert protocol == stream._snapshot().protocol
    stream.update(table(2), key="Id")
    tenant.restore(1)
    assert stream.read(as_="arrow").to_pydict() == {"Id": ["2"], "a b": ["x"]}


def test_a_dropped_stream_is_gone_and_its_past_is_not(past):
    tenant, then = past

    assert tenant.drop_stream("Lead") == 5
    assert tenant.streams() == ("Account",)
    assert tenant.stream("Lead").version == -1
    assert tenant.history(1)[0].streams_dropped == ("Lead",)
    assert then[1] == content(tenant.at(1))
    with pytest.raises(StreamNotFound):
        tenant.drop_stream("Lead")


def test_a_tag_names_a_version(past):
    tenant, _ = past
    assert (tenant.tag("good", 2, who="ops"), tenant.tag("last", 4)) == (2, 4)

    assert tenant.tags() == {"good": 2, "last": 4}
    assert next(item for item in tenant.history() if item.version == 2).tags == ("good",)
    assert tenant.tag("good", 2) == 2
    with pytest.raises(AlreadyExists, match="good"):
        tenant.tag("good", 3)
    with pytest.raises(VersionNotFound):
        tenant.tag("x", 99)
    with pytest.raises(InvalidName):
        tenant.tag("a/b")
    tenant.untag("good")
    assert tenant.tags() == {"last": 4}
    with pytest.raises(NotFound, match="good"):
        tenant.untag("good")


@pytest.mark.sampled
@pytest.mark.parametrize("way", [Way.CUT_AFTER, Way.FAIL_AFTER])
def test_a_restoration_is_whole_or_not_at_all(open_finding, memory, way):
    """A fault at each of its storage calls: the old state or the restored one, and it can be run again."""
    tenant = open_finding(memory)
    with tenant.job() as job:
        job.stream("A").update(table(1), key="Id")
        job.files.write("f", b"1")
    with tenant.job() as job:
        job.stream("A").update(table(2), override=True)
        job.stream("B").update(table(3), key="Id")
        job.files.write("f", b"2")
    old, new = ({"A": [2], "B": [3]}, {"f": b"2"}), ({"A": [1]}, {"f": b"1"})
    counting = FaultyStorage(memory.copy())
    open_finding(counting).restore(0)
    for call in sampled(range(len(counting.calls))):
        inner = memory.copy()
        with contextlib.suppress(Crash, FreezeframeError):
            open_finding(FaultyStorage(inner, [Fault(call, way)])).restore(0)
        tenant = open_finding(inner)
        assert content(tenant) in (old, new), call
        tenant.restore(0)
        assert new == content(tenant), call


def test_a_dropped_stream_begins_anew_as_its_first_update_says(open_finding, memory):
    """After a drop a full extract that flags deletions makes a stream that does, as on a new name."""
    tenant = open_finding(memory)
    rows = pa.table({"Id": ["1", "2"], "v": [1, 2]})
    tenant.stream("Lead").update(rows, key="Id")
    tenant.drop_stream("Lead")
    seen = []

    for name in ("Lead", "New"):
        tenant.stream(name).update(rows, key="Id", mode="full", deletes="flag")
        read = tenant.stream(name).read(as_="arrow")
        seen.append((read.column_names, read.to_pylist()))
    tenant.drop_stream("Lead")
    with tenant.job() as job:
        job.stream("Lead").update(rows, key="Id", mode="full", deletes="flag")
        inside = job.stream("Lead").read(as_="arrow").column_names

    assert seen[1][0] == ["Id", "v", "_deleted"]
    assert seen[1] == seen[0]
    assert seen[1][0] == inside


def test_a_restoration_says_what_it_restored_and_who_did_it(past):
    """Its kind, the version and the system's user; a message is added to what it says, and counts are net."""
    tenant, _ = past

    tenant.restore(2, message="wrong file")
    tenant.restore(3, who="ada")

    said = [(entry.kind, entry.restored, entry.who, entry.message) for entry in tenant.history(2)]
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert said == [
        ("restore", 3, "ada", "restore version 3"),
        ("restore", 2, user, "restore version 2: wrong file"),
    ]
    assert Counts(3, 0, 0, 1) == next(iter(tenant.history(1, until=5))).streams["Account"]
    assert next(iter(tenant.history(1, until=3))).kind == "commit"


def test_a_restoration_does_not_read_what_is_damaged(past, memory):
    """A lost data file of the present does not keep the past from coming back."""
    tenant, then = past
    (path,) = tenant.stream("Account").snapshot().files["path"].to_pylist()
    memory.delete(f"Account.snapshot/{path}")

    tenant.restore(2)

    assert then[2] == content(tenant)
    counts = next(iter(tenant.history(1))).streams["Account"]
    assert (counts.inserted, counts.deleted) == (3, 1)


FIRST = pa.table({"Id": [1, 2, 3, 4], "City": ["Bern", "Basel", None, "Chur"], "Age": [1.0, 2.0, 3.0, 4.0]})
SECOND = pa.table({"Id": [2, 3, 5], "City": ["Thun", "Zug", "Genf"], "Age": [2.0, 9.0, 5.0]})


@pytest.fixture
def tenant(tmp_path):
    """Version 0: rows 1 to 4. Version 1: 2 and 3 changed, 5 came, 4 went (as an override)."""
    tenant = given.tenant(LocalStorage(tmp_path))
    stream = tenant.stream("Account")
    stream.update(FIRST, "Id")
    stream.update(pa.concat_tables([FIRST.slice(0, 1), SECOND]), "Id", override=True)
    return tenant


def chosen(*keys, version=0, stream="Account"):
    return RowSelection(StreamName(stream), version, pa.table({"Id": list(keys)}))


def rows(tenant):
    return {row.pop("Id"): row for row in tenant.stream("Account").read(as_="arrow").to_pylist()}


def test_rows_are_changed_back_brought_back_and_removed_in_one_version(tenant):
    """What was there then is as it was, what was not there then goes; all other rows stay."""
    before = rows(tenant)
    done = restore_rows(tenant.context, chosen(3, 4, 5), author=Author("ada"))
    after = rows(tenant)
    assert (*done.changes.counts.to_json().values(),) == (1, 1, 0, 1)
    assert (done.committed, done.tenant_version) == (True, 2)
    assert after[3] == {"City": None, "Age": 3.0}
    assert after[4] == {"City": "Chur", "Age": 4.0}
    assert set(after) == {1, 2, 3, 4}
    assert (before[1], before[2]) == (after[1], after[2])
    newest = tenant.history()[0]
    assert (newest.who, newest.message) == ("ada", "restore 3 rows of Account as of version 0")
    assert (newest.kind, newest.restored) == ("restore", 0)


def test_a_preview_tells_the_same_and_keeps_nothing(tenant):
    told = restore_rows(tenant.context, chosen(3, 4, 5), dry_run=True)
    assert (told.committed, told.tenant_version, tenant.version) == (False, 1, 1)
    assert told.changes == restore_rows(tenant.context, chosen(3, 4, 5)).changes


def test_rows_that_are_as_they_were_make_no_version(tenant):
    done = restore_rows(tenant.context, chosen(1, 77))
    assert (done.committed, len(done.changes), tenant.version) == (False, 0, 1)


def test_only_removals_leave_the_files_where_they_are(tenant):
    before = tenant.stream("Account").snapshot().size
    restore_rows(tenant.context, chosen(5))
    assert set(rows(tenant)) == {1, 2, 3}
    assert before == tenant.stream("Account").snapshot().size


def test_columns_that_came_since_keep_their_values(tenant):
    tenant.stream("Account").update(pa.table({"Id": [2, 3], "Note": ["a", "b"]}), "Id")
    restore_rows(tenant.context, chosen(3, 4))
    after = rows(tenant)
    assert after[3] == {"City": None, "Age": 3.0, "Note": "b"}
    assert after[4] == {"City": "Chur", "Age": 4.0, "Note": None}


def test_a_key_of_several_columns_with_nulls_is_found(tmp_path):
    tenant = given.tenant(LocalStorage(tmp_path))
    first = pa.table({"A": ["x", "x"], "B": pa.array([None, 1], pa.int64()), "V": [1, 2]})
    stream = tenant.stream("S")
    stream.update(first, ["A", "B"], null_keys="match")
    stream.update(first.set_column(2, "V", pa.array([8, 9])), ["A", "B"], null_keys="match")
    keys = pa.table({"A": ["x"], "B": pa.array([None], pa.int64())})
    restore_rows(tenant.context, RowSelection(StreamName("S"), 0, keys))
    assert [(row["B"], row["V"]) for row in sorted_rows(stream)] == [(None, 1), (1, 9)]


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize(
    ("then", "now"),
    [
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array([0], pa.int32()), pa.array([-0.0])),
        (pa.array([np.nan]), pa.array(np.array([0xFFF8000000000001], np.uint64).view(np.float64))),
    ],
    ids=["zero", "integer", "nan"],
)
def test_a_row_is_found_by_each_form_of_its_key(then, now, form):
    """Both signs of a zero and all bits of NaN are one key: the row is changed back, not removed."""
    tenant = given.tenant()
    stream = tenant.stream("S")
    stream.update(pa.table({"Id": then, "V": [1]}), "Id")
    stream.update(pa.table({"Id": now, "V": [2]}), "Id", override=True)
    keys = pa.table({"Id": (then.cast(pa.float64()), now)[form]})
    done = restore_rows(tenant.context, RowSelection(StreamName("S"), 0, keys))
    assert Counts(updated=1) == done.changes.counts
    assert [1] == stream.read(as_="arrow")["V"].to_pylist()


def sorted_rows(stream):
    return sorted(stream.read(as_="arrow").to_pylist(), key=lambda row: (row["B"] is not None, row["B"]))


def test_the_same_request_again_is_told_what_it_did(tenant):
    place = replace(tenant.context, request_context=RequestContext("r1", "once"))
    first = restore_rows(place, chosen(3))
    tenant.stream("Account").update(pa.table({"Id": [3], "City": ["Wil"]}), "Id")
    again = restore_rows(place, chosen(3))
    assert (first.tenant_version, True) == (again.tenant_version, again.committed)
    assert first.changes == again.changes
    assert rows(tenant)[3]["City"] == "Wil"


def test_the_check_of_commits_sees_the_state_that_is_committed_on(tenant):
    seen = []

    def refuse(state, transaction):
        seen.append((state.version, transaction.changes_existing(state)))
        raise ConflictError("no")

    with pytest.raises(ConflictError):
        restore_rows(with_check(tenant, refuse).context, chosen(3))
    assert (seen, tenant.version) == ([(1, True)], 1)


def test_what_cannot_be_told_apart_is_refused(tenant, tmp_path):
    """No key, another key then, no such stream or version: each says so before anything is written."""
    tenant.stream("Keyless").update(FIRST, override=True)
    tenant.stream("Account").update(FIRST, "City", override=True, null_keys="match")
    for selection, error in (
        (chosen(1, stream="Keyless", version=2), InvalidOption),
        (RowSelection(StreamName("Account"), 0, pa.table({"City": ["Bern"]})), InvalidOption),
        (chosen(1, stream="Nobody"), StreamNotFound),
        (chosen(1, version=99), VersionNotFound),
    ):
        with pytest.raises(error):
            restore_rows(tenant.context, selection)


def test_single_cells_are_brought_back_and_the_others_stay(tenant):
    """Of rows that are there now and were then; a column of the key, or none of the stream, is refused."""
    done = restore_rows(tenant.context, replace(chosen(3, 4, 5), columns=("Age",)))
    assert (*done.changes.counts.to_json().values(),) == (0, 1, 0, 0)
    assert rows(tenant)[3] == {"City": "Zug", "Age": 3.0}
    assert set(rows(tenant)) == {1, 2, 3, 5}
    for name in ("Id", "Nope"):
        with pytest.raises(MissingColumn):
            restore_rows(tenant.context, replace(chosen(3), columns=(name,)))
