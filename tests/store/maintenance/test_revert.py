"""Taking one version back and keeping what came after it, beside a model of cells in dictionaries."""

import contextlib
import math
import random

import pyarrow as pa
import pytest
from tests.examples import by_turns, sampled
from tests.given import files_of
from tests.store.reversal_model import NAMES, held, random_change, reverted, state_of

from freezeframe.errors import (
    BadInput,
    ConflictError,
    FreezeframeError,
    InvalidOption,
    MissingColumn,
    StreamNotFound,
    TooLarge,
    VersionNotFound,
)
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.diff import comparison
from freezeframe.store.diff.reversal import CHANGED, MISFIT
from freezeframe.store.maintenance import revert as reverting
from freezeframe.store.model.update_options import RequestContext
from freezeframe.store.tenant import with_check, with_request


def rows(**columns):
    return pa.table(columns)


def counts(effect):
    return effect.counts.inserted, effect.counts.updated, effect.counts.deleted


@pytest.fixture
def tenant(open_finding, memory):
    """Version 1 is the bad job: it changes 1 and 2, inserts 4 and 5, deletes 3; version 2 came later."""
    tenant = open_finding(memory)
    account = tenant.stream("Account")
    with tenant.job("first") as job:
        job.stream("Account").update(rows(Id=[1, 2, 3], a=["x", "y", "z"], b=[1, 2, 3]), key="Id")
        job.files.write("map.csv", b"old")
        job.files.write("both.csv", b"old")
    with tenant.job("bad") as job:
        new = rows(Id=[1, 2, 4, 5], a=["X", "Y", "V", "W"], b=[10, 20, 40, 50])
        job.stream("Account").update(new, mode="full")
        job.files.write("map.csv", b"bad")
        job.files.write("both.csv", b"bad")
        job.files.write("new.csv", b"bad")
    with tenant.job("later") as job:
        account = job.stream("Account")
        account.update(rows(Id=[2, 5, 6], a=["later", "later", "new"]))
        job.files.write("both.csv", b"later")
    return tenant


def test_what_a_job_did_goes_back_and_what_came_later_stays(tenant):
    """Cell by cell, rows and files; the version says what it took back."""
    done = tenant.revert(job_id="bad", message="Ticket 4711", who="ada")

    assert {
        1: {"a": "x", "b": 1},
        2: {"a": "later", "b": 2},
        3: {"a": "z", "b": 3},
        5: {"a": "later", "b": 50},
        6: {"a": "new"},
    } == held(tenant.stream("Account"))
    effect = done.streams["Account"]
    assert ("changed", (1, 2, 1), 3, 2, 2) == (
        effect.fate,
        counts(effect),
        effect.cells,
        effect.kept_rows,
        effect.kept_cells,
    )
    assert [
        ({"Id": 2}, "update", CHANGED, {"a": ("y", "Y", "later")}),
        ({"Id": 5}, "insert", CHANGED, {"a": (None, "W", "later")}),
    ] == [(row.key, row.change, row.reason, row.cells) for row in effect.kept]
    assert (("map.csv",), ("new.csv",), ("both.csv",)) == (
        done.files_written,
        done.files_deleted,
        done.files_kept,
    )
    assert {"map.csv": b"old", "both.csv": b"later"} == {
        file.path: tenant.files.read(file.path) for file in tenant.files.list()
    }
    (entry,) = tenant.history(1)
    assert ("revert version 1 (bad): Ticket 4711", "ada", 3) == (entry.message, entry.who, entry.version)


def test_a_preview_tells_the_same_and_keeps_nothing(tenant, memory):
    """As of the reversion that follows, which makes one version; a second one finds nothing to do."""
    before = files_of(memory)
    preview = tenant.revert(1, dry_run=True)
    assert before == files_of(memory)

    done, again = tenant.revert(1), tenant.revert(1)

    assert (preview.streams, preview.files_kept) == (done.streams, done.files_kept)
    assert (False, True, False) == (preview.committed, done.committed, again.committed)
    assert (3, again.tenant_version) == (done.tenant_version, tenant.version)


