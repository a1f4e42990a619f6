"""What follows a commit: when it is due it is done, and when it fails the commit stands."""

from dataclasses import replace

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.log.segments.commit import Committed
from freezeframe.log.table.checksum_writer import checksum_of, checksum_text
from freezeframe.log.table.upkeep import Upkeep, after_commit
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import FaultyStorage


def named(table, part):
    return [status.name for status in table.storage.list_from("t/_delta_log") if part in status.name]


@pytest.mark.parametrize(
    ("upkeep", "configuration", "versions"),
    [
        (Upkeep(), {}, [10]),
        (Upkeep(), {"checkpointInterval": "4"}, [4, 8]),
        (Upkeep(checkpoint_interval=5), {"checkpointInterval": "4"}, [5, 10]),
        (Upkeep(), {"checkpointInterval": "nonsense"}, [10]),
    ],
)
def test_checkpoints_come_at_their_interval(make_table, upkeep, configuration, versions):
    """The caller's interval counts, else the table's property, else ten."""
    table = make_table(MemoryStorage(), upkeep, **configuration)
    table.create()
    for number in range(11):
        table.append([number])
    assert [f"{version:020d}.checkpoint.parquet" for version in versions] == named(table, ".checkpoint.")


def test_compaction_comes_at_its_interval(make_table):
    """Every so many commits are compacted into one file."""
    table = make_table(MemoryStorage(), Upkeep(compaction_interval=3))
    table.create()
    for number in range(6):
        table.append([number])
    assert [f"{a:020d}.{b:020d}.compacted.json" for a, b in ((0, 2), (3, 5))] == named(table, "compacted")


def test_checksums_can_be_left_out(make_table):
    """Behaviour 60: a version has its checksum, unless that is switched off."""
    for wanted in (True, False):
        table = make_table(MemoryStorage(), Upkeep(write_checksums=wanted))
        table.create()
        table.append([1])
        assert (2 if wanted else 0) == len(named(table, ".crc"))


def test_upkeep_that_fails_is_told_to_the_log_only(make_table, caplog):
    """A commit whose checkpoint cannot be written is a commit, and the next writer makes up for it."""

    class NoCheckpoints(MemoryStorage):
        def put_if_absent(self, name, content):
            if "checkpoint" in name:
                FaultyStorage(self).read("never there")
            super().put_if_absent(name, content)

    table = make_table(NoCheckpoints(), Upkeep(checkpoint_interval=1))
    table.create()
    assert Committed(1) == table.append([1])
    assert "upkeep after version 1" in caplog.text


def test_a_checksum_that_does_not_fit_stops_the_checkpoint(make_table, caplog):
    """Behaviour 63: no checkpoint is made of a state that the checksums contradict."""
    table = make_table(MemoryStorage(), Upkeep(checkpoint_interval=2))
    table.create()
    table.append([1])
    wrong = replace(checksum_of(table.fresh()), num_files=9)
    table.storage.replace(f"t/_delta_log/{1:020d}.crc", checksum_text(wrong).encode())
    assert Committed(2) == table.append([2])
    assert named(table, ".checkpoint.") == []
    assert "DELTA" in caplog.text or "numFiles" in caplog.text


def test_who_lands_a_version_elsewhere_asks_for_its_upkeep(table):
    """A version landed by other means gets its checksum without its actions being told."""
    table.append([1])
    table.storage.delete(f"t/_delta_log/{1:020d}.crc")
    after_commit(table.log, 1)
    assert f"{1:020d}.crc" in named(table, ".crc")


@pytest.mark.parametrize("wrong", [{"checkpoint_interval": 0}, {"compaction_interval": 1}])
def test_intervals_must_make_sense(wrong):
    """An interval that could never be is refused."""
    with pytest.raises(InvalidOption):
        Upkeep(**wrong)
