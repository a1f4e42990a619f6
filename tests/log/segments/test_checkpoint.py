"""Checkpoints of every kind, whole and damaged."""

import io
import json
import logging
import random
import threading
import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.examples import sampled
from tests.log.table.test_upkeep import NEVER, busy, state, without_commits
from tests.log.tables import UNIQUE_ID, TableBuilder, all_tombstones, file, parquet, paths
from tests.log.test_counted_work import CountingStorage

from freezeframe.errors import CorruptLog, StorageUnavailable
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import (
    Add,
    CheckpointMetadata,
    DomainMetadata,
    Protocol,
    Remove,
    Sidecar,
    Txn,
    to_json_line,
)
from freezeframe.log.primitives.arrow import system_memory
from freezeframe.log.primitives.listing import newest_checkpoint, sort_listing
from freezeframe.log.primitives.paths import (
    SIDECAR_FOLDER,
    checkpoint_name,
    checkpoint_part_name,
    commit_name,
    v2_checkpoint_name,
)
from freezeframe.log.segments import replay, state_reader
from freezeframe.log.segments.checkpoint import SETS_MAX, write_parts
from freezeframe.log.table.upkeep import write_checkpoint
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way

KINDS = ["classic", "parts", "json", "parquet"]
V2 = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))


def rich_table(storage=None):
    """Twelve commits with everything a checkpoint can hold."""
    table = TableBuilder(storage).create(V2).commits(8)
    table.commit(Remove("f3", 5), Txn("app", 4, 9), DomainMetadata("d", '{"a":1}'))
    table.commit(DomainMetadata("gone", "{}"))
    table.commit(DomainMetadata("gone", "{}", removed=True), file("f10", stats='{"numRecords":3}'))
    return table.commits(13)


def checkpoint_files(kind):
    return {
        "classic": [checkpoint_name(10)],
        "parts": [checkpoint_part_name(10, 1, 2), checkpoint_part_name(10, 2, 2)],
        "json": [v2_checkpoint_name(10, UNIQUE_ID, "json"), f"{SIDECAR_FOLDER}/{UNIQUE_ID}.parquet"],
        "parquet": [v2_checkpoint_name(10, UNIQUE_ID, "parquet"), f"{SIDECAR_FOLDER}/{UNIQUE_ID}.parquet"],
    }[kind]


@pytest.mark.parametrize("local", [False, True], ids=["memory", "disk"])
@pytest.mark.parametrize("kind", KINDS)
def test_b034_every_kind_of_checkpoint_gives_the_same_state(kind, local, tmp_path):
    """Read through a checkpoint or from the commits alone, the table is the same."""
    plain = rich_table().log().current_snapshot
    table = rich_table(LocalStorage(tmp_path) if local else None).checkpoint(10, kind)
    snapshot = table.log().current_snapshot
    assert snapshot.segment.checkpoint_version == 10
    assert table.live() == paths(snapshot)
    assert plain.files.sort_by("path").equals(snapshot.files.sort_by("path"))
    assert all_tombstones(plain)["path"].to_pylist() == all_tombstones(snapshot)["path"].to_pylist()
    assert (plain.transactions, plain.domains) == (snapshot.transactions, snapshot.domains)
    assert (plain.protocol, plain.metadata) == (snapshot.protocol, snapshot.metadata)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all, but long enough to look at"])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_b032_a_damaged_checkpoint_is_replaced_by_an_earlier_one(kind, number, damage):
    """Whichever file of it is damaged, the state comes from what is left of the log."""
    table = rich_table().checkpoint(5).checkpoint(10, kind).hint(10)
    files = checkpoint_files(kind)
    table.raw(files[number % len(files)], damage)
    snapshot = table.log().current_snapshot
    assert table.live() == paths(snapshot)


@pytest.mark.parametrize("kind", KINDS)
def test_b032_without_another_way_the_first_error_is_raised(kind):
    """Where the commits below the damaged checkpoint are gone, the damage is named."""
    table = rich_table().checkpoint(10, kind)
    table.delete(*map(commit_name, range(10)))
    name = checkpoint_files(kind)[0]
    table.raw(name, b"{" if name.endswith("json") else b"PAR1 is not enough")
    with pytest.raises(CorruptLog, match="checkpoint") as caught:
        table.log()
    assert caught.value.error_code == "CHECKPOINT_DAMAGED"
    assert name in caught.value.details["file"]