def test_a_reversion_is_taken_back_as_any_version(tenant):
    """At once by its table, later by its cells."""
    before = held(tenant.stream("Account"))
    tenant.revert(1)
    tenant.revert(3)
    assert before == held(tenant.stream("Account"))

    tenant.stream("Account").update(rows(Id=[7], b=[7]))
    tenant.revert(4)
    tenant.revert(6)

    assert {**before, 7: {"b": 7}} == held(tenant.stream("Account"))


def test_only_some_streams_files_and_rows_go_back(tenant):
    """By name, and by a condition on rows as the version left them, or as they were before it."""
    tenant.revert(1, only=["new.csv"])
    assert (["both.csv", "map.csv"], "X") == (
        [file.path for file in tenant.files.list()],
        held(tenant.stream("Account"))[1]["a"],
    )

    done = tenant.revert(1, only=["Account"], where="a = 'X' OR b = 3")

    assert ((1, 1, 0), ()) == (counts(done.streams["Account"]), done.files_written)
    found = held(tenant.stream("Account"))
    assert ({"a": "x", "b": 1}, 20, {"a": "z", "b": 3}) == (found[1], found[2]["b"], found[3])


def test_rows_go_back_by_their_keys(tenant):
    """Of these alone, as of the whole version; other columns than the key's are refused."""
    keys = rows(Id=[1, 2, 3, 4, 9])

    told = tenant.revert(1, only=["Account"], where=keys, dry_run=True).streams["Account"]
    tenant.revert(1, only=["Account"], where=keys)

    assert ((1, 2, 1), [2]) == (counts(told), [row.key["Id"] for row in told.kept])
    found = held(tenant.stream("Account"))
    assert ([1, 2, 3, 5, 6], "x", "later", "later") == (
        sorted(found),
        found[1]["a"],
        found[2]["a"],
        found[5]["a"],
    )
    assert tenant.revert(3, only=["Account"], where=rows(Id=[]), dry_run=True).is_empty
    with pytest.raises(BadInput, match="columns"):
        tenant.revert(1, only=["Account"], where=rows(a=["X"]))


def test_rows_of_a_stream_that_the_version_dropped_stay(tenant):
    """It comes back as a whole alone."""
    version = tenant.drop_stream("Account")

    told = tenant.revert(version, only=["Account"], where="b = 1").streams["Account"]

    assert "the version dropped it; it comes back whole, without a condition on rows" == told.reason
    assert "brought back" == tenant.revert(version).streams["Account"].fate


@pytest.mark.parametrize("key", [-0.0, math.nan, None])
def test_a_key_of_any_value_goes_back(open_finding, memory, key):
    """Zero under either sign, NaN and null: as updates find them."""
    stream = open_finding(memory).stream("Account")
    tenant = open_finding(memory)
    ids = pa.array([0.0, math.nan, None, 1.0])
    for text in ("x", "bad"):
        stream.update(rows(Id=ids, a=[text] * 4), key="Id", null_keys="match")

    done = tenant.revert(1, only=["Account"], where=rows(Id=pa.array([key], pa.float64())))

    assert (0, 1, 0) == counts(done.streams["Account"])
    assert 1 == stream.read(as_="arrow")["a"].to_pylist().count("x")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"version": 1, "where": rows(Id=[1])}, InvalidOption, "needs one stream"),
        ({"version": 9}, VersionNotFound, "no version 9"),
        ({"job_id": "no"}, VersionNotFound, "no version of the job no"),
        ({"version": 1, "job_id": "bad"}, InvalidOption, "not both"),
        ({}, InvalidOption, "to be named"),
        ({"version": 1, "only": ["Lead"]}, StreamNotFound, "'Lead'"),
        ({"version": 1, "where": "b = 1"}, InvalidOption, "needs one stream"),
        ({"version": (2, 1)}, InvalidOption, "comes after"),
        ({"version": 1, "only": ["Account"], "where": "no = 1"}, MissingColumn, "no"),
    ],
)
def test_what_cannot_be_meant_is_refused(tenant, memory, arguments, error, said):
    """Before anything is written."""
    before = files_of(memory)

    with pytest.raises(error, match=said):
        tenant.revert(**arguments)

    assert before == files_of(memory)


