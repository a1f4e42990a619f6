"""Checkpoints that we write say what the log says, of either kind, and the hint only goes forwards."""

import io
import json

import pyarrow.parquet as pq
import pytest
from tests.log.tables import TableBuilder

from freezeframe.errors import InvalidOption
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import DomainMetadata, Txn
from freezeframe.log.scan import rows
from freezeframe.log.segments.checkpoint import read_checkpoint
from freezeframe.log.segments.hint import Hint, parse_hint
from freezeframe.log.table.upkeep import Upkeep, write_checkpoint, write_hint
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import FaultyStorage

KINDS = {"classic": {}, "v2": {"checkpointPolicy": "v2"}}
NEVER = Upkeep(checkpoint_interval=1_000_000)


def busy(table):
    """A table with files, a vector, removed files, a transaction, a domain and a removed domain."""
    table.create()
    table.append(range(5), "a")
    table.append(range(5, 9), "b c%d")
    begun = table.begin()
    path = begun.snapshot.files["path"][0].as_py()
    begun.commit([*table.delete(begun, {path: [1, 2]}), Txn("job", 3), DomainMetadata("d", '{"k":1}')], "X")
    table.begin().commit([DomainMetadata("e", "{}")], "X")
    table.begin().commit([DomainMetadata("e", "{}", removed=True)], "X")
    begun = table.begin()
    begun.commit([*table.remove_all(begun)[:1], *table.adds([77])], "X")
    return table


def state(snapshot):
    files = {json.dumps(row, sort_keys=True, default=str) for row in snapshot.files.to_pylist()}
    removed = {row["path"] for row in snapshot.tombstones.to_pylist()}
    return files, removed, snapshot.protocol, snapshot.metadata, snapshot.transactions, snapshot.domains


def without_commits(storage, version):
    """The log with nothing but the checkpoint and the last commit: the checkpoint must say it all."""
    for number in range(version):
        storage.delete(f"t/_delta_log/{number:020d}.json")
        storage.delete(f"t/_delta_log/{number:020d}.crc")
    storage.delete(f"t/_delta_log/{version:020d}.crc")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["memory", "local"])
def test_a_checkpoint_holds_the_whole_state(make_table, tmp_path, kind, place):
    """Read from the checkpoint alone, the state and the rows are those of the commits."""
    storage = MemoryStorage() if place == "memory" else LocalStorage(tmp_path)
    table = busy(make_table(storage, NEVER, **KINDS[kind]))
    before = table.fresh()
    wanted, wanted_rows = state(before), rows.read(before).sort_by("n")
    hint = write_checkpoint(before)
    without_commits(storage, before.version)
    after = table.fresh()
    assert before.version == after.segment.checkpoint_version == hint.version
    assert state(after) == wanted
    assert wanted_rows.equals(rows.read(after).sort_by("n"))
    assert hint.num_of_add_files == after.count


def test_a_checkpoint_has_page_checksums_and_deltas_schema(make_table):
    """The classic file has one column per kind of action, the statistics as text."""
    table = busy(make_table(MemoryStorage(), NEVER))
    write_checkpoint(table.fresh())
    content = table.storage.read(f"t/_delta_log/{6:020d}.checkpoint.parquet")
    names = pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True).read().column_names
    assert names == ["txn", "add", "remove", "metaData", "protocol", "domainMetadata"]


@pytest.mark.parametrize("kind", KINDS)
def test_writing_it_again_changes_no_answer(make_table, kind):
    """Two checkpoints of one version are as good as one."""
    table = busy(make_table(MemoryStorage(), NEVER, **KINDS[kind]))
    wanted = state(table.fresh())
    write_checkpoint(table.fresh())
    write_checkpoint(table.fresh())
    assert state(table.fresh()) == wanted


def test_an_empty_table_has_a_checkpoint(make_table):
    """A table without files is checkpointed as well."""
    table = make_table(MemoryStorage(), NEVER)
    table.create()
    write_checkpoint(table.fresh())
    without_commits(table.storage, 0)
    assert (table.fresh().count, table.fresh().segment.checkpoint_version) == (0, 0)


def test_what_does_not_exist_has_no_checkpoint():
    """There is nothing to write for a folder without a log."""
    with pytest.raises(InvalidOption):
        write_checkpoint(DeltaLog(MemoryStorage(), "t").update())


