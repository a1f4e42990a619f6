"""A user's Spark frame becomes Parquet once, with one row for each key."""

import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.functions import col, expr, rand

from freezeframe.engine.base import LandTask
from freezeframe.errors import BadInput, DuplicateKeyError, MissingColumn, NullKeyError

pytestmark = pytest.mark.spark

FRAME = "Id string, `count` int, m map<string,int>"


@pytest.fixture
def frame(spark_session):
    def make(*rows, schema=FRAME):
        return spark_session.createDataFrame(list(rows), schema)

    return make


def land(bench, frame, **options):
    task = LandTask(bench.new("landed"), **options)
    landed = bench.engine.land(frame, task)
    return landed, bench.rows(task.output, landed.files)


def test_a_frame_without_key_is_written_as_it_is(bench, frame):
    """Rows repeat if there is no key; schema and count are those of the files."""
    landed, rows = land(bench, frame(("1", 1, None), ("1", 1, None)))
    assert (2, 2, 0) == (landed.rows, len(rows), landed.duplicates)
    assert ["Id", "count", "m"] == [column["name"] for column in landed.schema["fields"]]
    assert all(column["nullable"] for column in landed.schema["fields"])


def test_equal_rows_collapse(bench, frame):
    """Exact repetitions are one row, maps compared whatever their order."""
    landed, rows = land(
        bench, frame(("1", 1, {"a": 1, "b": 2}), ("1", 1, {"b": 2, "a": 1}), ("2", 1, None)), key=("Id",)
    )
    assert (2, 1, {"1", "2"}) == (landed.rows, landed.duplicates, {row["Id"] for row in rows})


def test_rows_of_one_key_that_differ_are_an_error_with_the_keys(bench, frame):
    """A Spark frame has no order, so nobody can say which row is the last."""
    with pytest.raises(DuplicateKeyError, match="'7'") as caught:
        land(bench, frame(("7", 1, None), ("7", 2, None), ("8", 1, None)), key=("Id",))
    assert ["'7'"] == caught.value.details["keys"]


def test_many_disputed_keys_are_named_up_to_ten(bench, frame):
    """The message stays readable."""
    rows = [(str(number), value, None) for number in range(30) for value in (1, 2)]
    with pytest.raises(DuplicateKeyError) as caught:
        land(bench, frame(*rows), key=("Id",))
    assert 10 == len(caught.value.details["keys"])


def test_order_by_says_which_row_is_the_last(bench, frame):
    """The greatest wins, nulls are the oldest; a tie that differs is an error still."""
    landed, rows = land(
        bench, frame(("1", 1, None), ("1", 3, None), ("1", None, None)), key=("Id",), order_by=("count",)
    )
    assert ([3], 2) == ([row["count"] for row in rows], landed.duplicates)
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
    assert (1, 1, ["1"]) == (landed.null_keys, landed.rows, [row["Id"] for row in left])
    landed, left = land(bench, rows, key=("Id",), null_keys="match")
    assert (0, 2) == (landed.null_keys, len(left))


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
    task = LandTask(bench.new("landed"), key=("Id",), order_by=("r",))
    landed = bench.engine.land(rows, task)
    assert (50, 50) == (landed.rows, landed.duplicates)
    raw = bench.rows(task.output, [p.name for p in (bench.folder / task.output).glob("*.parquet")])
    left = bench.rows(task.output, landed.files)
    assert {row["Id"]: max(r["r"] for r in raw if r["Id"] == row["Id"]) for row in raw} == {
        row["Id"]: row["r"] for row in left
    }


def test_an_undecided_column_is_left_out_of_the_files(bench, spark_session):
    """A column of nulls without a type stays in the schema, as ``void``."""
    landed, rows = land(bench, spark_session.sql("select '1' Id, null as n"), key=("Id",))
    assert ([{"Id": "1"}], "void") == (rows, landed.schema["fields"][1]["type"])


def test_the_callers_session_keeps_its_settings(bench, spark_session):
    """A landing needs its own timestamp type for a moment, and gives back what was there."""
    name = "spark.sql.parquet.outputTimestampType"
    spark_session.conf.set(name, "INT96")
    try:
        task = LandTask(bench.new("landed"))
        landed = bench.engine.land(spark_session.sql("select timestamp'2026-01-01 00:00:00' at"), task)
        assert "INT96" == spark_session.conf.get(name)
    finally:
        spark_session.conf.set(name, "TIMESTAMP_MICROS")
    file = pq.ParquetFile(f"{task.output}/{landed.files[0]}")
    assert "INT64" == file.metadata.row_group(0).column(0).physical_type
