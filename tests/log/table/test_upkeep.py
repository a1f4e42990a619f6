"""Checkpoints that we write say what the log says, of either kind, and the hint only goes forwards."""

import io
import json
import os
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.log.tables import UNIQUE_ID, TableBuilder, paths

from freezeframe.errors import InvalidOption
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import DomainMetadata, Protocol, Txn
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import checkpoint_part_name, commit_name
from freezeframe.log.scan import rows
from freezeframe.log.segments.checkpoint import read_checkpoint
from freezeframe.log.segments.hint import Hint, parse_hint
from freezeframe.log.table.checksum_writer import checksum_of, checksum_text
from freezeframe.log.table.upkeep import (
    DAY_MS,
    Upkeep,
    after_commit,
    plan_cleanup,
    write_checkpoint,
    write_hint,
)
from freezeframe.log.table.verification import verify_log
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way

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
    assert hint.version == write_checkpoint(table.fresh()).version, "a second time changes no answer"
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
        opened = FaultyStorage(table.storage)
        snapshot = DeltaLog(opened, "t").current_snapshot
        assert table.live() == paths(snapshot)
        for calls in (storage.calls, opened.calls if kind in {"classic", "parts"} else ()):
            names = [call.name for call in calls if call.verb == "read" and ".json" not in call.name]
            assert len(set(names)) == len(names)
        assert storage.calls


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


# What follows a commit: when it is due it is done, and when it fails the commit stands.


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
    assert 1 == table.append([1])
    assert "upkeep after version 1" in caplog.text


def test_a_checksum_that_does_not_fit_stops_the_checkpoint(make_table, caplog):
    """Behaviour 63: no checkpoint is made of a state that the checksums contradict."""
    table = make_table(MemoryStorage(), Upkeep(checkpoint_interval=2))
    table.create()
    table.append([1])
    wrong = replace(checksum_of(table.fresh()), num_files=9)
    table.storage.replace(f"t/_delta_log/{1:020d}.crc", checksum_text(wrong).encode())
    assert 2 == table.append([2])
    assert named(table, ".checkpoint.") == []
    assert "DELTA" in caplog.text or "numFiles" in caplog.text


def test_who_lands_a_version_elsewhere_asks_for_its_upkeep(table):
    """A version landed by other means gets its checksum without its actions being told."""
    table.append([1])
    table.storage.delete(f"t/_delta_log/{1:020d}.crc")
    after_commit(table.log, 1)
    assert f"{1:020d}.crc" in named(table, ".crc")


def test_an_interval_must_make_sense():
    """An interval that could never be is refused."""
    with pytest.raises(InvalidOption):
        Upkeep(checkpoint_interval=0)


# Log cleanup: what the retention asks for goes, what a kept version needs stays.


NOW = int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def old(tmp_path):
    return TableBuilder(LocalStorage(tmp_path), "t")


def age(old, tmp_path, days):
    """Give each version's files an age in days; sidecars get the first one."""
    folder = tmp_path / "t" / "_delta_log"
    for path in folder.rglob("*"):
        if path.is_file():
            version = int(path.name[:20]) if path.name[:20].isdigit() else 0
            moment = (NOW - days[version] * DAY_MS) / 1000
            os.utime(path, (moment, moment))


def names(tmp_path):
    return sorted(path.name for path in (tmp_path / "t" / "_delta_log").iterdir() if path.is_file())


def clean(old):
    return old.log(clock=lambda: NOW).maintenance.clean_up()


def test_b075_what_is_older_than_the_newest_expired_checkpoint_goes(old, tmp_path):
    """The checkpoint itself, its commit and all after it stay; every version left reads as before."""
    old.commits(8).checkpoint(2).checkpoint(4).checkpoint(6).checksum(1)
    age(old, tmp_path, [50, 45, 40, 38, 35, 20, 10, 1])
    before = {version: old.live(version) for version in range(4, 8)}
    plan = clean(old)
    assert plan.kept_from == 4
    assert [name for name in names(tmp_path) if int(name[:20]) < 4] == []
    log = old.log()
    assert log.earliest_version() == 4
    for version, live in before.items():
        assert live == paths(log.snapshot_at(version))


def test_b075_without_an_expired_checkpoint_nothing_goes(old, tmp_path):
    """Old commits that a kept version needs are not deleted, however old."""
    old.commits(5).checkpoint(4)
    age(old, tmp_path, [50, 49, 48, 47, 1])
    before = names(tmp_path)
    assert clean(old).files == ()
    assert before == names(tmp_path)


