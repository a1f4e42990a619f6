"""DeltaLog.for_table: one log per table, however it is spelled."""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from zoneinfo import ZoneInfo

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.buckets import made_bucket
from tests.log.data_files import append, created, mark
from tests.log.tables import TableBuilder, file, paths

from freezeframe.errors import ConflictError, InvalidOption, NotFound, VersionNotFound
from freezeframe.log import DeltaLog, LogOptions
from freezeframe.log.format.action_columns import to_adds
from freezeframe.log.names_elsewhere import INSTEAD
from freezeframe.log.table.row_deletion import removal
from freezeframe.storage import LocalStorage, MemoryStorage, probe
from freezeframe.storage.base import OverlayStorage
from freezeframe.storage.location import VARIABLES


@pytest.fixture(autouse=True)
def _empty_cache():
    DeltaLog.clear_cache()
    yield
    DeltaLog.clear_cache()


@pytest.fixture
def table(tmp_path):
    return TableBuilder(LocalStorage(tmp_path), "t").commits(2)


def test_b049_all_spellings_of_a_path_are_one_log(table, tmp_path):
    """A path, a string, a trailing slash, a file: URI and a link."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "t")
    log = DeltaLog.for_table(tmp_path / "t")
    spellings = [
        str(tmp_path / "t"),
        f"{tmp_path}/t/",
        f"file:{tmp_path}/t",
        f"file://{tmp_path}/t",
        f"{tmp_path}/../{tmp_path.name}/t",
        os.path.relpath(tmp_path / "t"),
        link,
    ]
    assert all(DeltaLog.for_table(spelling) is log for spelling in spellings)


def test_a_log_has_the_storage_and_the_folder_that_it_was_opened_with(table, tmp_path):
    """Whichever way it was opened before, for the names of its files begin in that storage."""
    (tmp_path / "link").symlink_to(tmp_path)
    places = [(tmp_path, "t"), (tmp_path / "t", ""), (tmp_path.parent, f"{tmp_path.name}/t")]
    places.append((tmp_path / "link", "t"))
    logs = [DeltaLog.for_table(LocalStorage(root), folder) for root, folder in places * 2]

    assert [folder for _, folder in places * 2] == [log.table for log in logs]
    assert all(Path(log.storage.root).samefile(root) for log, (root, _) in zip(logs, places * 2, strict=True))
    assert 3 == len({id(log) for log in logs})
    DeltaLog.invalidate_cache(tmp_path / "t")
    assert not {id(log) for log in logs} & {
        id(DeltaLog.for_table(LocalStorage(root), folder)) for root, folder in places
    }


def test_b049_other_storages_are_known_by_themselves(table):
    """An overlay calls itself like the storage below it; its logs are its own all the same."""
    inner = MemoryStorage()
    TableBuilder(inner).commits(2)
    new = TableBuilder(MemoryStorage()).commits(3)
    name = "t/_delta_log/00000000000000000002.json"
    overlay = OverlayStorage(inner, {name: new.storage.read(name)}, 1)
    assert DeltaLog.for_table(inner, "t").current_snapshot.version == 1
    assert DeltaLog.for_table(overlay, "t").current_snapshot.version == 2
    assert DeltaLog.for_table(inner, "t") is DeltaLog.for_table(inner, "/t/")


def test_b041_a_cached_log_is_not_updated_by_asking(table, tmp_path):
    """`for_table` gives what is known, `for_table_with_snapshot` what is true."""
    DeltaLog.for_table(tmp_path / "t")
    table.commit(file("new"))
    assert DeltaLog.for_table(tmp_path / "t").current_snapshot.version == 1
    log, snapshot = DeltaLog.for_table_with_snapshot(tmp_path / "t")
    assert (2, log.current_snapshot) == (snapshot.version, snapshot)


def test_b049_the_cache_can_be_cleared_and_a_table_forgotten(table, tmp_path):
    """After that the log is opened again."""
    log = DeltaLog.for_table(tmp_path / "t")
    DeltaLog.invalidate_cache(str(tmp_path / "t"))
    second = DeltaLog.for_table(tmp_path / "t")
    DeltaLog.clear_cache()
    assert len({id(item) for item in (log, second, DeltaLog.for_table(tmp_path / "t"))}) == 3


def test_b049_the_cache_is_limited_in_size_and_time(tmp_path, monkeypatch):
    """The least recently used log goes first; one that was not used for the retention goes too."""
    monkeypatch.setattr(DeltaLog, "cache_size", 2)
    for name in "abc":
        TableBuilder(LocalStorage(tmp_path), name).commits(1)
    first = DeltaLog.for_table(tmp_path / "a")
    second = DeltaLog.for_table(tmp_path / "b")
    assert DeltaLog.for_table(tmp_path / "a") is first
    DeltaLog.for_table(tmp_path / "c")
    assert DeltaLog.for_table(tmp_path / "a") is first
    assert DeltaLog.for_table(tmp_path / "b") is not second
    monkeypatch.setattr(DeltaLog, "cache_retention_seconds", -1.0)
    assert DeltaLog.for_table(tmp_path / "a") is not first


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"staleness_limit_ms": 5}, 5),
        ({"spark.databricks.delta.stalenessLimit": "5ms"}, 5),
        ({"staleness_limit_ms": "5"}, 5),
        ({"spark.databricks.delta.stalenessLimit": "1h"}, 3_600_000),
        ({"spark.databricks.delta.stalenessLimit": "30 s"}, 30_000),
        ({"spark.databricks.delta.stalenessLimit": "2min"}, 120_000),
        ({"spark.databricks.delta.stalenessLimit": "1d"}, 86_400_000),
    ],
)
def test_the_staleness_limit_goes_by_our_name_and_by_sparks(options, expected):
    """Both names set the same limit, as number or as text with the units that Spark takes."""
    assert expected == LogOptions.from_mapping(options).staleness_limit_ms


@pytest.mark.parametrize(
    ("name", "hours"),
    [("UTC", 0), ("Asia/Tokyo", 9), ("+05:30", 5.5), ("-01:00", -1), (ZoneInfo("Asia/Tokyo"), 9)],
)
def test_the_zone_of_times_without_one_goes_by_our_name_and_by_sparks(name, hours):
    """A name of the machine's list, an offset or Python's own object."""
    for option in ("time_zone", "spark.sql.session.timeZone"):
        zone = LogOptions.from_mapping({option: name}).time_zone
        assert datetime(2020, 1, 1, tzinfo=zone).utcoffset() == timedelta(hours=hours)


def test_options_that_cannot_be_are_refused():
    """A negative limit, a text that is not a number, an unknown name; Spark's other names are passed over."""
    zones = [{"time_zone": zone} for zone in ("Europe/Nowhere", "", "/etc/passwd", 5, "+99:99")]
    for wrong in (
        {"staleness_limit_ms": -1},
        {"staleness_limit_ms": "soon"},
        {"checkpoint_retries_max": "2s"},
        {"unknown": 1},
        *zones,
    ):
        with pytest.raises(InvalidOption):
            LogOptions.from_mapping(wrong)
    assert LogOptions() == LogOptions.from_mapping({"spark.sql.shuffle.partitions": "5"})
    assert not LogOptions.from_mapping(
        {"spark.databricks.delta.deltaLog.minorCompaction.useForReads": "false"}
    ).use_compacted


