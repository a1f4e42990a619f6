"""Checkpoints in parts: all of them or none, and never parts of two writers."""

import json
import threading

import pytest
from tests.log.write.test_checkpoint_writer import NEVER, busy, state, without_commits

from freezeframe.errors import StorageUnavailable
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.primitives.paths import checkpoint_part_name
from freezeframe.log.segments.checkpoint import SETS_MAX, write_parts
from freezeframe.log.table.upkeep import write_checkpoint
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way

LOG = "t/_delta_log"


def parts_of(storage):
    return [status.name for status in storage.list_from(LOG) if ".checkpoint." in status.name]


def test_the_parts_together_hold_the_whole_state(make_table):
    """One action a part: read from the parts alone, the state is that of the commits."""
    table = busy(make_table(MemoryStorage(), NEVER))
    before = table.fresh()
    wanted = state(before)
    hint = write_checkpoint(before, part_actions_max=1)
    actions = before.count + before.tombstones.num_rows
    assert [checkpoint_part_name(6, part, actions) for part in range(1, actions + 1)] == parts_of(
        table.storage
    )
    without_commits(table.storage, before.version)
    assert state(table.fresh()) == wanted
    assert actions == hint.parts == json.loads(table.storage.read(f"{LOG}/_last_checkpoint"))["parts"]


def test_a_crash_between_parts_leaves_the_old_state(make_table):
    """Killed before or after any call, the next reader has the same state, and the next writer succeeds."""
    table = busy(make_table(MemoryStorage(), NEVER))
    wanted = state(table.fresh())
    faulty = FaultyStorage(table.storage)
    write_checkpoint(DeltaLog(faulty, "t").current_snapshot, part_actions_max=2)
    begin = next(at for at, call in enumerate(faulty.calls) if call.verb == "put_if_absent")
    clean = parts_of(table.storage)
    for call in range(begin, len(faulty.calls)):
        for way in (Way.CUT_BEFORE, Way.CUT_AFTER):
            for name in [*parts_of(table.storage), "_last_checkpoint"]:
                table.storage.delete(f"{LOG}/{name}")
            dying = FaultyStorage(table.storage, [Fault(call, way)])
            with pytest.raises(Crash):
                write_checkpoint(DeltaLog(dying, "t").current_snapshot, part_actions_max=2)
            assert state(DeltaLog(table.storage, "t").current_snapshot) == wanted
            hint = write_checkpoint(table.fresh(), part_actions_max=2)
            assert hint.parts in (len(clean), len(clean) + 1)
            assert table.fresh().segment.checkpoint_version == 6
            assert state(table.fresh()) == wanted


def test_two_writers_never_share_a_set_of_parts():
    """Writers that cut the state in different places: each set of parts that is whole is of one of them."""
    for _ in range(20):
        storage, barrier = MemoryStorage(), threading.Barrier(3)

        def write(name, storage=storage, barrier=barrier):
            barrier.wait()
            write_parts(storage, LOG, 4, 3, lambda part, _parts: f"{name} {part}".encode())

        writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        found = {name: storage.read(f"{LOG}/{name}").decode().split() for name in parts_of(storage)}
        for parts in {name.split(".")[3] for name in found}:
            authors = [author for name, (author, _) in found.items() if name.split(".")[3] == parts]
            assert int(parts) == len(authors)
            assert len(set(authors)) == 1


def test_a_checkpoint_that_is_there_is_taken():
    """Parts that another writer has completed are as good as one's own."""
    storage = MemoryStorage()
    assert write_parts(storage, LOG, 4, 3, lambda part, _: str(part).encode()) == (3, 3)
    assert write_parts(storage, LOG, 4, 3, lambda _part, _parts: b"other") == (3, 0)


def test_sets_that_others_began_are_left_alone():
    """Where every set of names is begun, nothing is written over and the caller is told."""
    storage = MemoryStorage()
    for parts in range(2, 2 + SETS_MAX):
        storage.put_if_absent(f"{LOG}/{checkpoint_part_name(4, 1, parts)}", b"begun")
    before = parts_of(storage)
    with pytest.raises(StorageUnavailable, match="could not be written"):
        write_parts(storage, LOG, 4, 2, lambda _part, _parts: b"mine")
    assert before == parts_of(storage)


def test_a_foreign_part_is_an_error():
    """A part that somebody creates behind the first one's back is not taken for ours."""
    storage = MemoryStorage()

    def content(part, parts):
        if part == 1:
            storage.put_if_absent(f"{LOG}/{checkpoint_part_name(4, 2, parts)}", b"foreign")
        return b"mine"

    with pytest.raises(StorageUnavailable, match="there already"):
        write_parts(storage, LOG, 4, 2, content)
