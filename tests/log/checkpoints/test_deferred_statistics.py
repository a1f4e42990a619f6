"""Statistics in a large checkpoint are read when they are asked for, and are what they were."""

import json
import logging
import random
import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.log.tables import TableBuilder
from tests.log.test_counted_work import CountingStorage

from freezeframe.log.format.actions import Add, Remove
from freezeframe.log.primitives.arrow import system_memory
from freezeframe.log.primitives.listing import newest_checkpoint, sort_listing
from freezeframe.log.segments import replay, state_reader
from freezeframe.log.table.upkeep import write_checkpoint
from freezeframe.storage import LocalStorage, MemoryStorage


@pytest.fixture
def deferring(monkeypatch):
    """Statistics of checkpoints of any size are deferred."""
    monkeypatch.setattr(state_reader, "DEFERRED_FROM_BYTES", 1)
    monkeypatch.setattr(state_reader, "WHOLE_FILE_BYTES_MAX", 0)


def statistics(number):
    return json.dumps({"numRecords": 1, "minValues": {"id": number}, "maxValues": {"id": number}})


def add(number):
    return Add(f"{number}.parquet", size=number + 1, stats=statistics(number) if number % 7 else None)


def texts(files):
    return dict(zip(files["path"].to_pylist(), files["stats"].to_pylist(), strict=True))


def test_what_needs_no_statistics_fetches_none():
    """From a bucket, keys and sizes of a large checkpoint's files come without its statistics."""
    table = TableBuilder(MemoryStorage()).create()
    table.commit(
        *[Add(f"{number}.parquet", size=1, stats=f'{{"numRecords":1,"x":"{uuid.uuid4()}{uuid.uuid4()}"}}')
          for number in range(120_000)]
    )  # fmt: skip
    write_checkpoint(table.log().update())
    storage = table.storage = CountingStorage(table.storage)
    log = table.log()
    checkpoint = newest_checkpoint(sort_listing(log.list_from(0)).checkpoint_files)
    size = sum(file.size for file in checkpoint.files)
    assert size >= state_reader.DEFERRED_FROM_BYTES
    storage.bytes = 0
    snapshot = log.current_snapshot
    assert (snapshot.count, snapshot.size, snapshot.file_list.num_rows) == (120_000, 120_000, 120_000)
    assert "stats" not in snapshot.file_list.column_names
    assert storage.bytes < size / 3
    assert snapshot.files["stats"].null_count == 0
    assert storage.bytes < 1.2 * size


@pytest.mark.parametrize("seed", range(6))
def test_deferred_statistics_follow_their_files(deferring, monkeypatch, tmp_path, seed):
    """Through removals, additions of the same files and compactions of the state."""
    monkeypatch.setattr(replay, "RECENT_ROWS_MIN", 3)
    chance = random.Random(seed)
    table = TableBuilder(LocalStorage(tmp_path)).create()
    live = dict.fromkeys(range(40))
    table.commit(*(add(number) for number in live))
    write_checkpoint(table.log().update())
    log = table.log()
    for step in range(12):
        gone = chance.sample(sorted(live), 4)
        new = [1000 * (step + 1) + number for number in range(chance.randrange(5))] + gone[:1]
        table.commit(*(Remove(f"{number}.parquet") for number in gone), *(add(number) for number in new[:-1]))
        table.commit(add(new[-1]))
        for number in gone:
            live.pop(number)
        live |= dict.fromkeys(new)
        expected = {item.path: item.stats for item in map(add, live)}
        snapshot = log.update()
        assert sorted(snapshot.file_list["path"].to_pylist()) == sorted(expected)
        if step % 3 == seed % 3:
            assert texts(snapshot.files) == expected
    assert texts(log.current_snapshot.files) == expected


def checkpointed(table, **versions):
    write_checkpoint(table.log().snapshot_at(**versions))


def test_statistics_of_a_checkpoint_that_was_cleaned_up_come_from_a_later_one(deferring, tmp_path):
    """A log that followed commits past a checkpoint reads what has replaced it."""
    table = TableBuilder(LocalStorage(tmp_path)).create().commit(*map(add, range(20)))
    checkpointed(table, version=1)
    log = table.log()
    assert log.current_snapshot.count == 20
    table.commit(add(20))
    checkpointed(table, version=2)
    snapshot = log.update()
    assert snapshot.count == 21
    table.storage.delete(f"{table.folder}/{1:020d}.checkpoint.parquet")
    assert texts(snapshot.files) == {item.path: item.stats for item in map(add, range(21))}


def test_statistics_that_are_nowhere_else_are_null_with_a_warning(deferring, tmp_path, caplog):
    """Rows are found all the same: the files are known, and none is left out."""
    table = TableBuilder(LocalStorage(tmp_path)).create().commit(*map(add, range(20)))
    checkpointed(table, version=1)
    snapshot = table.log().current_snapshot
    assert snapshot.count == 20
    table.storage.delete(f"{table.folder}/{1:020d}.checkpoint.parquet")
    table.storage.delete(f"{table.folder}/{0:020d}.json")
    with caplog.at_level(logging.WARNING):
        assert texts(snapshot.files) == dict.fromkeys(f"{number}.parquet" for number in range(20))
    assert [record for record in caplog.records if "statistics" in record.message]


def test_damaged_statistics_are_taken_from_the_commits(deferring, tmp_path):
    """A byte of them that has changed is noticed by the page's checksum when they are read."""
    table = TableBuilder(LocalStorage(tmp_path)).create().commit(*map(add, range(400)))
    checkpointed(table, version=1)
    name = f"{table.folder}/{1:020d}.checkpoint.parquet"
    content = table.storage.read(name)
    at = content.index(b'"minValues"')
    table.storage.replace(name, content[:at] + b"~" + content[at + 1 :])
    snapshot = table.log().current_snapshot
    assert snapshot.count == 400
    assert texts(snapshot.files) == {item.path: item.stats for item in map(add, range(400))}


def test_of_the_keys_named_the_files_are_given_without_statistics(deferring):
    """What a writer compares has no column that may say something else than the checkpoint."""
    table = TableBuilder().create().commit(*map(add, range(5)))
    checkpointed(table, version=1)
    state = table.log().current_snapshot.state.files
    found = state.of_keys(pa.chunked_array([["3.parquet", "9.parquet"]]))
    assert found["path"].to_pylist() == ["3.parquet"]
    assert "stats" not in found.column_names
    assert pc.sum(state.live["size"]).as_py() == state.size


def test_arrow_has_its_own_allocator_again_after_large_files():
    """Blocks may lie within each other."""
    before = pa.default_memory_pool().backend_name
    with system_memory():
        with system_memory():
            assert pa.default_memory_pool().backend_name == "system"
        assert pa.default_memory_pool().backend_name == "system"
    assert pa.default_memory_pool().backend_name == before