def test_a_table_with_very_many_files_is_a_warning(caplog):
    """The threshold is Spark's; 0 switches it off."""
    table = TableBuilder().commits(6)
    assert table.log(files_warning_threshold=3).current_snapshot.count == 5
    assert "has 5 files" in caplog.text
    caplog.clear()
    assert table.log(files_warning_threshold=0).current_snapshot.count == 5
    assert caplog.text == ""


# What a user of the library finds on ``DeltaLog``: opening, reading, writing and upkeep.


SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("price", pa.float64())])
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(scope="module")
def bucket():
    """A bucket that is probed shortly: a log that is opened by its place alone trusts none."""
    with made_bucket() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "LONG_ROUNDS", probe.QUICK_ROUNDS)
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
    log = created(place, SCHEMA, ["city"], configuration)
    for item in appended:
        append(log, item)
    return log


def ids(found):
    return sorted(found["id"].to_pylist())


def test_a_table_lives_its_life_on_disk_and_in_a_bucket(place):
    """Committed to, read, checkpointed and verified by its place alone."""
    assert not DeltaLog.is_table(place)
    log = made(place, rows(1, 2), rows(3, city="Rome"), **VECTORS)
    assert DeltaLog.is_table(place)
    mark(log, "id", 2)
    assert ids(log.to_arrow()) == [1, 3]
    assert ids(log.to_arrow(where=[("city", "=", "Rome")])) == [3]
    assert ids(log.snapshot_at(version=2).to_arrow()) == [1, 2, 3]
    assert ids(log.to_dataset().to_table()) == [1, 3]
    assert log.maintenance.checkpoint().version == 3
    assert log.maintenance.verify() == []
    operations = [entry.commit_info.operation for entry in log.history()]
    assert operations == ["DELETE", "WRITE", "WRITE", "CREATE TABLE"]
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
    with pytest.raises(InvalidOption, match="is no directory of this machine and no bucket"):
        DeltaLog.open(uri)
    with pytest.raises(InvalidOption):
        DeltaLog.for_table(uri)


