"""A user's Spark frame becomes Parquet once, with one row for each key."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.functions import col, expr, rand

from freezeframe.engine.plans.write_batch import batch_schema, settle, write_frame
from freezeframe.engine.protocol import WriteTask
from freezeframe.errors import (
    BadInput,
    DuplicateKeyError,
    MissingColumn,
    NullKeyError,
    SchemaDriftError,
    StorageNotShared,
)

pytestmark = pytest.mark.spark

FRAME = "Id string, `count` int, m map<string,int>"


@pytest.fixture
def frame(spark_session):
    def make(*rows, schema=FRAME):
        return spark_session.createDataFrame(list(rows), schema)

    return make


def land(bench, frame, **options):
    task = WriteTask(bench.new("landed"), **options)
    landed = bench.engine.write_batch(frame, task)
    return landed, bench.rows(task.output, landed.files)


def test_a_frame_without_key_is_written_as_it_is(bench, frame):
    """Rows repeat if there is no key; schema and count are those of the files."""
    landed, rows = land(bench, frame(("1", 1, None), ("1", 1, None)))
    assert (landed.rows, len(rows), landed.duplicates) == (2, 2, 0)
    assert [column["name"] for column in landed.schema["fields"]] == ["Id", "count", "m"]
    assert all(column["nullable"] for column in landed.schema["fields"])


@pytest.mark.parametrize(
    ("query", "is_read"),
    [
        ("select id as Id, 'x' as v from range(30)", True),
        ("select id div 2 as Id, 'x' as v from range(30)", False),
        ("select double(id) as Id, 'x' as v from range(30)", False),
        ("select id as Id, repeat('long', 1000) as v from range(30)", False),
    ],
    ids=["plain", "keys that repeat", "a key of floating point", "too large"],
)
def test_rows_that_take_few_bytes_are_checked_here(bench, spark_session, query, is_read):
    """Spark is asked only about those that need a decision; what is in the files is the same."""
    options = {"key": ("Id",), "read_bytes_max": 10_000}
    landed, rows = land(bench, spark_session.sql(query), **options)
    asked, others = land(bench, spark_session.sql(query), **(options | {"read_bytes_max": 0}))
    assert (is_read, False) == (landed.table is not None, asked.table is not None)
    assert (asked.rows, asked.duplicates, asked.schema) == (landed.rows, landed.duplicates, landed.schema)
    assert sorted(row["Id"] for row in others) == sorted(row["Id"] for row in rows)
    if is_read:
        assert sorted(row["Id"] for row in rows) == sorted(landed.table["Id"].to_pylist())


def test_files_are_as_promised(bench, spark_session):
    """One zstd file with checked pages, INT64 micros, nullable columns and nothing beside it."""
    task = WriteTask(bench.new("landed"))
    rows = [("1", datetime(2026, 1, 1, tzinfo=UTC))]
    frame = spark_session.createDataFrame(rows, "Id string, at timestamp")
    (name,) = bench.engine.write_batch(frame, task).files
    path = Path(task.output) / name
    assert [path] == list(Path(task.output).iterdir())
    file = pq.ParquetFile(path)
    columns = [file.metadata.row_group(0).column(number) for number in range(2)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert columns[1].physical_type == "INT64"
    assert [file.schema.column(number).max_definition_level for number in range(2)] == [1, 1]
    assert pa.timestamp("us", tz="UTC") == file.schema_arrow.field("at").type
    data = bytearray(path.read_bytes())
    data[columns[0].data_page_offset + 40] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(OSError, match=r"(?i)crc|corrupt"):
        pq.read_table(path, page_checksum_verification=True)


def test_equal_rows_collapse(bench, frame):
    """Exact repetitions are one row, maps compared whatever their order."""
    landed, rows = land(
        bench, frame(("1", 1, {"a": 1, "b": 2}), ("1", 1, {"b": 2, "a": 1}), ("2", 1, None)), key=("Id",)
    )
    assert (landed.rows, landed.duplicates, {row["Id"] for row in rows}) == (2, 1, {"1", "2"})


def test_rows_of_one_key_that_differ_are_an_error_with_the_keys(bench, frame):
    """A Spark frame has no order, so none of its rows is the last; the error says so."""
    with pytest.raises(DuplicateKeyError, match="'7'") as caught:
        land(bench, frame(("7", 1, None), ("7", 2, None), ("8", 1, None)), key=("Id",))
    assert caught.value.details["keys"] == ["'7'"]
    assert "no order" in caught.value.cause


def test_many_disputed_keys_are_named_up_to_ten(bench, frame):
    """The message stays readable."""
    rows = [(str(number), value, None) for number in range(30) for value in (1, 2)]
    with pytest.raises(DuplicateKeyError) as caught:
        land(bench, frame(*rows), key=("Id",))
    assert len(caught.value.details["keys"]) == 10


def test_order_by_says_which_row_is_the_last(bench, frame):
    """The greatest wins, nulls are the oldest; a tie that differs is an error still."""
    landed, rows = land(
        bench, frame(("1", 1, None), ("1", 3, None), ("1", None, None)), key=("Id",), order_by=("count",)
    )
    assert ([row["count"] for row in rows], landed.duplicates) == ([3], 2)
    with pytest.raises(DuplicateKeyError):
        land(bench, frame(("1", 1, {"a": 1}), ("1", 1, None)), key=("Id",), order_by=("count",))


def test_repeated_keys_can_be_forbidden(bench, frame):
    """With ``drop_duplicates=False`` equal rows are an error too."""
    with pytest.raises(DuplicateKeyError):
        land(bench, frame(("1", 1, None), ("1", 1, None)), key=("Id",), drop_duplicates=False)


def test_null_keys_are_refused_dropped_or_kept(bench, frame):
    """The three ways to treat a null in a key."""
    rows = frame((None, 1, None), ("1", 1, None))
    with pytest.raises(NullKeyError, match=r"^1 rows"):
        land(bench, rows, key=("Id",))
    landed, left = land(bench, rows, key=("Id",), null_keys="drop")
    assert (landed.null_keys, landed.rows, [row["Id"] for row in left]) == (1, 1, ["1"])
    landed, left = land(bench, rows, key=("Id",), null_keys="match")
    assert (landed.null_keys, len(left)) == (0, 2)


def test_a_missing_key_column_is_named(bench, frame):
    """Before anything is computed."""
    with pytest.raises(MissingColumn, match="'id'"):
        land(bench, frame(("1", 1, None)), key=("id",))


def test_two_columns_of_one_name_are_refused(bench, frame):
    """Parquet would keep one of them."""
    rows = frame(("1", 1, None))
    with pytest.raises(BadInput, match="several columns named 'Id'"):
        land(bench, rows.select("Id", col("Id")))


def test_the_frame_is_computed_once(bench, spark_session):
    """What is random is not drawn again between the look at the keys and the write."""
    rows = spark_session.range(100).select(expr("cast(id % 50 as string) Id"), rand().alias("r"))
    task = WriteTask(bench.new("landed"), key=("Id",), order_by=("r",))
    landed = bench.engine.write_batch(rows, task)
    assert (landed.rows, landed.duplicates) == (50, 50)
    raw = bench.rows(task.output, [p.name for p in (bench.folder / task.output).glob("*.parquet")])
    left = bench.rows(task.output, landed.files)
    assert {row["Id"]: max(r["r"] for r in raw if r["Id"] == row["Id"]) for row in raw} == {
        row["Id"]: row["r"] for row in left
    }


def test_an_undecided_column_is_left_out_of_the_files(bench, spark_session):
    """A column of nulls without a type stays in the schema, as ``void``."""
    landed, rows = land(bench, spark_session.sql("select '1' Id, null as n"), key=("Id",))
    assert (rows, landed.schema["fields"][1]["type"]) == ([{"Id": "1"}], "void")


MOMENT = "select timestamp'2026-01-01 00:00:00' at"


@pytest.fixture
def int96_session(spark_session):
    """The user's session, as Spark itself would write timestamps."""
    name = "spark.sql.parquet.outputTimestampType"
    before = spark_session.conf.get(name)
    spark_session.conf.set(name, "INT96")
    yield spark_session
    spark_session.conf.set(name, before)


