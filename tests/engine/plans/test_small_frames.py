"""Few rows of a Spark frame come as an Arrow table; all else is left to files."""

import threading
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from freezeframe.engine.plans import write_batch as subject
from freezeframe.engine.plans.write_batch import batch_schema, collect_small, rows_to_write
from freezeframe.engine.protocol import WriteTask

pytestmark = pytest.mark.spark


def small(frame, *key):
    task = WriteTask("nowhere", key=key)
    schema = batch_schema(frame.schema, task)
    found = collect_small(frame, schema)
    return None if found is None else rows_to_write(found, task, schema)


def test_few_rows_are_a_table_in_the_types_that_files_would_have(spark_session):
    """Instants are in UTC whatever the session's clock says, and nothing is written."""
    frame = spark_session.sql(
        "select 7 as Id, 'a' as Name, timestamp'2026-01-01 12:00:00Z' as At, 1.50bd as Amount,"
        " timestamp_ntz'2026-01-01 12:00:00' as Local, array(1, null) as Tags, null as Nothing"
    )
    found = small(frame, "Id")

    kinds = {field.name: str(field.type) for field in found.schema}
    assert tuple(kinds[name] for name in ("At", "Local", "Amount")) == (
        "timestamp[us, tz=UTC]",
        "timestamp[us]",
        "decimal128(3, 2)",
    )
    assert kinds["Nothing"] == "null"
    row = found.to_pylist()[0]
    assert (str(row["At"]), row["Tags"]) == ("2026-01-01 12:00:00+00:00", [1, None])


@pytest.mark.parametrize(
    "query",
    [
        "select 1 as Id union all select 1",
        "select cast(null as int) as Id",
        "select 1d as Id",
        "select 1 as Id, cast(x'ff' as string) as Name",
    ],
    ids=["keys that repeat", "a key that is missing", "a key of floating point", "text that is not UTF-8"],
)
def test_rows_that_need_a_decision_are_left_to_files(spark_session, query):
    """What is done with such rows is said in one place, however many they are."""
    assert small(spark_session.sql(query), "Id") is None


def test_many_rows_are_left_to_files(spark_session, monkeypatch):
    """A task ends as soon as its own are too many, and the request once those of all tasks are."""
    assert small(spark_session.range(10_000_000)) is None
    monkeypatch.setattr(subject, "ROWS_MAX", 100)
    assert len(small(spark_session.range(100))) == 100
    assert small(spark_session.range(101)) is None
    assert small(spark_session.sql("select explode(sequence(1, 1000000)) as Id")) is None


@pytest.mark.parametrize(
    "query",
    [
        "select id, repeat('x', 1000000) as Note from range(0, 100000, 1, 1)",
        "select id, array_repeat(repeat('x', 100000), 10) as Notes from range(0, 100000, 1, 1)",
        "select id, repeat('x', 1000000) as Note from range(0, 64, 1, 32)",
    ],
    ids=["one task", "nested values", "many tasks"],
)
def test_many_bytes_are_left_to_files(spark_session, query):
    """A task ends after some of its rows: together they would exceed the memory of the server."""
    assert small(spark_session.sql(query), "id") is None


def test_rows_of_one_size_are_taken_up_to_the_limit_of_bytes(spark_session, monkeypatch):
    """Text, binary and nested values count by their length; names that differ by case are two columns."""
    monkeypatch.setattr(subject, "BYTES_MAX", 100_000)
    text = "repeat('x', 300)"
    query = f"select id, {text} as A, array({text}) as a, cast({text} as binary) as b"
    assert len(small(spark_session.sql(f"{query} from range(0, 90, 1, 1)"), "id")) == 90
    assert small(spark_session.sql(f"{query} from range(0, 110, 1, 1)"), "id") is None


def test_a_frame_of_no_rows_is_a_table_of_none(spark_session):
    """Its columns and types are there."""
    found = small(spark_session.range(0), "id")
    assert (0, pa.int64()) == (len(found), found.schema.field("id").type)


def nested(depth):
    """Every type of lists, maps and structs down to a depth, as Spark names it."""
    if not depth:
        return ["string", "bigint", "binary"]
    inner = nested(depth - 1)
    forms = ("array<{}>", "map<string,{}>", "struct<a:{}>", "struct<a:{},b:string>")
    return [form.format(kind) for form in forms for kind in inner]


def nothing_of(kind):
    """An expression of the type: a list or map without an entry, or a struct of these."""
    if not kind.startswith("struct"):
        return f"cast({kind.partition('<')[0]}() as {kind})" if "<" in kind else f"cast(null as {kind})"
    members = kind.removeprefix("struct<a:").removesuffix(">")
    inner = members.removesuffix(",b:string")
    second = ", 'b', cast(null as string)" if inner != members else ""
    return f"named_struct('a', {nothing_of(inner)}{second})"


@pytest.mark.parametrize("rows", [1, 3])
def test_nested_columns_without_an_entry_are_whole(spark_session, rows):
    """Their bytes can be counted, and Polars reads them, for each type of three levels."""
    kinds = [kind for depth in (1, 2, 3) for kind in nested(depth)]
    columns = [f"{nothing_of(kind)} as c{number}" for number, kind in enumerate(kinds)]
    found = small(spark_session.sql(f"select {', '.join(columns)} from range(0, {rows}, 1, {rows})"))
    plain = pa.Table.from_pylist(found.to_pylist(), found.schema)
    assert plain.to_pylist() == found.to_pylist()
    assert pl.from_arrow(plain).equals(pl.from_arrow(found))
    assert found.nbytes < 2**20


NAMES = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")


@pytest.mark.parametrize("mode", ["CODEGEN_ONLY", None])
def test_few_rows_are_computed_without_generated_code(spark_session, monkeypatch, mode):
    """The session has its own settings again, those of the user too, also when the query fails."""
    client = spark_session.client
    if mode:
        spark_session.conf.set(NAMES[1], mode)
    before = client.get_configs(*NAMES)
    while_asked, execute = [], client.to_table_as_iterator

    def noted(*arguments):
        while_asked.append(client.get_configs(*NAMES))
        return execute(*arguments)

    monkeypatch.setattr(client, "to_table_as_iterator", noted)
    assert len(small(spark_session.range(3))) == 3
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        small(spark_session.sql("select 1 / id as x from range(0, 1, 1, 1)"))
    assert while_asked == [("false", "NO_CODEGEN")] * 2
    assert before == client.get_configs(*NAMES)
    spark_session.conf.unset(NAMES[1])


def test_threads_that_share_a_session_leave_its_settings(spark_session, monkeypatch):
    """Whoever comes in the middle of another's query does not keep that query's settings."""
    client = spark_session.client
    before, execute = client.get_configs(*NAMES), client.to_table_as_iterator
    both = threading.Barrier(2)

    def together(*arguments):
        both.wait(30)
        return execute(*arguments)

    monkeypatch.setattr(client, "to_table_as_iterator", together)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda rows: len(small(spark_session.range(rows))), [3, 4]))
    assert found == [3, 4]
    assert before == client.get_configs(*NAMES)