def test_b075_young_files_below_an_old_checkpoint_stay(old, tmp_path):
    """A file that was touched lately is not expired, whatever its version."""
    old.commits(4).checkpoint(2).checksum(0)
    age(old, tmp_path, [50, 49, 48, 1])
    os.utime(tmp_path / "t" / "_delta_log" / f"{0:020d}.crc", (NOW / 1000, NOW / 1000))
    clean(old)
    assert f"{0:020d}.crc" in names(tmp_path)
    assert commit_name(0) not in names(tmp_path)


def test_b075_an_incomplete_checkpoint_is_nothing_to_stand_on(old, tmp_path):
    """Parts that miss a sibling keep no version readable."""
    old.commits(5).checkpoint(3, "parts").delete(f"{3:020d}.checkpoint.{1:010d}.{2:010d}.parquet")
    age(old, tmp_path, [50, 49, 48, 47, 1])
    assert clean(old).files == ()


@pytest.mark.parametrize(
    "configuration",
    [
        {"delta.enableExpiredLogCleanup": "false"},
        {"delta.logRetentionDuration": "interval 60 days"},
        {"delta.requireCheckpointProtectionBeforeVersion": "5"},
    ],
)
def test_b075_the_tables_own_policy_is_kept(old, tmp_path, configuration):
    """Switched off, kept longer, or protected: nothing goes."""
    old.create(**configuration).commits(6).checkpoint(4)
    age(old, tmp_path, [50, 49, 48, 47, 46, 1])
    assert clean(old).files == ()


def test_b075_sidecars_that_no_kept_checkpoint_names_go_after_a_day(old, tmp_path):
    """A sidecar in use stays, and so does one that is younger than a day."""
    old.create(Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))).commits(5).checkpoint(3, "json")
    old.raw("_sidecars/orphan.parquet", b"x").raw("_sidecars/young.parquet", b"x")
    age(old, tmp_path, [50, 49, 48, 47, 1])
    os.utime(tmp_path / "t" / "_delta_log" / "_sidecars" / "young.parquet", (NOW / 1000, NOW / 1000))
    clean(old)
    left = sorted(path.name for path in (tmp_path / "t" / "_delta_log" / "_sidecars").iterdir())
    assert [f"{UNIQUE_ID}.parquet", "young.parquet"] == left


@pytest.mark.parametrize("kind", ["classic", "parts", "json"])
def test_a_hint_to_what_goes_is_written_anew_before(old, tmp_path, kind):
    """To the newest checkpoint, by which we and others read; at no moment it names one that is gone."""
    old.create(Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))).commits(8).hint(2)
    for version in (2, 4, 6):
        old.checkpoint(version, kind)
    age(old, tmp_path, [50, 45, 40, 38, 35, 20, 10, 1])
    cut = FaultyStorage(old.storage, [Fault(0, Way.CUT_BEFORE, "delete")])
    with pytest.raises(Crash):
        DeltaLog(cut, "t", LogOptions(clock=lambda: NOW)).maintenance.clean_up()
    assert 6 == parse_hint((tmp_path / "t/_delta_log/_last_checkpoint").read_bytes()).version
    clean(old)
    assert old.live() == paths(old.log().current_snapshot)
    assert len(old.live()) == len(DeltaTable(tmp_path / "t").file_uris())
    assert verify_log(old.storage, old.folder) == []


def test_a_plan_deletes_nothing(old, tmp_path):
    """Planning only looks."""
    old.commits(4).checkpoint(2)
    age(old, tmp_path, [50, 49, 48, 1])
    before = names(tmp_path)
    plan = plan_cleanup(old.log().current_snapshot, NOW)
    assert [commit_name(0), commit_name(1)] == list(plan.files)
    assert before == names(tmp_path)


def test_what_writers_of_checkpoints_left_goes(old, tmp_path):
    """Parts of a checkpoint that never became whole."""
    old.commits(8).checkpoint(4).checkpoint(2, "parts", parts=3)
    part = checkpoint_part_name(2, 3, 3)
    old.delete(part)
    age(old, tmp_path, [50, 45, 40, 38, 35, 20, 10, 1])
    plan = clean(old)
    assert {checkpoint_part_name(2, number, 3) for number in (1, 2)} <= set(plan.files)
