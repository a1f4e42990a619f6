"""What a user of the library finds on ``DeltaLog``: opening, reading, writing and upkeep."""

import json
import os
from dataclasses import replace
from datetime import timedelta

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.buckets import made_bucket

from freezeframe.clock import now_ms
from freezeframe.errors import AlreadyExists, ConflictError, CorruptData, InvalidOption, VersionNotFound
from freezeframe.log import DeltaLog, Isolation, LogOptions
from freezeframe.log.actions.action_columns import to_adds
from freezeframe.log.write.row_deletion import removal
from freezeframe.log.write.transaction import require_committed
from freezeframe.storage.s3_access import VARIABLES

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("price", pa.float64())])
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(scope="module")
def bucket():
    with made_bucket() as name:
        yield name


@pytest.fixture(params=["disk", "bucket"])
def place(request, tmp_path):
    """A directory or a URL where no table is yet."""
    if request.param == "disk":
        return str(tmp_path / "t")
    return f"s3://{request.getfixturevalue('bucket')}/{tmp_path.name}/t"


def rows(*ids, city="Bern"):
    return pa.table(
        {"id": list(ids), "city": [city] * len(ids), "price": [float(n) for n in ids]}, schema=SCHEMA
    )


def made(place, *appended, **configuration):
    log = DeltaLog.create(place, SCHEMA, partition_by=["city"], configuration=configuration)
    for one in appended:
        log.append(one)
    return log


def ids(found):
    return sorted(found["id"].to_pylist())


def test_a_table_lives_its_life_on_disk_and_in_a_bucket(place):
    """Created, filled, read, deleted from, restored, checkpointed and verified by its place alone."""
    assert not DeltaLog.is_table(place)
    log = made(place, rows(1, 2), rows(3, city="Rome"), **VECTORS)
    assert DeltaLog.is_table(place)
    assert log.delete(pc.field("id") == 2) == 3
    assert ids(log.to_arrow()) == [1, 3]
    assert ids(log.to_arrow(where=[("city", "=", "Rome")])) == [3]
    assert ids(log.snapshot_at(version=2).to_arrow()) == [1, 2, 3]
    assert log.restore(version=2) == 4
    assert ids(log.to_dataset().to_table()) == [1, 2, 3]
    assert log.maintenance.checkpoint().version == 4
    assert log.maintenance.verify() == []
    assert [entry.commit_info.operation for entry in log.history()] == [
        "RESTORE",
        "DELETE",
        "WRITE",
        "WRITE",
        "CREATE TABLE",
    ]
    assert sorted(log.snapshot.partitions(), key=str) == [{"city": "Bern"}, {"city": "Rome"}]


def test_two_openings_of_a_place_are_one_log(place):
    """However it is spelt; a later opening is up to date."""
    first = made(place, rows(1))
    assert first is DeltaLog.open(place + "/")
    assert first is DeltaLog.open(place.replace("s3://", "s3a://"))
    assert first is DeltaLog.for_table(place)


def test_storage_options_lead_to_a_bucket_without_variables(bucket, tmp_path, monkeypatch):
    """The names are those of the variables, in upper or lower case; another one is refused."""
    options = {name.lower(): value for name, value in os.environ.items() if name in VARIABLES}
    place = f"s3://{bucket}/{tmp_path.name}/options"
    made(place, rows(1))
    for name in options:
        monkeypatch.delenv(name.upper())
    assert ids(DeltaLog.open(place, storage_options=options).to_arrow()) == [1]
    with pytest.raises(InvalidOption, match="AWS_REGION"):
        DeltaLog.open(place, storage_options={"aws_regoin": "x"})


@pytest.mark.parametrize("uri", ["gs://bucket/t", "s3://", ""])
def test_another_kind_of_url_is_refused(uri):
    """Nothing is made of it; an empty text is not the working directory."""
    with pytest.raises(InvalidOption, match="neither a directory"):
        DeltaLog.open(uri)


