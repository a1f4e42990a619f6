"""A condensed log: what is done with the parts that somebody else makes. Spark makes them in tests/engine."""

import pytest
from tests.log.test_checkpoint_writer import NEVER, busy, state, without_commits

from freezeframe.errors import EngineUnavailable
from freezeframe.log.checkpoint_rows import SIDECAR_SCHEMA, file_rows
from freezeframe.log.checkpoint_writer import parquet_bytes
from freezeframe.log.condensed import write_condensed_checkpoint
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.hint import parse_hint
from freezeframe.storage import MemoryStorage


class OwnCondenser:
    """Makes the parts in this process, three of them."""

    def __init__(self, storage):
        self.storage = storage

    def condense(self, _checkpoint, _commits, output, **_options):
        folder = output.removeprefix(f"{self.storage.root}/")
        snapshot = DeltaLog(self.storage, "t").current_snapshot
        for number in range(3):
            begin, end = snapshot.count * number // 3, snapshot.count * (number + 1) // 3
            adds = snapshot.files.slice(begin, end - begin)
            tables = list(file_rows(adds, "add", SIDECAR_SCHEMA))
            if number == 0:
                tables += file_rows(snapshot.tombstones, "remove", SIDECAR_SCHEMA)
            self.storage.put_if_absent(f"{folder}/part-{number}", parquet_bytes(SIDECAR_SCHEMA, tables))
        return tuple(f"part-{number}" for number in range(3))


class DeadCondenser(OwnCondenser):
    """Dies when it has written something."""

    def condense(self, checkpoint, commits, output, **options):
        super().condense(checkpoint, commits, output, **options)
        raise EngineUnavailable("Gone.", remedy="Run it again.")


def test_the_parts_become_a_checkpoint(make_table):
    """Read from the checkpoint alone, the state is that of the commits; nothing else stays."""
    table = busy(make_table(MemoryStorage(), NEVER))
    before = table.fresh()
    wanted = state(before)
    hint = write_condensed_checkpoint(before, OwnCondenser(table.storage), now_ms=before.timestamp)
    assert (3, before.count) == (hint.parts, hint.num_of_add_files)
    assert hint.size == before.count + before.tombstones.num_rows + len(
        before.small_actions(before.state.heads)
    )
    stored = parse_hint(table.storage.read("t/_delta_log/_last_checkpoint"))
    assert (hint.size, 3, hint.num_of_add_files) == (stored.size, stored.parts, stored.num_of_add_files)
    without_commits(table.storage, before.version)
    assert wanted == state(table.fresh())
    assert [] == list(table.storage.list_below("t/_delta_log/_condensed"))


def test_a_checkpoint_that_somebody_else_completed_is_taken(make_table):
    """Written twice, it is there once, and its hint keeps the numbers of who wrote it."""
    table = busy(make_table(MemoryStorage(), NEVER))
    before = table.fresh()
    write_condensed_checkpoint(before, OwnCondenser(table.storage), now_ms=before.timestamp)
    hint = table.storage.read("t/_delta_log/_last_checkpoint")
    again = write_condensed_checkpoint(before, OwnCondenser(table.storage), now_ms=before.timestamp)
    assert (before.version, 3, None) == (again.version, again.parts, again.size_in_bytes)
    assert hint == table.storage.read("t/_delta_log/_last_checkpoint")


def test_what_a_dead_engine_left_is_cleaned_away(make_table):
    """The error is told, the state is the old one, and no file of the attempt stays."""
    table = busy(make_table(MemoryStorage(), NEVER))
    before = table.fresh()
    names = {status.name for status in table.storage.list_below("t/_delta_log")}
    with pytest.raises(EngineUnavailable):
        write_condensed_checkpoint(before, DeadCondenser(table.storage), now_ms=before.timestamp)
    assert names == {status.name for status in table.storage.list_below("t/_delta_log")}