def test_b032_at_most_so_many_checkpoints_are_tried():
    """The number of retries is limited as in Spark."""
    table = rich_table().checkpoint(2)
    for version in (4, 6, 8):
        table.checkpoint(version).raw(checkpoint_name(version), b"PAR1 damaged")
    table.delete(commit_name(0))
    with pytest.raises(CorruptLog) as caught:
        table.log(checkpoint_retries_max=2)
    assert checkpoint_name(8) in caught.value.details["file"]
    assert table.live() == paths(table.log(checkpoint_retries_max=3).current_snapshot)


@pytest.mark.parametrize("retries", [0, 2])
def test_b032_commits_that_are_all_there_give_the_state_without_a_checkpoint(retries):
    """However many checkpoints are damaged, and however few of them are tried."""
    table = rich_table()
    for version in (2, 4, 6, 8):
        table.checkpoint(version).raw(checkpoint_name(version), b"PAR1 damaged")
    assert table.live() == paths(table.log(checkpoint_retries_max=retries).current_snapshot)


@pytest.mark.parametrize("missing", ["protocol", "metaData"])
def test_b033_a_checkpoint_without_protocol_or_metadata_cannot_be_recovered(missing):
    """Delta's own error says which of the two is missing."""
    table = rich_table().checkpoint(10, without=missing)
    table.delete(*map(commit_name, range(10)))
    with pytest.raises(CorruptLog, match=f"The {missing.lower()} of your Delta table") as caught:
        table.log()
    assert caught.value.error_code == "DELTA_STATE_RECOVER_ERROR"


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_b034_sidecars_without_the_checkpoint_metadata_are_damage(kind):
    """A V2 checkpoint that does not say that it is one is not believed."""
    table = rich_table().checkpoint(10, kind, without="checkpointMetadata")
    assert table.live() == paths(table.log().current_snapshot)
    table.delete(*map(commit_name, range(10)))
    with pytest.raises(CorruptLog, match="checkpointMetadata"):
        table.log()


def test_b034_a_checkpoint_of_the_classic_name_may_be_a_v2_one():
    """The content decides, not the name."""
    table = rich_table().checkpoint(10, "parquet")
    content = table.storage.read(f"{table.folder}/{v2_checkpoint_name(10, UNIQUE_ID, 'parquet')}")
    table.delete(v2_checkpoint_name(10, UNIQUE_ID, "parquet")).raw(checkpoint_name(10), content)
    snapshot = table.log().current_snapshot
    assert (10, table.live()) == (snapshot.segment.checkpoint_version, paths(snapshot))


@pytest.mark.parametrize("deferred_from", [1, 2**20])
@pytest.mark.parametrize("kind", ["classic", "parts", "json", "parquet"])
def test_a_file_that_a_checkpoint_has_twice_is_there_once(monkeypatch, kind, deferred_from):
    """Listed twice, in two parts or in two sidecars; with its statistics, also where they are read later."""
    monkeypatch.setattr(state_reader, "DEFERRED_FROM_BYTES", deferred_from)
    table = TableBuilder().create(V2 if kind in {"json", "parquet"} else None)
    for number in range(5):
        table.commit(file(f"f{number}", stats=f'{{"numRecords":{number}}}'))
    expected = [(f"f{number}", f'{{"numRecords":{number}}}') for number in range(5)]
    account = table.accounts[-1]
    repeated = [action for action in account.values() if isinstance(action, Add)]
    account |= {("again", action.path): action for action in repeated[1:4]}
    table.checkpoint(5, kind)
    if kind in {"json", "parquet"}:
        name = v2_checkpoint_name(5, UNIQUE_ID, kind)
        content = parquet(repeated)
        small = [action for action in account.values() if not isinstance(action, Add)]
        small += [CheckpointMetadata(5), *([Sidecar(f"{UNIQUE_ID}.parquet", len(content), 1)] * 2)]
        lines = "".join(f"{to_json_line(action)}\n" for action in small).encode()
        table.raw(name, lines if kind == "json" else parquet(small))
    table.delete(commit_name(4))
    snapshot = table.log().current_snapshot
    found = snapshot.files.select(["path", "stats"]).to_pylist()
    assert expected == sorted((row["path"], row["stats"]) for row in found)
    assert (5, 5) == (snapshot.count, snapshot.size)


