"""Single rows of a stream are brought back by key, as one version, and nothing else is touched."""

from dataclasses import replace

import pyarrow as pa
import pytest

from freezeframe.errors import ConflictError, InvalidOption, MissingColumn, StreamNotFound, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.model.update_options import Author, RequestContext
from freezeframe.store.versions.restore import RowSelection, restore_rows

FIRST = pa.table({"Id": [1, 2, 3, 4], "City": ["Bern", "Basel", None, "Chur"], "Age": [1.0, 2.0, 3.0, 4.0]})
SECOND = pa.table({"Id": [2, 3, 5], "City": ["Thun", "Zug", "Genf"], "Age": [2.0, 9.0, 5.0]})


@pytest.fixture
def tenant(tmp_path):
    """Version 0: rows 1 to 4. Version 1: 2 and 3 changed, 5 came, 4 went (as an override)."""
    storage = LocalStorage(tmp_path)
    tenant = Tenant(storage, ArrowEngine(storage), Settings())
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
    done = restore_rows(tenant.place, chosen(3, 4, 5), author=Author("ada"))
    after = rows(tenant)
    assert (*done.counts.to_json().values(),) == (1, 1, 0, 1)
    assert (done.committed, done.tenant_version) == (True, 2)
    assert after[3] == {"City": None, "Age": 3.0}
    assert after[4] == {"City": "Chur", "Age": 4.0}
    assert set(after) == {1, 2, 3, 4}
    assert (before[1], before[2]) == (after[1], after[2])
    newest = next(tenant.history())
    assert (newest.who, newest.message) == ("ada", "restore 3 rows of Account as of version 0")
    assert (newest.kind, newest.restored) == ("restore", 0)


def test_a_preview_tells_the_same_and_keeps_nothing(tenant):
    """The effect of a dry run is that of the real one."""
    told = restore_rows(tenant.place, chosen(3, 4, 5), dry_run=True)
    assert (told.committed, told.tenant_version, tenant.version) == (False, 1, 1)
    assert told.changes.equals(restore_rows(tenant.place, chosen(3, 4, 5)).changes)


def test_rows_that_are_as_they_were_make_no_version(tenant):
    """Nor do keys that were never there."""
    done = restore_rows(tenant.place, chosen(1, 77))
    assert (done.committed, len(done.changes), tenant.version) == (False, 0, 1)


def test_only_removals_leave_the_files_where_they_are(tenant):
    """A row that was not there then is marked; no data file is written."""
    before = tenant.stream("Account").byte_count()
    restore_rows(tenant.place, chosen(5))
    assert set(rows(tenant)) == {1, 2, 3}
    assert before == tenant.stream("Account").byte_count()


def test_columns_that_came_since_keep_their_values(tenant):
    """What the version of then did not know is left alone."""
    tenant.stream("Account").update(pa.table({"Id": [2, 3], "Note": ["a", "b"]}), "Id")
    restore_rows(tenant.place, chosen(3, 4))
    after = rows(tenant)
    assert after[3] == {"City": None, "Age": 3.0, "Note": "b"}
    assert after[4] == {"City": "Chur", "Age": 4.0, "Note": None}


def test_a_key_of_several_columns_with_nulls_is_found(tmp_path):
    """A null in a key is a key like any other, where the stream allows it."""
    storage = LocalStorage(tmp_path)
    tenant = Tenant(storage, ArrowEngine(storage), Settings())
    first = pa.table({"A": ["x", "x"], "B": pa.array([None, 1], pa.int64()), "V": [1, 2]})
    stream = tenant.stream("S")
    stream.update(first, ["A", "B"], null_keys="match")
    stream.update(first.set_column(2, "V", pa.array([8, 9])), ["A", "B"], null_keys="match")
    keys = pa.table({"A": ["x"], "B": pa.array([None], pa.int64())})
    restore_rows(tenant.place, RowSelection(StreamName("S"), 0, keys))
    assert [(row["B"], row["V"]) for row in sorted_rows(stream)] == [(None, 1), (1, 9)]


def sorted_rows(stream):
    return sorted(stream.read(as_="arrow").to_pylist(), key=lambda row: (row["B"] is not None, row["B"]))


def test_the_same_request_again_is_told_what_it_did(tenant):
    """A request whose answer was lost makes no second version."""
    place = replace(tenant.place, request_context=RequestContext("r1", "once"))
    first = restore_rows(place, chosen(3))
    tenant.stream("Account").update(pa.table({"Id": [3], "City": ["Wil"]}), "Id")
    again = restore_rows(place, chosen(3))
    assert (first.tenant_version, True) == (again.tenant_version, again.committed)
    assert first.changes.equals(again.changes)
    assert rows(tenant)[3]["City"] == "Wil"


def test_the_check_of_commits_sees_the_state_that_is_committed_on(tenant):
    """What it raises is raised, and nothing is written."""
    seen = []

    def refuse(state, transaction):
        seen.append((state.version, transaction.changes_existing(state)))
        raise ConflictError("no")

    with pytest.raises(ConflictError):
        restore_rows(tenant.with_check(refuse).place, chosen(3))
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
            restore_rows(tenant.place, selection)


def test_single_cells_are_brought_back_and_the_others_stay(tenant):
    """Of rows that are there now and were then; a column of the key, or none of the stream, is refused."""
    done = restore_rows(tenant.place, replace(chosen(3, 4, 5), columns=("Age",)))
    assert (*done.counts.to_json().values(),) == (0, 1, 0, 0)
    assert rows(tenant)[3] == {"City": "Zug", "Age": 3.0}
    assert set(rows(tenant)) == {1, 2, 3, 5}
    for name in ("Id", "Nope"):
        with pytest.raises(MissingColumn):
            restore_rows(tenant.place, replace(chosen(3), columns=(name,)))