def test_versions_that_no_job_made_or_whose_past_is_gone_are_refused(tenant):
    """A policy has no rows; erased rows never return, nor does what retention has ended."""
    tenant.set_retention(keep_versions=50)
    with pytest.raises(InvalidOption, match="of the kind policy"):
        tenant.revert(3)
    tenant.erase("Account", [3])
    for version in (1, 2):
        with pytest.raises(VersionNotFound, match="no longer kept"):
            tenant.revert(version)
    with pytest.raises(InvalidOption, match="of the kind erase"):
        tenant.revert(4)
    tenant.stream("Account").update(rows(Id=[1], a=["after"]))

    tenant.revert(5)

    assert (False, "X") == (3 in held(tenant.stream("Account")), held(tenant.stream("Account"))[1]["a"])


def test_a_stream_that_nobody_changed_since_goes_back_whole(open_finding, memory):
    """Its key, columns, types, history and rows without a key: the table is the one that it was."""
    tenant = open_finding(memory, streams={"Rekeyed": rows(Id=[1], v=["a"])})
    tenant.stream("Keyless").update(rows(v=["a", "a"]), override=True)
    tenant.stream("Past").update(rows(Id=[1], v=["a"]), key="Id", history="scd2")
    tenant.stream("Gone").update(rows(Id=[1], v=["a"]), key="Id")
    with tenant.job("bad") as job:
        job.stream("Rekeyed").update(rows(Other=["x"], v=[1.5]), key="Other", override=True)
        job.stream("Keyless").update(rows(v=["b"]), override=True)
        job.stream("Past").update(rows(Id=[1], v=["b"]))
        job.stream("Made").update(rows(Id=[1]), key="Id")
    tenant.drop_stream("Gone")

    done, back = tenant.revert(4), tenant.revert(5)

    assert {"Keyless": "changed", "Made": "removed", "Past": "changed", "Rekeyed": "changed"} == {
        name: effect.fate for name, effect in done.streams.items()
    }
    assert ("brought back", (1, 0, 0)) == (back.streams["Gone"].fate, counts(back.streams["Gone"]))
    assert (("Id",), ["a"], ["a", "a"], 1) == (
        tenant.stream("Rekeyed").key,
        tenant.stream("Rekeyed").read(as_="arrow")["v"].to_pylist(),
        tenant.stream("Keyless").read(as_="arrow")["v"].to_pylist(),
        len(tenant.stream("Past").read(as_="arrow", history=True)),
    )
    assert ("Gone", "Keyless", "Past", "Rekeyed") == tenant.streams()


def bad(job, **options):
    job.stream("S").update(rows(Id=[1], v=["b"]), **options)


@pytest.mark.parametrize(
    ("first", "then", "later", "reason"),
    [
        ({"override": True}, {"override": True}, {"override": True}, "no key"),
        ({"key": "Id"}, {"override": True, "key": "v"}, {}, "another key"),
        ({"key": "Id", "history": "scd2"}, {}, {}, "its rows' past"),
        ({"key": "Id"}, {"mode": "full", "deletes": "flag"}, {}, "its rows' past or flags"),
    ],
)
def test_rows_that_cannot_be_matched_stay_with_a_reason(open_finding, memory, first, then, later, reason):
    """Of a stream that was changed since; other streams of the version go back."""
    tenant = open_finding(memory)
    tenant.stream("S").update(rows(Id=[1], v=["a"]), **first)
    with tenant.job("bad") as job:
        job.stream("S").update(rows(Id=[1], v=["b"]), **then)
        job.stream("Other").update(rows(Id=[1]), key="Id")
    tenant.stream("S").update(rows(Id=[2], v=["c"]), **later)
    before = tenant.stream("S").read(as_="arrow")

    done = tenant.revert(1)

    assert ("kept", True) == (done.streams["S"].fate, reason in done.streams["S"].reason)
    assert (before, ("S",)) == (tenant.stream("S").read(as_="arrow"), tenant.streams())


