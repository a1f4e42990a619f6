"""Replay: the last action of each file wins, whatever the order, the size and the route."""

import random
import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.log.tables import TableBuilder, all_tombstones, compacted_name, file, paths

from freezeframe.errors import CorruptLog
from freezeframe.log.format.action_columns import FileActions, from_adds, from_removes, to_adds, to_removes
from freezeframe.log.format.actions import Add, DeletionVector, Remove
from freezeframe.log.primitives.arrow import RUNS_MAX, select_rows
from freezeframe.log.primitives.listing import find_repeated, fingerprints, rows_with
from freezeframe.log.primitives.paths import commit_name
from freezeframe.log.segments.replay import FileState, apply_actions, younger_than


def vector(number):
    return None if number is None else DeletionVector("u", f"vector-{number}", 10, 1, number)


ACTIONS = st.lists(
    st.lists(
        st.tuples(
            st.booleans(),
            st.sampled_from(["a", "b", "part-00000-with-a-longer-name.parquet", "p=1/x", ""]),
            st.sampled_from([None, 0, 1]),
            st.integers(0, 1000),
        ),
        max_size=6,
        unique_by=lambda item: (item[1], item[2]),
    ),
    max_size=8,
)


def as_action(one):
    is_add, path, number, size = one
    if is_add:
        return file(path, size=size, deletion_vector=vector(number))
    return Remove(path, 1, deletion_vector=vector(number))


def batch(actions):
    adds = [(at, one) for at, one in enumerate(actions) if isinstance(one, Add)]
    removes = [(at, one) for at, one in enumerate(actions) if isinstance(one, Remove)]
    return FileActions(
        from_adds(one for _, one in adds),
        np.array([at for at, _ in adds], dtype=np.int64),
        from_removes(one for _, one in removes),
        np.array([at for at, _ in removes], dtype=np.int64),
    )


def flat(commits):
    return [action for commit in commits for action in commit]


def key(action):
    return action.path, action.deletion_vector


@given(ACTIONS, st.integers(0, 8))
@settings(max_examples=examples(150))
def test_b053_replay_is_a_dictionary(commits, split):
    """Any commits, replayed at once, in two parts or one by one, are the dictionary's answer."""
    commits = [[as_action(item) for item in commit] for commit in commits]
    account = {key(action): action for commit in commits for action in commit}
    live = {k: a.size for k, a in account.items() if isinstance(a, Add)}
    gone = {k for k, a in account.items() if isinstance(a, Remove)}
    routes = [
        [flat(commits)],
        [flat(commits[:split]), flat(commits[split:])],
        commits,
    ]
    for route in routes:
        state = FileState.empty()
        for actions in route:
            state = apply_actions(state, batch(actions))
        assert live == {key(add): add.size for add in to_adds(state.files)}
        assert gone == {key(remove) for remove in to_removes(state.tombstones)}
        assert (len(live), sum(live.values())) == (state.count, state.size)
        assert not any(add.data_change for add in to_adds(state.files))


def test_b053_the_same_path_with_another_vector_is_another_file():
    """A delete by vector removes (path, old vector) and adds (path, new vector)."""
    table = TableBuilder().create().commit(file("f"))
    table.commit(Remove("f", 1), file("f", deletion_vector=vector(1)))
    snapshot = table.log().current_snapshot
    assert [row["pathOrInlineDv"] for row in snapshot.files["deletion_vector"].to_pylist()] == ["vector-1"]
    assert all_tombstones(snapshot)["deletion_vector"].to_pylist() == [None]


def test_b053_a_file_that_is_added_again_is_no_tombstone():
    """Delete and re-add: the file lives, once."""
    table = TableBuilder().create().commit(file("f")).commit(Remove("f", 1)).commit(file("f", size=7))
    snapshot = table.log().current_snapshot
    assert (
        snapshot.files["path"].to_pylist(),
        snapshot.files["size"].to_pylist(),
        all_tombstones(snapshot).num_rows,
    ) == (["f"], [7], 0)


