"""Tables beyond the ordinary, written by us and read and written on by Delta on Spark, and the other way."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.log.data_files import new_files
from tests.log.tables import with_mapping

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import Add, CommitInfo, Metadata, Protocol, Remove, to_json_line
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan import rows
from freezeframe.log.segments.commit import write_commit
from freezeframe.log.segments.hint import read_checksum
from freezeframe.log.table.checksum_writer import verify_checksum
from freezeframe.log.table.row_deletion import mark_rows
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Upkeep, write_checkpoint
from freezeframe.storage import LocalStorage

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("row id", pa.string()), ("n", pa.int64()), ("p", pa.string())])
FEATURES = ("columnMapping", "deletionVectors", "v2Checkpoint")


def write(root, checkpoint_at):
    """A table with mapped names, vectors, V2 checkpoints and commit times; its rows are n = 1, 2, 3, 4."""
    storage = LocalStorage(root)
    log = DeltaLog(storage, "t")
    schema, id_max = with_mapping(arrow_to_delta(COLUMNS))
    configuration = {
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": str(id_max),
        "delta.enableDeletionVectors": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointPolicy": "v2",
    }
    protocol = Protocol(3, 7, FEATURES, (*FEATURES, "inCommitTimestamp"))
    metadata = Metadata("id", json.dumps(schema), ("p",), configuration, created_time=1)
    upkeep = Upkeep(checkpoint_interval=checkpoint_at)
    Transaction(log, upkeep=upkeep).commit([protocol, metadata], "CREATE TABLE")
    data = pa.table({"row id": [f"{n:03}" for n in range(5)], "n": range(5), "p": ["a", "b", "a", "b", None]})
    for file in (files := new_files(data, schema, protocol, metadata)):
        storage.put_if_absent(f"t/{file.name}", file.content)
    Transaction(log, upkeep=upkeep).commit([file.add for file in files], "WRITE")
    begun = Transaction(log, upkeep=upkeep)
    first = rows.files_matching(begun.snapshot, [("p", "=", "a")])["path"][0].as_py()
    deletion = mark_rows(begun.snapshot, {first: [0]})
    storage.put_if_absent(f"t/{deletion.file.name}", deletion.file.content)
    begun.commit(deletion.actions, "DELETE")
    return log


def numbers(log):
    return sorted(rows.read(log.update(), ["n"])["n"].to_pylist())


@pytest.mark.parametrize("checkpoint_at", [1, pytest.param(100, marks=pytest.mark.nightly)])
def test_spark_reads_and_changes_what_we_wrote(tmp_path, delta_session, checkpoint_at):
    """With and without a V2 checkpoint Spark sees our rows, deletes, updates, and we see what it did."""
    log = write(tmp_path, checkpoint_at)
    table = f"delta.`{tmp_path}/t`"
    found = delta_session.sql(f"SELECT `row id`, n, p FROM {table} ORDER BY n").collect()
    wanted = [("001", 1, "b"), ("002", 2, "a"), ("003", 3, "b"), ("004", 4, None)]
    assert [tuple(row) for row in found] == wanted
    delta_session.sql(f"DELETE FROM {table} WHERE n = 2").collect()
    delta_session.sql(f"UPDATE {table} SET n = 30 WHERE `row id` = '003'").collect()
    assert numbers(log) == [1, 4, 30]
    begun = Transaction(log)
    [path] = rows.files_matching(begun.snapshot, [("row id", "=", "001")])["path"].to_pylist()[:1]
    assert path in begun.snapshot.files["path"].to_pylist()
    assert DeltaTable(f"{tmp_path}/t").version() - 1 == 3


def test_spark_agrees_with_our_checksums(tmp_path, delta_session):
    """Checksums that Spark goes on from ours fit the state, and so do ours that go on from Spark's."""
    log = write(tmp_path, 100)
    table = f"delta.`{tmp_path}/t`"
    delta_session.sql(f"INSERT INTO {table} VALUES ('x', 50, 'a'), ('y', 51, 'c')").collect()
    schema, metadata = log.update().delta_schema, log.update().metadata
    [file] = new_files(
        pa.table({"row id": ["z"], "n": [60], "p": ["a"]}), schema, log.update().protocol, metadata
    )
    log.storage.put_if_absent(f"t/{file.name}", file.content)
    Transaction(log).commit([file.add], "WRITE")
    seen = 0
    for version in range(log.update().version + 1):
        checksum = read_checksum(log.storage, f"t/_delta_log/{version:020d}.crc")
        verify_checksum(log.snapshot_at(version=version), checksum)
        seen += 1
    assert seen == 5
    assert len(delta_session.sql(f"SELECT * FROM {table}").collect()) == 7