def test_a_key_of_another_type_since_is_named(open_finding, memory):
    """A number and a moment have no order in common."""
    tenant = open_finding(memory, streams={"S": rows(Id=[1], v=["a"])})
    tenant.stream("S").update(rows(Id=[1], v=["b"]))
    moments = pa.array([0], pa.timestamp("us"))
    tenant.stream("S").update(rows(Id=moments, v=["c"]), key="Id", override=True)

    assert "another type" in tenant.revert(1).streams["S"].reason


@pytest.mark.parametrize(
    ("made", "later", "reason"),
    [
        ("drop", "again", "a stream of this name again"),
        ("change", "drop", "dropped since"),
        ("change", "release", "released"),
        ("change", "take", "released"),
        ("make", "drop", None),
    ],
)
def test_streams_that_are_gone_or_there_again_stay_so(open_finding, memory, made, later, reason):
    """Each with its reason; what the version made and somebody dropped is nothing to take back."""
    tenant = open_finding(memory)
    tenant.stream("S" if made != "make" else "Other").update(rows(Id=[1], v=["a"]), key="Id")
    if made == "drop":
        tenant.drop_stream("S")
    else:
        tenant.stream("S").update(rows(Id=[1], v=["b"]), key="Id")
    if later == "again":
        tenant.stream("S").update(rows(Id=[7], v=["c"]), key="Id")
    elif later == "drop":
        tenant.drop_stream("S")
    else:
        tenant.stream("S").release()
    for name in files_of(memory) if later == "take" else ():  # who released it may move its folder
        if name.startswith("S.snapshot/"):
            memory.delete(name)
    version = tenant.version

    done = tenant.revert(1)

    assert (False, version) == (done.committed, tenant.version)
    assert (reason or "") in (done.streams["S"].reason if reason else "")
    assert (reason is None) == (not done.streams)


def test_columns_that_the_version_added_or_dropped(open_finding, memory):
    """Added ones stay, without its values; dropped ones return, unless dropped since by somebody else."""
    tenant = open_finding(memory, streams={"S": rows(Id=[1, 2], a=["x", "y"], b=[1, 2], c=[1, 2])})
    tenant.stream("S").update(rows(Id=[1], **{"new.`x": [5]}), drop_column="a")
    tenant.stream("S").update(rows(Id=[2], c=[9], **{"new.`x": [6]}), drop_column="b")

    done = tenant.revert(1).streams["S"]

    assert {1: {"a": "x", "c": 1}, 2: {"a": "y", "c": 9, "new.`x": 6}} == held(tenant.stream("S"))
    assert ((0, 2, 0), 3, 0) == (counts(done), done.cells, done.kept_rows)
    tenant.stream("S").update(rows(Id=[3], A=["other"]), drop_column="a")
    assert "a" not in (tenant.revert(1), tenant.stream("S").columns)[1]


def test_values_go_back_in_the_type_of_now(open_finding, memory):
    """Where it holds them; else cells stay, and a deleted row with one stays away."""
    tenant = open_finding(memory)
    texts = {"t": ["5", "x", "7", "y"], "n": [1, 2, 3, 4]}
    tenant.stream("S").update(rows(Id=[1, 2, 3, 4], **texts), key="Id")
    tenant.stream("S").update(rows(Id=[1, 2], t=[50, 60], n=[1.5, 2.5]), key="Id", override=True)
    tenant.stream("S").update(rows(Id=[9], t=[9], n=[9.0]))

    done = tenant.revert(1).streams["S"]

    assert {
        1: {"t": 5, "n": 1.0},
        2: {"t": 60, "n": 2.0},
        3: {"t": 7, "n": 3.0},
        9: {"t": 9, "n": 9.0},
    } == held(tenant.stream("S"))
    assert [({"Id": 2}, MISFIT, ("x", 60, 60)), ({"Id": 4}, MISFIT, ("y", None, None))] == [
        (row.key, row.reason, row.cells["t"]) for row in done.kept
    ]


