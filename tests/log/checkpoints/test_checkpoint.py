"""Checkpoints of every kind, whole and damaged."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.examples import sampled
from tests.log.tables import UNIQUE_ID, TableBuilder, file, parquet

from freezeframe.errors import CorruptLog
from freezeframe.log.format.actions import DomainMetadata, Protocol, Remove, Txn
from freezeframe.log.primitives.paths import (
    SIDECAR_FOLDER,
    checkpoint_name,
    checkpoint_part_name,
    commit_name,
    v2_checkpoint_name,
)
from freezeframe.storage import LocalStorage
from freezeframe.storage.memory import FaultyStorage

KINDS = ["classic", "parts", "json", "parquet"]
V2 = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))


def rich_table(storage=None):
    """Twelve commits with everything a checkpoint can hold."""
    table = TableBuilder(storage).create(V2).commits(8)
    table.commit(Remove("f3", 5), Txn("app", 4, 9), DomainMetadata("d", '{"a":1}'))
    table.commit(DomainMetadata("gone", "{}"))
    table.commit(DomainMetadata("gone", "{}", removed=True), file("f10", stats='{"numRecords":3}'))
    return table.commits(13)


def paths(snapshot):
    return sorted(snapshot.files["path"].to_pylist())


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
    assert plain.all_tombstones["path"].to_pylist() == snapshot.all_tombstones["path"].to_pylist()
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
    for version in range(10):
        table.delete(commit_name(version))
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
    for version in range(10):
        table.delete(commit_name(version))
    with pytest.raises(CorruptLog, match=f"The {missing.lower()} of your Delta table") as caught:
        table.log()
    assert caught.value.error_code == "DELTA_STATE_RECOVER_ERROR"


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_b034_sidecars_without_the_checkpoint_metadata_are_damage(kind):
    """A V2 checkpoint that does not say that it is one is not believed."""
    table = rich_table().checkpoint(10, kind, without="checkpointMetadata")
    assert table.live() == paths(table.log().current_snapshot)
    for version in range(10):
        table.delete(commit_name(version))
    with pytest.raises(CorruptLog, match="checkpointMetadata"):
        table.log()


def test_b034_a_checkpoint_of_the_classic_name_may_be_a_v2_one():
    """The content decides, not the name."""
    table = rich_table().checkpoint(10, "parquet")
    content = table.storage.read(f"{table.folder}/{v2_checkpoint_name(10, UNIQUE_ID, 'parquet')}")
    table.delete(v2_checkpoint_name(10, UNIQUE_ID, "parquet")).raw(checkpoint_name(10), content)
    snapshot = table.log().current_snapshot
    assert (10, table.live()) == (snapshot.segment.checkpoint_version, paths(snapshot))


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
    for version in range(10):
        table.delete(commit_name(version))
    expected = paths(table.log().current_snapshot)
    for name in checkpoint_files(kind):
        content = table.storage.read(f"{table.folder}/{name}")
        for place in sampled(range(0, len(content), 97)):
            flipped = bytearray(content)
            flipped[place] ^= 0x40
            table.raw(name, bytes(flipped))
            try:
                found = paths(table.log().current_snapshot)
            except CorruptLog:
                continue
            assert found == expected, (name, place)
        table.raw(name, content)