def test_b035_a_plain_checkpoint_needs_no_look_for_sidecars():
    """No listing of the sidecar folder and no read of it for a checkpoint that has none."""
    table = rich_table().checkpoint(10)
    storage = FaultyStorage(table.storage)
    TableBuilder(storage).log().current_snapshot.state  # noqa: B018 - loading is what is watched
    assert not [call for call in storage.calls if SIDECAR_FOLDER in call.name]


def test_b036_statistics_that_are_structs_only_come_back_as_json():
    """A checkpoint written without JSON statistics loses none."""
    table = TableBuilder().commits(3)
    parsed = {"numRecords": 3, "minValues": {"id": 1}, "nullCount": {"id": 0}}
    rows = pq.read_table(io.BytesIO(parquet(list(table.accounts[2].values())))).to_pylist()
    for row in rows:
        if row["add"]:
            row["add"] = {key: row["add"][key] for key in ("path", "size", "modificationTime", "dataChange")}
            row["add"] |= {"partitionValues": [("p", "a")], "stats_parsed": parsed}
    kinds = {"protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])}
    wanted = [{k: row[k] for k in ("add",)} for row in rows if row["add"]]
    sink = io.BytesIO()
    maps = pa.map_(pa.string(), pa.string())
    inside = pa.Table.from_pylist([{"s": parsed}]).schema.field("s").type
    add = pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", maps),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats_parsed", inside),
        ]
    )
    pq.write_table(pa.Table.from_pylist(wanted, schema=pa.schema([("add", add)])), sink)
    assert kinds
    table.raw(checkpoint_name(2), sink.getvalue()).checksum(
        2,
        protocol=table.accounts[2]["protocol", ""].to_json(),
        metadata=table.accounts[2]["metaData", ""].to_json(),
    )
    snapshot = table.log().current_snapshot
    assert [parsed] * 2 == [json.loads(text) for text in snapshot.files["stats"].to_pylist()]


def test_b038_a_snapshot_whose_checkpoint_was_deleted_is_read_from_what_is_left():
    """State that was let go is read again, though the old checkpoint is gone."""
    table = rich_table().checkpoint(5)
    log = table.log()
    old = log.current_snapshot
    table.checkpoint(10)
    table.delete(checkpoint_name(5))
    assert table.live() == paths(old)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_a_flip_of_any_byte_gives_the_right_files_or_a_typed_error(kind):
    """No flipped byte of a checkpoint ever changes the answer."""
    table = rich_table().checkpoint(10, kind)
    table.delete(*map(commit_name, range(10)))
    expected = paths(table.log().current_snapshot)
    for name in checkpoint_files(kind):
        content = table.storage.read(f"{table.folder}/{name}")
        for place in sampled(range(0, len(content), 97), every=8):
            flipped = bytearray(content)
            flipped[place] ^= 0x40
            table.raw(name, bytes(flipped))
            try:
                found = paths(table.log().current_snapshot)
            except CorruptLog:
                continue
            assert found == expected, (name, place)
        table.raw(name, content)


# Checkpoints in parts: all of them or none, and never parts of two writers.


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


# Statistics in a large checkpoint are read when they are asked for, and are what they were.


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


def test_what_needs_no_statistics_fetches_none(monkeypatch):
    """From a bucket, keys and sizes of a large checkpoint's files come without its statistics."""
    monkeypatch.setattr(state_reader, "DEFERRED_FROM_BYTES", 1 << 18)
    table = TableBuilder(MemoryStorage()).create()
    table.commit(
        *[Add(f"{number}.parquet", size=1, stats=f'{{"numRecords":1,"x":"{uuid.uuid4()}{uuid.uuid4()}"}}')
          for number in range(5_000)]
    )  # fmt: skip
    write_checkpoint(table.log().update())
    storage = table.storage = CountingStorage(table.storage)
    log = table.log()
    checkpoint = newest_checkpoint(sort_listing(log.list_from(0)).checkpoint_files)
    size = sum(file.size for file in checkpoint.files)
    assert size >= state_reader.DEFERRED_FROM_BYTES
    storage.bytes = 0
    snapshot = log.current_snapshot
    assert (snapshot.count, snapshot.size, snapshot.file_list.num_rows) == (5_000, 5_000, 5_000)
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