def test_the_hint_goes_forwards_only():
    """A slow writer of an older checkpoint does not take the hint back; a garbled hint is replaced."""
    storage = MemoryStorage()
    assert write_hint(storage, "log", Hint(10, 3))
    assert not write_hint(storage, "log", Hint(9, 3))
    assert parse_hint(storage.read("log/_last_checkpoint")).version == 10
    storage.replace("log/_last_checkpoint", b"garbled")
    assert write_hint(storage, "log", Hint(9, 3))
    assert parse_hint(storage.read("log/_last_checkpoint")).version == 9


def test_sidecars_hold_the_files_of_a_v2_checkpoint(make_table):
    """File actions are in sidecars, everything else in the manifest, which names them with their sizes."""
    table = busy(make_table(MemoryStorage(), NEVER, checkpointPolicy="v2"))
    write_checkpoint(table.fresh())
    sidecars = list(table.storage.list_from("t/_delta_log/_sidecars"))
    [name] = [
        status.name for status in table.storage.list_from("t/_delta_log") if ".checkpoint." in status.name
    ]
    lines = [json.loads(line) for line in table.storage.read(f"t/_delta_log/{name}").splitlines()]
    named = {line["sidecar"]["path"]: line["sidecar"]["sizeInBytes"] for line in lines if "sidecar" in line}
    assert {status.name: status.size for status in sidecars} == named
    assert lines[0] == {"checkpointMetadata": {"version": 6}}
    assert not any("add" in line or "remove" in line for line in lines)


def test_many_small_commits_make_no_many_row_groups(make_table):
    """Actions of sixty commits lie in a group per kind: each group costs kilobytes, whatever it holds."""
    table = make_table(MemoryStorage(), NEVER)
    table.create()
    for number in range(30):
        table.append([number], f"{number}")
        begun = table.begin()
        begun.commit([*table.remove_all(begun)[:1], *table.adds([number], "b")], "X")
    write_checkpoint(table.log.update())
    [name] = [item.name for item in table.storage.list_from("t/_delta_log") if ".checkpoint." in item.name]
    content = table.storage.read(f"t/_delta_log/{name}")
    assert 3 >= pq.ParquetFile(io.BytesIO(content)).num_row_groups
    assert 60_000 > len(content)


def test_a_checkpoint_is_fetched_once_for_its_state():
    """On a storage without paths of this machine each of its files is read once, sidecars too."""
    for kind in ("classic", "parts", "json", "parquet"):
        table = TableBuilder().commits(6).checkpoint(4, kind)
        storage = FaultyStorage(table.storage)
        segment = table.log().log_segment_for_version()
        assert read_checkpoint(storage, "t/_delta_log", segment.checkpoint).files.num_rows == 4
        names = [call.name for call in storage.calls]
        assert len(set(names)) == len(names) > 0


@pytest.mark.parametrize("kind", ["classic", "parts"])
def test_opening_a_log_fetches_a_small_checkpoint_once(kind):
    """Protocol and metadata, then the state: no file of the checkpoint is asked for twice."""
    table = TableBuilder().commits(6).checkpoint(4, kind)
    storage = FaultyStorage(table.storage)
    snapshot = DeltaLog(storage, "t").current_snapshot
    assert table.live() == sorted(snapshot.files["path"].to_pylist())
    names = [call.name for call in storage.calls if ".checkpoint." in call.name]
    assert len(set(names)) == len(names) > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", ["true", "false"])
def test_b037_statistics_are_structs_where_the_table_asks_for_them(make_table, kind, texts):
    """Read from the checkpoint alone, statistics and partition values are those of the commits."""
    properties = {"checkpoint.writeStatsAsStruct": "true", "checkpoint.writeStatsAsJson": texts}
    table = busy(make_table(MemoryStorage(), NEVER, **KINDS[kind], **properties))
    before = table.fresh()
    write_checkpoint(before)
    without_commits(table.storage, before.version)
    after = table.fresh()
    assert after.segment.checkpoint_version == before.version

    def known(snapshot):
        rows = snapshot.files.select(["path", "stats", "partition_values"]).to_pylist()
        return {row["path"]: (json.loads(row["stats"]), row["partition_values"]) for row in rows}

    assert known(after) == known(before)
    folder = "t/_delta_log/_sidecars" if kind == "v2" else "t/_delta_log"
    found = [
        pq.read_table(io.BytesIO(table.storage.read(f"{folder}/{status.name}")))
        for status in table.storage.list_from(folder)
        if status.name.endswith(".parquet")
    ]
    adds = [row for item in found for row in item["add"].to_pylist() if row is not None]
    assert len(adds) == before.count
    for add in adds:
        assert (add["stats"] is None) == (texts == "false")
        assert add["stats_parsed"]["numRecords"] > 0
        assert add["partitionValues_parsed"] == dict(add["partitionValues"])
