"""A compacted file stands for its commits: the state over it is the state over them."""

import json

import pytest

from freezeframe.errors import CorruptLog, InvalidOption
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import DomainMetadata, Txn
from freezeframe.log.primitives.paths import commit_name
from freezeframe.log.table.upkeep import compact_log


def busy(table):
    for number in range(4):
        table.append([number])
    begun = table.begin()
    path = begun.snapshot.files["path"][0].as_py()
    begun.commit([*table.remove_all(begun)[:2], Txn("job", 1), DomainMetadata("d", "1")], "X")
    table.begin().commit([DomainMetadata("d", "1", removed=True), Txn("job", 2)], "X")
    return path


def state(snapshot):
    return (
        {row["path"] for row in snapshot.files.to_pylist()},
        {row["path"] for row in snapshot.tombstones.to_pylist()},
        snapshot.transactions,
        snapshot.domains,
        snapshot.metadata,
    )


def test_the_state_is_the_same_and_the_file_is_used(table):
    """A reader takes the compacted file in place of the commits and sees the same state."""
    busy(table)
    wanted = state(table.fresh())
    name = compact_log(table.storage, table.log.folder, 2, 6)
    found = DeltaLog(table.storage, "t").update()
    assert name in [file.name for file in found.segment.deltas]
    assert state(found) == wanted


def test_it_holds_removes_and_no_commit_info(table):
    """Behaviour 25: removes survive; the commits' own descriptions do not, and nothing changes data."""
    busy(table)
    name = compact_log(table.storage, table.log.folder, 1, 6)
    lines = [json.loads(line) for line in table.storage.read(f"t/_delta_log/{name}").splitlines()]
    kinds = [key for line in lines for key in line]
    assert (kinds.count("add"), kinds.count("remove"), kinds.count("commitInfo")) == (2, 2, 0)
    assert not any(body.get("dataChange") for line in lines for body in line.values())
    assert [line for line in lines if "domainMetadata" in line] == [
        {"domainMetadata": {"domain": "d", "configuration": "1", "removed": True}}
    ]


def test_doing_it_twice_is_fine(table):
    """The second time finds it done."""
    busy(table)
    first = compact_log(table.storage, table.log.folder, 1, 3)
    content = table.storage.read(f"t/_delta_log/{first}")
    assert first == compact_log(table.storage, table.log.folder, 1, 3)
    assert content == table.storage.read(f"t/_delta_log/{first}")


@pytest.mark.parametrize(("start", "end"), [(3, 3), (4, 2), (-1, 2)])
def test_less_than_two_commits_are_not_compacted(table, start, end):
    """A range that is none is refused."""
    with pytest.raises(InvalidOption):
        compact_log(table.storage, table.log.folder, start, end)


def test_commits_that_are_not_there_are_not_compacted(table):
    """A range beyond the log's end writes nothing."""
    with pytest.raises(FileNotFoundError):
        compact_log(table.storage, table.log.folder, 0, 5)


def test_commits_that_change_nothing_make_no_file(table):
    """Commits with nothing but notes (as a vacuum leaves them) would make an empty file: there is none."""
    for _ in range(3):
        table.begin().commit([], "VACUUM END")
    assert compact_log(table.storage, table.log.folder, 1, 3) is None
    assert table.fresh().version == 3
    assert not any("compacted" in status.name for status in table.storage.list_from(table.log.folder))


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: b"\xff\xfe" + whole,
        lambda whole: whole.replace(b'{"add":{', b'{"add":[', 1),
        lambda whole: b"[]\n" + whole,
    ],
    ids=["empty", "cut off", "no text", "no JSON", "no action"],
)
def test_a_damaged_one_is_done_without(table, damage):
    """The commits that a compacted file repeats are there: damage of it costs time and no answer."""
    busy(table)
    wanted = state(table.fresh())
    name = f"{table.log.folder}/{compact_log(table.storage, table.log.folder, 2, 6)}"
    table.storage.replace(name, damage(table.storage.read(name)))
    assert state(DeltaLog(table.storage, "t").update()) == wanted


def test_one_that_goes_after_the_listing_is_done_without(table):
    """A compacted file that retention takes away while it is read costs no answer either."""
    busy(table)
    wanted = state(table.fresh())
    name = compact_log(table.storage, table.log.folder, 2, 6)
    log = DeltaLog(table.storage, "t")
    snapshot = log.current_snapshot
    table.storage.delete(f"{log.folder}/{name}")
    assert state(snapshot) == wanted


def test_damage_of_a_commit_is_told_whether_or_not_it_is_compacted(table):
    """What is damaged beside a compacted file is still an error that names it."""
    busy(table)
    compact_log(table.storage, table.log.folder, 2, 4)
    name = f"{table.log.folder}/{commit_name(6)}"
    table.storage.replace(name, table.storage.read(name)[:-20])
    with pytest.raises(CorruptLog, match="cut off"):
        state(DeltaLog(table.storage, "t").update())