@pytest.mark.parametrize(
    ("below", "message"), [("_delta_log", "folder of a log"), ("note.txt", "a file"), (None, "not a path")]
)
def test_what_is_no_folder_of_a_table_is_refused(tmp_path, below, message):
    """The log's own folder and a file are no tables of version -1."""
    made(tmp_path, rows(1))
    (tmp_path / "note.txt").write_text("x")

    with pytest.raises(InvalidOption, match=message):
        DeltaLog.open(below and tmp_path / below)
    with pytest.raises(InvalidOption, match=message):
        DeltaLog(below and tmp_path / below)


def test_no_columns_are_rows_all_the_same(tmp_path):
    """As many as there are, with a predicate too."""
    log = made(tmp_path, rows(1, 2), rows(3))

    assert (log.to_arrow(columns=[]).num_rows, log.to_arrow(columns=[]).num_columns) == (3, 0)
    assert log.to_arrow(columns=[], where=[("id", ">", 2)]).num_rows == 1
    assert sum(batch.num_rows for batch in log.snapshot.to_batches([])) == 3


def test_the_first_guesses_of_who_knows_delta_rs_work(tmp_path):
    """A table by its path; its version, its schema in Arrow, its rows as pandas, a moment as text."""
    made(tmp_path, rows(1, 2), rows(3))
    log = DeltaLog(tmp_path)

    assert (log.version, log.path) == (2, str(tmp_path))
    assert log.schema == log.snapshot.schema == log.to_arrow().schema == log.to_dataset().schema
    assert sorted(log.to_pandas(where="id > 1")["id"]) == [2, 3]
    assert log.snapshot_at(timestamp=log.history()[0].to_json()["timestamp"]).version == 2
    assert len(DeltaLog(tmp_path / "none").schema) == 0


def test_a_log_lists_the_names_of_the_page(tmp_path):
    """Completion gives what a user of a table needs; the seed's other names exist all the same."""
    log = made(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "log.md").read_text()
    listed = re.search(r"- `DeltaLog`: ([^.]*)\.", page)[1]

    names = {name for name in dir(log) if not name.startswith("_")}

    assert names == set(re.findall(r"`(\w+)`", listed))
    assert all(hasattr(log, name) for name in [*names, "current_snapshot", "log_segment_for_version"])