def test_a_column_that_lost_its_type_takes_that_of_its_values_again(open_finding, memory):
    """The version left it empty, or a list of nothing; one that has no value at any time stays empty."""
    tenant, nothing = open_finding(memory), pa.nulls(2)
    stream = tenant.stream("S")
    stream.update(rows(Id=[1, 2], a=[1, 2], l=[["x"], ["y"]], b=[1, 2]), key="Id")
    empty = rows(Id=[1, 2], a=nothing, l=pa.array([[], []]), b=[10, 20], e=nothing)
    stream.update(empty, key="Id", override=True)
    stream.update(rows(Id=[2], b=[30]))

    tenant.revert(1)

    assert {1: {"a": 1, "l": ["x"], "b": 1}, 2: {"a": 2, "l": ["y"], "b": 30}} == held(stream)
    assert [pa.int64(), pa.list_(pa.string())] == [stream.schema.field(name).type for name in "al"]


def test_names_of_columns_with_dots_and_quotes(open_finding, memory):
    """In the key, in cells, and in a condition."""
    tenant = open_finding(memory)
    stream = tenant.stream("S")
    for keys, value, mode in (([1, 2], "x", "upsert"), ([1, 3], "y", "full"), ([7], "z", "upsert")):
        values = [value] * len(keys)
        stream.update(rows(**{"I.d": keys, 'a"b': values, "c`.d": values}), "I.d", mode=mode)

    done = tenant.revert(1, only=["S"], where="`I.d` = 1"), tenant.revert(1)

    assert [(0, 1, 0), (1, 0, 1)] == [counts(item.streams["S"]) for item in done]
    assert [(1, "x", "x"), (2, "x", "x"), (7, "z", "z")] == [
        tuple(row.values()) for row in stream.read(as_="arrow").to_pylist()
    ]


NAN = math.nan


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([0.0, 1.0], [-0.0, 2.0]),
        ([0.0, 1.0], [1.0]),
        ([NAN, 1.0], [NAN]),
        ([NAN, 1.0], [1.0]),
        ([None, 1.0], [None, 3.0]),
        ([None, 1.0], [1.0]),
    ],
)
def test_odd_keys_are_found(open_finding, memory, before, after):
    """Both zeros are one key, as are NaNs and nulls, in rows that are changed, deleted and inserted."""
    tenant = open_finding(memory)

    def write(keys, value, **options):
        table = rows(Id=pa.array(keys, pa.float64()), v=[value] * len(keys), w=[0] * len(keys))
        tenant.stream("S").update(table, null_keys="match", **options)

    write(before, "a", key="Id")
    write(after, "b", mode="full", max_delete_ratio=1.0)
    later = rows(Id=pa.array([8.0], pa.float64()), v=["c"])
    tenant.stream("S").update(later)

    tenant.revert(1)

    found = tenant.stream("S").read(as_="arrow").to_pylist()
    keys = [repr(0.0 if row["Id"] == 0 else row["Id"]) for row in found]
    assert sorted(map(repr, [*before, 8.0])) == sorted(keys)
    assert ["a", "a", "c"] == sorted(row["v"] for row in found)


def test_minus_zero_and_nan_in_cells(open_finding, memory):
    """The sign of a zero is a change, NaN equals itself; one that was set again to it is untouched."""
    tenant = open_finding(memory)
    for values in ([0.0, 1.0, NAN], [-0.0, NAN, 2.0], [-0.0, NAN, 3.0]):
        tenant.stream("S").update(rows(Id=[1, 2, 3], v=values), key="Id")

    done = tenant.revert(1).streams["S"]

    assert {1: "0.0", 2: "1.0", 3: "3.0"} == {
        key: repr(row["v"]) for key, row in held(tenant.stream("S")).items()
    }
    assert (2, 1) == (done.cells, done.kept_cells)


def test_a_nested_cell_is_one_cell(open_finding, memory):
    """Of lists, objects and what is empty so far, too."""
    tenant = open_finding(memory)
    for tags, place in (([["a"], []], [{"x": 1}, None]), ([["b"], ["c"]], [{"x": 2}, {"x": 3}])):
        tenant.stream("S").update(rows(Id=[1, 2], tags=tags, place=place), key="Id")
    tenant.stream("S").update(rows(Id=[2], place=[{"x": 4}]))

    tenant.revert(1)

    assert {1: {"tags": ["a"], "place": {"x": 1}}, 2: {"tags": [], "place": {"x": 4}}} == held(
        tenant.stream("S")
    )