def test_creating_where_a_table_is_or_what_is_no_table_is_refused(tmp_path):
    """The table that is there stays as it is; of a wrong definition nothing is stored."""
    log = made(tmp_path, rows(1))
    with pytest.raises(AlreadyExists):
        made(tmp_path)
    assert log.update().version == 1
    for bad in ({"partition_by": ["no"]}, {"partition_by": SCHEMA.names}):
        with pytest.raises(InvalidOption):
            DeltaLog.create(tmp_path / "other", SCHEMA, **bad)
    with pytest.raises(InvalidOption, match="Column mapping"):
        DeltaLog.create(tmp_path / "other", SCHEMA, configuration={"delta.columnMapping.mode": "name"})
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("configuration", [{}, VECTORS])
def test_delta_rs_reads_what_was_created_appended_and_deleted(tmp_path, configuration):
    """By vectors or by rewritten files: the same rows, and files are named where they are."""
    log = made(tmp_path, rows(1, 2, 3), rows(4, 5), **configuration)
    log.delete([("id", "in", [2, 4])])
    table = deltalake.DeltaTable(tmp_path)
    assert ids(pa.table(table.to_pyarrow_table()) if not configuration else log.to_arrow()) == [1, 3, 5]
    if not configuration:
        assert sorted(log.snapshot.file_uris()) == sorted(table.file_uris())
        log.delete()
        assert log.to_arrow().num_rows == 0
    assert log.snapshot.version == log.delete([("id", "=", 99)])


def test_the_lowest_protocol_lists_what_is_used(tmp_path):
    """Plain tables are (1, 2); a feature that only writers know asks nothing of readers."""
    plain = made(tmp_path / "plain").snapshot.protocol
    assert (plain.min_reader_version, plain.min_writer_version, plain.writer_features) == (1, 2, None)
    times = made(tmp_path / "times", **{"delta.enableInCommitTimestamps": "true"}).snapshot.protocol
    assert (times.min_reader_version, "inCommitTimestamp" in times.writer_features) == (1, True)
    local = DeltaLog.create(tmp_path / "local", pa.schema([("t", pa.timestamp("us"))])).snapshot.protocol
    assert (local.min_reader_version, local.reader_features) == (3, ("timestampNtz",))


def test_a_transaction_is_staged_and_committed(tmp_path):
    """Staged actions become one version; a second transaction that read the same file conflicts."""
    log = made(tmp_path, rows(1))
    [add] = to_adds(log.snapshot.files)
    one, two = log.start_transaction(), log.start_transaction(isolation=Isolation.SERIALIZABLE)
    two.read_whole_table()
    metadata = one.snapshot.metadata
    outcome = one.remove(removal(add)).set_metadata(replace(metadata, name="prices")).commit()
    assert require_committed(outcome) == 2
    assert (log.snapshot.metadata.name, log.snapshot.count) == ("prices", 0)
    with pytest.raises(ConflictError):
        require_committed(two.remove(removal(add)).commit())


def test_a_restore_brings_back_schema_and_rows_and_needs_the_files(tmp_path):
    """A data file that is gone is named, and nothing is committed."""
    log = made(tmp_path, rows(1), rows(2))
    log.delete()
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    with pytest.raises(CorruptData, match="missing"):
        log.restore(version=1)
    assert log.update().version == 3
    with pytest.raises(VersionNotFound):
        log.restore(version=9)


def test_vacuum_deletes_what_no_kept_version_names(tmp_path):
    """Only files that are old enough and unnamed go; a short retention must be asked for twice."""
    log = made(tmp_path, rows(1), rows(2), **VECTORS)
    log.delete([("id", "=", 1)])
    log.append(rows(3, 4))
    log.delete([("id", "=", 3)])
    (tmp_path / "stray.parquet").write_bytes(b"x")
    (tmp_path / "_hidden").mkdir()
    (tmp_path / "_hidden" / "kept").write_bytes(b"x")
    assert log.maintenance.vacuum().names == ()
    with pytest.raises(InvalidOption, match="deleted"):
        log.maintenance.vacuum(timedelta(0))
    later = LogOptions(clock=lambda: now_ms() + 60_000)
    DeltaLog.clear_cache()
    log = DeltaLog.open(tmp_path, options=later)
    before = ids(log.to_arrow())
    tried = log.maintenance.vacuum(timedelta(0), dry_run=True, allow_short_retention=True)
    assert len(tried.names) == 2
    assert "stray.parquet" in tried.names
    done = log.maintenance.vacuum(timedelta(0), allow_short_retention=True)
    assert tried.names == done.names
    assert before == ids(log.to_arrow()) == [2, 4]
    assert (tmp_path / "_hidden" / "kept").exists()