def test_b025_a_remove_without_a_time_survives_compaction():
    """A compacted file keeps the remove, so the file stays gone."""
    table = TableBuilder().create().commit(file("f")).commit(file("g")).commit(Remove("f")).compact(2, 3)
    snapshot = table.log().current_snapshot
    assert len(snapshot.segment.compacted) == 1
    assert snapshot.files["path"].to_pylist() == ["g"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: b"\xff\xfe" + whole,
        lambda whole: whole.replace(b'{"add":{', b'{"add":[', 1),
        lambda whole: b"[]\n" + whole,
        None,
    ],
    ids=["empty", "cut off", "no text", "no JSON", "no action", "gone after the listing"],
)
def test_a_damaged_compacted_file_is_done_without(damage):
    """The commits that it repeats are there: damage costs time; that of a commit beside it is an error."""
    table = TableBuilder().commits(8).commit(Remove("f2", 1)).compact(2, 6)
    name = f"{table.folder}/{compacted_name(2, 6)}"
    snapshot = table.log().current_snapshot
    if damage is None:
        table.storage.delete(name)
    else:
        table.storage.replace(name, damage(table.storage.read(name)))
        snapshot = table.log().current_snapshot
    assert table.live() == paths(snapshot)
    newest = f"{table.folder}/{commit_name(8)}"
    table.storage.replace(newest, table.storage.read(newest)[:-20])
    with pytest.raises(CorruptLog, match="cut off"):
        table.log()


def test_a_large_state_stays_right_through_many_small_commits():
    """A thousand files and fifty commits that touch some of them: the same as replayed at once."""
    table = TableBuilder().create().commit(*(file(f"f{number}") for number in range(1000)))
    log = table.log()
    assert log.current_snapshot.count == 1000
    for number in range(50):
        table.commit(Remove(f"f{number * 7}", 1), file(f"new{number}"), file(f"f{number * 7 + 1}", size=9))
        assert table.live() == paths(log.update())
        assert log.current_snapshot.count == len(table.live())
    assert log.current_snapshot.size == table.log().current_snapshot.size


@pytest.mark.parametrize("step", [1, 2, 3])
def test_rows_are_chosen_alike_in_few_runs_and_in_many(step):
    """Cutting slices and copying rows give the same table."""
    table = from_adds(file(f"f{number}") for number in range(3 * RUNS_MAX))
    wanted = np.arange(table.num_rows) % step == 0
    expected = [f"f{number}" for number in range(0, 3 * RUNS_MAX, step)]
    assert select_rows(table, wanted)["path"].to_pylist() == expected


@given(st.lists(st.text(max_size=80), max_size=60))
def test_equal_texts_have_equal_fingerprints(texts):
    """Fingerprints never miss a repeated text, short or long, in any alphabet."""
    column = from_adds(file(text) for text in [*texts, *texts])["path"]
    marks = fingerprints(column)
    assert list(range(2 * len(texts))) == find_repeated(marks).tolist()
    assert set(range(2 * len(texts))) == set(rows_with(marks, marks).tolist())


@pytest.mark.parametrize("count", [0, 1, 30, 1_024, 3_000])
def test_rows_with_fingerprints_are_those_that_have_them(count):
    """Few are found by a sieve, many by hashing; some wanted ones are not there, others twice."""
    chance = np.random.default_rng(count)
    marks = chance.integers(0, 1 << 63, 20_000, dtype=np.uint64) * np.uint64(2)
    marks[7] = marks[19_999]
    wanted = np.concatenate(
        [marks[chance.integers(0, 20_000, count // 2)], marks[7:8], marks[:1] + np.uint64(1)]
    )
    assert rows_with(marks, wanted).tolist() == np.flatnonzero(np.isin(marks, wanted)).tolist()


def test_fingerprints_tell_usual_file_names_apart():
    """Names of Spark's kind, a job's parts among them: none shares its fingerprint."""
    numbers = random.Random(1)
    ids = [uuid.UUID(int=numbers.getrandbits(128)) for _ in range(20)]
    names = [f"p={p}/part-{n:05d}-{id_}.c000.snappy.parquet" for id_ in ids for p in "ab" for n in range(500)]
    assert find_repeated(fingerprints(from_adds(file(name) for name in names)["path"])).tolist() == []


def test_b055_a_tombstone_is_expired_at_the_moment_itself():
    """One without a moment as well."""
    deleted = pa.chunked_array([pa.array([999, 1_000, 1_001, None], pa.int64())])
    assert [False, False, True, False] == younger_than(deleted, 1_000).tolist()
