"""A compacted file stands for its commits: the state over it is the state over them."""

import json

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.log.actions import DomainMetadata, Txn
from freezeframe.log.compaction import compact_log
from freezeframe.log.delta_log import DeltaLog


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
    assert wanted == state(found)


def test_it_holds_removes_and_no_commit_info(table):
    """Behaviour 25: removes survive; the commits' own descriptions do not, and nothing changes data."""
    busy(table)
    name = compact_log(table.storage, table.log.folder, 1, 6)
    lines = [json.loads(line) for line in table.storage.read(f"t/_delta_log/{name}").splitlines()]
    kinds = [key for line in lines for key in line]
    assert (2, 2, 0) == (kinds.count("add"), kinds.count("remove"), kinds.count("commitInfo"))
    assert not any(body.get("dataChange") for line in lines for body in line.values())
    assert [{"domainMetadata": {"domain": "d", "configuration": "1", "removed": True}}] == [
        line for line in lines if "domainMetadata" in line
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