@pytest.mark.parametrize("other", ["a/b.csv", "A"])
def test_a_deleted_file_returns_where_its_path_is_free(open_finding, memory, other):
    """A folder of that name, or another spelling of it, keeps it away."""
    tenant = open_finding(memory)
    tenant.files.write("a", b"1")
    tenant.files.write("free", b"1")
    with tenant.job() as job:
        job.files.delete("a")
        job.files.delete("free")
    tenant.files.write(other, b"2")

    done = tenant.revert(2)

    assert (("free",), ("a",)) == (done.files_written, done.files_kept)


def test_a_commit_in_between_is_seen(tenant, memory, open_finding):
    """What another job commits while a reversion is worked out is not lost: it is worked out again."""
    others = iter([{"Id": [1], "a": ["meanwhile"]}, {"Id": [9], "a": ["more"]}])

    def commit_meanwhile(_, __):
        for columns in others:
            open_finding(memory).stream("Account").update(rows(**columns))
            break

    done = with_check(tenant, commit_meanwhile).revert(1)

    found = held(tenant.stream("Account"))
    assert ({"a": "meanwhile", "b": 1}, {"a": "more"}) == (found[1], found[9])
    assert CHANGED == done.streams["Account"].kept[0].reason


def test_a_tenant_that_keeps_changing_is_a_conflict(tenant, memory, open_finding):
    """After so many tries; nothing of it was written."""
    number = iter(range(1000))

    def commit_always(_, __):
        open_finding(memory).stream("Lead").update(rows(Id=[next(number)]), key="Id")

    with pytest.raises(ConflictError, match="kept changing"):
        with_check(open_finding(memory, commit_tries_max=3), commit_always).revert(1)

    assert "X" == held(tenant.stream("Account"))[1]["a"]


def test_the_same_request_again_is_told_what_it_did(tenant):
    """One version, whatever came since."""
    asked = with_request(tenant, RequestContext("r", "request-1"))
    done = asked.revert(1)
    tenant.stream("Account").update(rows(Id=[1], a=["since"]))

    again = asked.revert(1)

    assert (done.streams, done.tenant_version, True) == (again.streams, again.tenant_version, again.committed)
    assert 4 == tenant.version


def test_several_versions_go_back_as_one(tenant, open_finding, memory):
    """What came after them stays; what one of them undid of another is no change. One request, one answer."""
    tenant.stream("Account").update(rows(Id=[1, 6], b=[11, 66]))
    tenant.restore(1)
    tenant.set_retention(keep_versions=50)
    tenant.stream("Account").update(rows(Id=[4], a=["since"]))
    asked = with_request(tenant, RequestContext("r", "request-1"))

    told = tenant.revert((1, 4), dry_run=True)
    done = asked.revert((1, 4), message="wrong")

    account = done.streams["Account"]
    assert (told.streams, 1, None) == (done.streams, done.since, done.job_id)
    assert ((1, 2, 1), 1) == (counts(account), account.kept_rows)
    assert {1: {"a": "x", "b": 1}, 2: {"a": "y", "b": 2}, 3: {"a": "z", "b": 3}} == {
        key: row for key, row in held(tenant.stream("Account")).items() if key < 4
    }
    assert [4] == [key for key in held(tenant.stream("Account")) if key > 3]
    assert (b"old", b"old", False) == (
        *(tenant.files.read(path) for path in ("map.csv", "both.csv")),
        tenant.files.exists("new.csv"),
    )
    assert "revert versions 1 to 4: wrong" == tenant.history(1)[0].message
    assert (
        done.streams
        == with_request(open_finding(memory), asked.context.request_context).revert((1, 4)).streams
    )


def test_versions_that_undid_each_other_change_nothing(tenant):
    """Their table has other files, and just the rows of before."""
    for city in ("Chur", "Bern"):
        tenant.stream("City").update(rows(Id=[1], a=[city]), key="Id")
    tenant.stream("City").update(rows(Id=[1], a=["Chur"]))
    version = tenant.version

    done = tenant.revert((version - 1, version))

    assert ({}, False, version) == (dict(done.streams), done.committed, tenant.version)