@pytest.mark.nightly  # by day the recorded tables of tests/oracle are read
def test_we_read_what_spark_wrote(tmp_path, delta_session):
    """A table of Spark's with every type, odd names, partitions and vectors comes back value by value."""
    table = f"delta.`{tmp_path}/t`"
    delta_session.sql(
        f"CREATE TABLE {table} (`a b` STRING, i INT, l BIGINT, d DECIMAL(20,3), f DOUBLE, t TIMESTAMP, "
        "z TIMESTAMP_NTZ, y DATE, s STRUCT<`x y`: INT, w: ARRAY<STRING>>, m MAP<STRING, INT>, p STRING) "
        "USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableDeletionVectors' = 'true')"
    ).collect()
    delta_session.sql(
        f"INSERT INTO {table} SELECT concat('0', id), id, id * 1000000007, id / 8, id / 3, "
        "timestamp_micros(id * 1000001), to_timestamp_ntz('2020-01-01 00:00:00.000001'), "
        "date_add(DATE '1960-02-29', cast(id AS INT)), "
        "named_struct('x y', cast(id AS INT), 'w', array('q', null)), map('k', cast(id AS INT)), "
        "if(id % 2 = 0, 'e v', null) FROM range(20)"
    ).collect()
    delta_session.sql(f"DELETE FROM {table} WHERE i IN (3, 4, 11)").collect()
    names = ["a b", "i", "l", "d", "f", "t", "z", "y", "s", "m", "p"]
    theirs = delta_session.sql(f"SELECT * FROM {table} ORDER BY i").toArrow()
    ours = rows.read(DeltaLog(LocalStorage(tmp_path), "t").update()).sort_by("i")
    assert names == ours.column_names
    assert [ours.num_rows, theirs.num_rows] == [17] * 2
    assert theirs.cast(ours.schema).to_pylist() == ours.to_pylist()


def test_a_checkpoint_in_parts_is_read_by_others(tmp_path, delta_session):
    """Spark and delta-rs read the parts alone: the commits that they cover are gone."""
    log = DeltaLog(LocalStorage(tmp_path), "t")
    schema, never = arrow_to_delta(COLUMNS), Upkeep(checkpoint_interval=1000, write_checksums=False)
    metadata = Metadata("id", json.dumps(schema), (), {}, created_time=1)
    protocol = Protocol(1, 2)
    Transaction(log, upkeep=never).commit([protocol, metadata], "CREATE TABLE")
    for number in range(4):
        data = pa.table({"row id": [f"{number:03}"], "n": [number], "p": ["a"]}, schema=COLUMNS)
        [file] = new_files(data, schema, protocol, metadata)
        log.storage.put_if_absent(f"t/{file.name}", file.content)
        Transaction(log, upkeep=never).commit([file.add], "WRITE")
    hint = write_checkpoint(log.update(), part_actions_max=2)
    for version in range(4):
        log.storage.delete(f"t/_delta_log/{version:020d}.json")
    assert hint.parts == 2
    found = delta_session.sql(f"SELECT n FROM delta.`{tmp_path}/t` ORDER BY n").collect()
    assert [row.n for row in found] == [0, 1, 2, 3]
    theirs = DeltaTable(str(tmp_path / "t"))
    assert (theirs.version(), len(theirs.file_uris())) == (4, 4)
    assert numbers(DeltaLog(LocalStorage(tmp_path), "t")) == [0, 1, 2, 3]