@pytest.mark.parametrize("configuration", [{}, VECTORS])
def test_changes_are_told_by_added_and_removed_files(tmp_path, configuration):
    """With vectors the rows that went; without, the file's rows as deleted and the kept ones as inserted."""
    log = made(tmp_path, rows(1, 2), **configuration)
    log.delete([("id", "=", 2)])
    found = log.changes(1).read_all()
    told = sorted(
        zip(*(found[name].to_pylist() for name in ("_commit_version", "_change_type", "id")), strict=True)
    )
    expected = [(1, "insert", 1), (1, "insert", 2)]
    expected += (
        [(2, "delete", 2)] if configuration else [(2, "delete", 1), (2, "delete", 2), (2, "insert", 1)]
    )
    assert told == expected
    assert [log.snapshot_at(version=1).timestamp] * 2 == [
        round(moment.timestamp() * 1000)
        for moment in found.filter(pc.field("_commit_version") == 1)["_commit_timestamp"].to_pylist()
    ]
    with pytest.raises(InvalidOption):
        log.changes(2, 1)
    with pytest.raises(VersionNotFound):
        log.changes(0, 9)


def test_changes_come_from_change_files_where_a_writer_left_some(tmp_path):
    """delta-rs records an update: before and after, and nothing of the rows that it only copied."""
    deltalake.write_deltalake(
        tmp_path, rows(1, 2), partition_by=["city"], configuration={"delta.enableChangeDataFeed": "true"}
    )
    deltalake.DeltaTable(tmp_path).update(predicate="id = 2", updates={"price": "9.5"})
    found = DeltaLog.open(tmp_path).changes(1).read_all()
    told = sorted(zip(*(found[name].to_pylist() for name in ("_change_type", "id", "price")), strict=True))
    assert told == [("update_postimage", 2, 9.5), ("update_preimage", 2, 2.0)]
    assert found["city"].to_pylist() == ["Bern", "Bern"]


@pytest.mark.parametrize("configuration", [{}, VECTORS])
def test_a_dataset_prunes_by_partition_and_by_statistics(tmp_path, configuration):
    """Fragments that cannot hold a row are left out; Polars gets the rows with its predicate pushed down."""
    log = made(tmp_path, rows(1, 2), rows(10, 20), rows(5, city="Rome"), **configuration)
    log.delete([("id", "=", 2)])
    dataset = log.to_dataset()
    assert len(list(dataset.get_fragments(filter=pc.field("city") == "Rome"))) == 1
    assert len(list(dataset.get_fragments(filter=pc.field("id") > 5))) == 1
    assert len(list(dataset.get_fragments(filter=pc.field("id") > 99))) == 0
    assert log.to_arrow().sort_by("id").equals(dataset.to_table().sort_by("id"))
    frame = pl.scan_pyarrow_dataset(dataset).filter(pl.col("id") >= 5).select("id", "city").collect()
    assert sorted(frame.rows()) == [(5, "Rome"), (10, "Bern"), (20, "Bern")]


def test_a_dataset_reads_duckdb_queries(tmp_path):
    """DuckDB scans the dataset by name and pushes its predicate down."""
    duckdb = pytest.importorskip("duckdb")
    prices = made(tmp_path, rows(1, 2), rows(10)).to_dataset()  # noqa: F841 - named in the query
    assert duckdb.sql("SELECT id FROM prices WHERE id > 5").fetchall() == [(10,)]


def test_a_dataset_of_a_file_without_rows_left_is_empty(tmp_path):
    """A vector that delta readers keep for a file whose every row it deletes gives no row."""
    log = made(tmp_path, rows(1, 2), **VECTORS)
    log.delete()
    assert log.to_dataset().to_table().num_rows == 0
    assert SCHEMA.names == log.to_dataset().schema.names


def test_a_listener_is_told_and_cannot_disturb(tmp_path, caplog):
    """Updates, snapshots, commits and checkpoints; what the listener raises is for the log file."""
    heard = []

    def listen(event):
        heard.append(event)
        raise RuntimeError("deaf")

    log = DeltaLog.create(tmp_path, SCHEMA)
    DeltaLog.clear_cache()
    log = DeltaLog.open(tmp_path, options=LogOptions(listener=listen))
    log.append(rows(1))
    log.maintenance.checkpoint()
    names = {event.name for event in heard}
    assert names == {"deltaLog.update", "deltaLog.snapshot", "deltaLog.commit", "deltaLog.checkpoint"}
    [commit] = [event for event in heard if event.name == "deltaLog.commit"]
    assert commit.metrics == {"version": 1, "outcome": "Committed", "operation": "WRITE"}
    assert "deaf" in caplog.text
    json.dumps([dict(event.metrics) for event in heard])