def test_versions_that_nobody_changed_since_go_back_whole(tenant):
    """The stream is then the table from before them."""
    tenant.revert((0, 2))

    assert ((), False) == (tenant.streams(), tenant.files.exists("map.csv"))


def test_more_rows_than_memory_should_hold_are_refused(tenant, monkeypatch):
    """Of a stream that was changed since; a whole table may have any size: the log has its counts."""
    monkeypatch.setattr(reverting, "ROWS_MAX", 2)
    monkeypatch.setattr(comparison, "COUNTED_ROWS_MAX", 2)

    with pytest.raises(TooLarge, match="More than 2 rows"):
        tenant.revert(1)

    effect = tenant.revert(2, dry_run=True).streams["Account"]
    assert ((0, 2, 1), None) == (counts(effect), effect.cells)
    effect = tenant.revert((1, 2), dry_run=True).streams["Account"]
    assert ((1, 4, 3), None) == (counts(effect), effect.cells)


@pytest.mark.sampled
def test_a_reversion_is_whole_or_not_at_all(tenant, memory, open_finding):
    """Whichever call to the storage is its last; then it can be done."""

    def content(reader):
        files = {file.path: reader.files.read(file.path) for file in reader.files.list()}
        return held(reader.stream("Account")), files

    start, old = memory.copy(), content(tenant)
    tenant.revert(1)
    new = content(tenant)
    for number in sampled(range(60)):
        for way in by_turns((Way.CUT_AFTER, Way.FAIL_AFTER, Way.CUT_BEFORE), number):
            storage = start.copy()
            faulty = FaultyStorage(storage, [Fault(number, way)])
            with contextlib.suppress(Crash, FreezeframeError):
                open_finding(faulty).revert(1)
            assert content(open_finding(storage)) in (old, new), (number, way)
            again = open_finding(storage)
            again.revert(1)
            assert new == content(again), (number, way)


# Random histories, and a model of a stream: the types of its columns, and its cells by key.


def play(open_finding, seed, steps):
    """Play a random history, each reversion beside the model; return how many committed."""
    dice, storage, done = random.Random(seed), MemoryStorage(), 0
    tenant, past = open_finding(storage, keep_versions=10_000), []
    for step in range(steps):
        if dice.random() < 0.6 or not past:
            random_change(dice, tenant)
        else:
            done += revert_beside_model(dice, tenant, past, (seed, step))
        while len(past) <= tenant.version:
            past.append(state_of(tenant.at(len(past))))
    return done


def revert_beside_model(dice, tenant, past, place):
    version = max(0, len(past) - 1 - int(dice.expovariate(0.25)))
    before = past[version - 1] if version else ({}, {})
    after, now = past[version], past[-1]
    name = dice.choice(NAMES)
    only = [name] if dice.random() < 0.4 else None
    limit = dice.randint(1, 5) if only and dice.random() < 0.5 else None
    chosen = (lambda key: key < limit) if limit else None
    streams, files, told = reverted(before, after, now, only, chosen)
    if only and not any(one in side for one in only for state in (before, after, now) for side in state):
        return 0
    where = None if limit is None else f"Id < {limit}"

    result = tenant.revert(version, only=only, where=where)

    found = state_of(tenant)
    assert (streams, files) == ({one: item[2] for one, item in found[0].items()}, found[1]), place
    for one, (cells, kept) in told.items():
        effect = result.streams.get(one)
        seen = (
            (0, {})
            if effect is None
            else (
                effect.cells,
                {row.key["Id"]: len(row.cells) for row in effect.kept},
            )
        )
        assert (cells, kept) == seen, (place, one)
    return int(result.committed)


@pytest.mark.stateful
@pytest.mark.parametrize("seed", range(2))
def test_random_histories_equal_a_model(open_finding, seed):
    """Upserts, extracts, overrides, drops, restorations and files, and any version taken back."""
    assert play(open_finding, seed, 60) > 5


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 160))
def test_random_histories_equal_a_model_for_long(open_finding, seed):
    """The same, for longer."""
    assert play(open_finding, seed, 300) > 20