def changed_ids(log, *versions, **moments):
    found = log.changes(*versions, **moments).read_all()
    return sorted(zip(found["_change_type"].to_pylist(), found["id"].to_pylist(), strict=True))


def test_changes_are_found_by_moments(tmp_path):
    """From the first version at or after the start to the last at or before the end; none is no error."""
    log = made(tmp_path, rows(1), rows(2), rows(3))
    times = [entry.timestamp for entry in reversed(log.history())]
    first, second, third = (("insert", number) for number in (1, 2, 3))

    assert changed_ids(log) == changed_ids(log, start_timestamp=0) == [first, second, third]
    assert changed_ids(log, start_timestamp=times[2]) == [second, third]
    assert changed_ids(log, 1, end_timestamp=times[2]) == [first, second]
    assert changed_ids(log, start_timestamp=times[1] + 1, end_timestamp="2999-01-01") == [second, third]
    assert changed_ids(log, start_timestamp=datetime(2999, 1, 1, tzinfo=UTC)) == []
    assert changed_ids(log, log.version + 1) == []
    with pytest.raises(VersionNotFound, match="before the earliest version"):
        log.changes(end_timestamp="2001-01-01")
    with pytest.raises(InvalidOption, match="Both start and start_timestamp"):
        log.changes(1, start_timestamp=times[1])
    with pytest.raises(InvalidOption, match="not a range"):
        log.changes(start_timestamp=times[3], end_timestamp=times[1])
    with pytest.raises(NotFound, match="no table"):
        DeltaLog(tmp_path / "none").changes()


def test_the_times_of_a_history_are_taken_back(tmp_path):
    """A number is milliseconds since 1970; True is none."""
    log = made(tmp_path, rows(1), rows(2))

    assert [log.snapshot_at(timestamp=item.timestamp).version for item in log.history()] == [2, 1, 0]
    with pytest.raises(InvalidOption, match="milliseconds"):
        log.snapshot_at(timestamp=True)


def test_delta_rs_reads_what_was_committed(tmp_path):
    """The same rows, and files are named where they are."""
    log = made(tmp_path, rows(1, 2, 3), rows(4, 5))
    table = deltalake.DeltaTable(tmp_path)
    assert ids(pa.table(table.to_pyarrow_table())) == [1, 2, 3, 4, 5]
    assert sorted(log.snapshot.file_uris()) == sorted(table.file_uris())


def test_a_transaction_takes_actions_and_commits_them(tmp_path):
    """They become one version; a second transaction on the version before conflicts."""
    log = made(tmp_path, rows(1))
    [add] = to_adds(log.snapshot.files)
    one, two = log.start_transaction(), log.start_transaction()
    metadata = replace(one.snapshot.metadata, name="prices")
    assert one.commit([removal(add), metadata]) == 2
    assert (log.snapshot.metadata.name, log.snapshot.count) == ("prices", 0)
    with pytest.raises(ConflictError):
        two.commit([removal(add)])


@pytest.mark.parametrize("configuration", [{}, VECTORS])
def test_changes_are_told_by_added_and_removed_files(tmp_path, configuration):
    """With vectors the rows that went; without, the file's rows as deleted and the kept ones as inserted."""
    log = made(tmp_path, rows(1, 2), **configuration)
    if configuration:
        mark(log, "id", 2)
    else:
        deltalake.DeltaTable(tmp_path).delete("id = 2")
        log.update()
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
    if configuration:
        mark(log, "id", 2)
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
    """A table of which every row was deleted gives no row, and its columns."""
    log = made(tmp_path, rows(1), **VECTORS)
    mark(log, "id", 1)
    assert log.to_dataset().to_table().num_rows == 0
    assert SCHEMA.names == log.to_dataset().schema.names