def physical_type(task, landed):
    file = pq.ParquetFile(f"{task.output}/{landed.files[0]}")
    return file.metadata.row_group(0).column(0).physical_type


def test_the_callers_settings_are_not_touched(bench, int96_session, monkeypatch):
    """A session that writes INT96 stays so all the time; what a stream gets has no INT96."""

    def refused(*_):
        raise AssertionError("a setting of the caller's session was changed")

    monkeypatch.setattr(type(int96_session.conf), "set", refused)
    monkeypatch.setattr(type(int96_session.conf), "unset", refused)
    task = WriteTask(bench.new("landed"))
    landed = bench.engine.write_batch(int96_session.sql(MOMENT), task)
    assert (physical_type(task, landed), landed.rows) == ("INT64", 1)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert [{"at": moment}] == bench.rows(task.output, landed.files)


def test_threads_of_one_session_land_alike(bench, int96_session):
    """Landings at the same time do not take each other's settings for the caller's."""
    tasks = [WriteTask(bench.new("landed")) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        landed = list(pool.map(lambda task: bench.engine.write_batch(int96_session.sql(MOMENT), task), tasks))
    assert {physical_type(*item) for item in zip(tasks, landed, strict=True)} == {"INT64"}
    assert int96_session.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"


@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_part_that_is_lost_after_the_write_is_missed(bench, spark_session, key):
    """As many rows as Spark counted on their way have to be here, or nothing is landed."""
    task = WriteTask(bench.new("landed"), key=key)
    frame = spark_session.range(0, 10, 1, 2)
    written = write_frame(frame, task, batch_schema(frame.schema, task))
    assert written.rows == 10
    min(Path(task.output).glob("*.parquet")).unlink()
    with pytest.raises(StorageNotShared, match="wrote 10 rows, and 5 of them are in the 1 files") as caught:
        settle(spark_session, task, written)
    assert caught.value.cause
    assert caught.value.remedy


@pytest.mark.parametrize("rows", [0, 3])
def test_no_file_is_not_no_row(bench, spark_session, rows):
    """What Spark wrote to a disk of its own is missed, even where it wrote no rows."""
    task = WriteTask(bench.new("landed"))
    frame = spark_session.range(rows)
    written = write_frame(frame, task, batch_schema(frame.schema, task))
    shutil.rmtree(task.output)
    with pytest.raises(StorageNotShared, match=f"wrote {rows} rows, and 0 of them are in the 0 files"):
        settle(spark_session, task, written)


def test_an_empty_frame_is_landed_as_one(bench, spark_session):
    """No rows in a file that says so."""
    landed, rows = land(bench, spark_session.range(0), key=("id",))
    assert (landed.rows, rows) == (0, [])
    assert landed.files


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("parse_json('{}')", "'bad' (variant)"),
        ("time'12:00:00'", "'bad' (time(6))"),
        ("interval '1' day", "'bad' (interval day)"),
        ("interval '1' month", "'bad' (interval month)"),
        ("make_interval(1)", "'bad' (interval)"),
        ("'a' collate UNICODE_CI", "'bad' (string collate UNICODE_CI)"),
        ("array(named_struct('v', parse_json('1')))", "'bad[].v' (variant)"),
        ("map('a', interval '1' day)", "'bad.value' (interval day)"),
        ("map(time'12:00:00', 1)", "'bad.key' (time(6))"),
    ],
)
def test_types_that_a_stream_cannot_keep_are_refused(bench, spark_session, expression, named):
    """By name, before anything is written."""
    task = WriteTask(bench.new("landed"), takes_table=True)
    with pytest.raises(SchemaDriftError) as caught:
        bench.engine.write_batch(spark_session.sql(f"select 1 Id, {expression} bad"), task)
    assert f"A stream cannot keep the type of these columns: {named}." == caught.value.problem
    assert not Path(task.output).exists()


def test_a_collated_key_is_refused(bench, spark_session):
    """Its values would not be told apart as the caller does."""
    with pytest.raises(SchemaDriftError, match="'Id'"):
        land(bench, spark_session.sql("select 'a' collate UNICODE_CI Id"), key=("Id",))