def test_spark_finds_rows_by_statistics_that_we_wrote_as_structs(tmp_path, delta_session):
    """The checkpoint has the columns that Spark's own one has, and Spark reads it without any commit."""
    delta_session.sql(
        f"CREATE TABLE delta.`{tmp_path}/t` (n BIGINT, d DECIMAL(20,2), at TIMESTAMP, day DATE, p INT)"
        " USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.checkpoint.writeStatsAsStruct' = 'true',"
        " 'delta.checkpoint.writeStatsAsJson' = 'false', 'delta.checkpointInterval' = '2')"
    )
    for n in (1, 2, 3):
        delta_session.sql(
            f"INSERT INTO delta.`{tmp_path}/t` VALUES ({n}, 12345678901234567.8{n},"
            f" timestamp'2024-01-0{n} 00:00:00', date'2024-01-0{n}', {n % 2})"
        )
    folder = tmp_path / "t" / "_delta_log"
    theirs = pq.read_schema(folder / f"{2:020d}.checkpoint.parquet").field("add").type
    log = DeltaLog(LocalStorage(tmp_path), "t")
    write_checkpoint(log.update())
    ours = pq.read_schema(folder / f"{3:020d}.checkpoint.parquet").field("add").type
    for name in ("partitionValues_parsed", "stats_parsed"):
        assert names_in(ours.field(name).type) >= names_in(theirs.field(name).type)
    for version in range(3):
        (folder / f"{version:020d}.json").unlink()
    found = delta_session.sql(
        f"SELECT n FROM delta.`{tmp_path}/t` WHERE d = 12345678901234567.82 AND at < timestamp'2024-01-03'"
    )
    assert [row.n for row in found.collect()] == [2]
    rows = delta_session.sql(f"SELECT n FROM delta.`{tmp_path}/t` ORDER BY n").collect()
    assert [row.n for row in rows] == [1, 2, 3]


def names_in(kind, inside=""):
    """The dotted paths of a struct's leaves."""
    if not pa.types.is_struct(kind):
        return {inside}
    return {name for field in kind for name in names_in(field.type, f"{inside}.{field.name}")}


def test_spark_matches_removed_files_by_the_same_spellings(tmp_path, delta_session):
    """Dot segments, doubled slashes and absolute paths, on the side of the add and of the remove."""
    folder = tmp_path / "t"
    pairs = {
        "a.parquet": ("a.parquet", "./a.parquet"),
        "b.parquet": ("./b.parquet", "b.parquet"),
        "c.parquet": ("s/../c.parquet", "c.parquet"),
        "s/d.parquet": ("s/./d.parquet", "s//d.parquet"),
        "e.parquet": (f"{folder}/e.parquet", f"file://{folder}/x/../e.parquet"),
        "f.parquet": ("../t/f.parquet", "f.parquet"),
        "g.parquet": ("./g.parquet", "other.parquet"),
        "h.parquet": ("s/x/../../h.parquet", "s/h.parquet"),
    }
    adds = []
    (folder / "s").mkdir(parents=True)
    for name, (path, _) in pairs.items():
        pq.write_table(pa.table({"n": [name]}), folder / name)
        adds.append(Add(path, (folder / name).stat().st_size, {}, 1))
    metadata = Metadata("id", json.dumps(arrow_to_delta(pa.schema([("n", pa.string())]))))
    for version, actions in enumerate(
        ([Protocol(1, 2), metadata, *adds], [Remove(removed, 1) for _, removed in pairs.values()])
    ):
        lines = [
            to_json_line(action) for action in (CommitInfo({"timestamp": 1, "operation": "X"}), *actions)
        ]
        write_commit(LocalStorage(tmp_path), "t", version, ("\n".join(lines) + "\n").encode())

    found = delta_session.read.format("delta").load(str(folder)).toPandas()["n"]
    ours = rows.read(DeltaLog(LocalStorage(tmp_path), "t").update())["n"].to_pylist()
    assert ["f.parquet", "g.parquet", "h.parquet"] == sorted(ours) == sorted(found)