def test_a_listener_is_told_and_cannot_disturb(tmp_path, caplog):
    """Updates, snapshots, commits and checkpoints; what the listener raises is for the log file."""
    heard = []

    def listen(event):
        heard.append(event)
        raise RuntimeError("deaf")

    made(tmp_path)
    DeltaLog.clear_cache()
    log = DeltaLog.open(tmp_path, options=LogOptions(listener=listen))
    append(log, rows(1))
    log.maintenance.checkpoint()
    names = {event.name for event in heard}
    assert names == {"deltaLog.update", "deltaLog.snapshot", "deltaLog.commit", "deltaLog.checkpoint"}
    [commit] = [event for event in heard if event.name == "deltaLog.commit"]
    assert commit.metrics == {"version": 1, "operation": "WRITE"}
    assert "deaf" in caplog.text
    json.dumps([dict(event.metrics) for event in heard])


# One log, many threads: each gets the answer that it would get alone.


THREADS, READS, COMMITS = 8, 60, 40


@pytest.fixture
def hurried():
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("checkpoint", [None, "classic"])
def test_threads_that_read_versions_of_one_log_do_not_disturb_each_other(hurried, checkpoint):
    """Every version read by any thread, updates in between, has the files it has alone."""
    table = TableBuilder().commits(COMMITS)
    if checkpoint:
        table.checkpoint(6, checkpoint)
    log = table.log()

    def look(number):
        version = number * 7 % COMMITS
        if number % 5 == 0:
            found = log.update()
            return found.version, paths(found)
        return version, paths(log.snapshot_at(version=version))

    with ThreadPoolExecutor(THREADS) as pool:
        answers = pool.map(look, range(READS))
        for number in range(3):
            table.commit(file(f"late{number}"))
            log.update()
        wrong = [version for version, found in answers if table.live(version) != found]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_a_name_of_another_library_says_what_to_write(table, tmp_path, name):
    """On the log and on the class; what it says to write exists, here or in the library that it names."""
    log = DeltaLog.open(tmp_path / "t")
    with pytest.raises(AttributeError) as on_log:
        getattr(log, name)
    with pytest.raises(AttributeError) as on_class:
        getattr(DeltaLog, name)
    said = str(on_log.value)
    assert said == str(on_class.value)
    assert said.startswith(f"DeltaLog has no {name!r}. ")
    found = [
        *re.findall(r"\blog\.([a-z_.]+[a-z_])", said),
        *re.findall(r"\bDeltaLog\.([a-z_]+)", said),
    ]
    for path in found:
        attrgetter(path)(log)
    for method in re.findall(r"deltalake\.DeltaTable\(path\)\.([a-z_]+)", said):
        assert hasattr(deltalake.DeltaTable, method)
    assert found or "deltalake" in said or "spark" in said


def test_every_name_of_deltalake_and_delta_is_known_to_the_log():
    """What ``deltalake.DeltaTable`` and Delta's Python class have and the log lacks has an answer."""
    theirs = {name for name in dir(deltalake.DeltaTable) if not name.startswith("_")}
    assert set() == {name for name in theirs if not hasattr(DeltaLog, name)} - set(INSTEAD)
    assert len(INSTEAD) >= 45


def test_version_called_as_a_method_says_that_it_is_a_property(table, tmp_path):
    """As of other libraries' tables; it is a number in all else."""
    log = DeltaLog.open(tmp_path / "t")
    with pytest.raises(TypeError, match=r"a property: write log\.version, without parentheses"):
        log.version()
    assert (1, "1", [1]) == (log.version, json.dumps(log.version), pa.array([log.version]).to_pylist())


def test_an_unknown_name_is_a_plain_attribute_error(table, tmp_path):
    """``hasattr`` and ``getattr`` with a default go on as for any object."""
    log = DeltaLog.open(tmp_path / "t")
    assert (False, 7) == (hasattr(log, "nothing"), getattr(log, "files", 7))
