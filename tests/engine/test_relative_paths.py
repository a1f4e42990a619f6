"""Relative paths in plans and in the text of SQL, and what becomes of them on each kind of server."""

import os
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect import proto
from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.configuration import cores
from freezeframe.engine.connect import connect
from freezeframe.engine.relative_paths import RelativePaths
from freezeframe.engine.server.server import attach
from freezeframe.errors import InvalidOption

FOLDER = "file:///work/o'neil"

QUERIES = {
    "select * from parquet.`a b` p, csv.`c`, json.`/abs`, t where parquet.a = json.b": (
        "select * from parquet.`{0}/a b` p, csv.`{0}/c`, json.`/abs`, t where parquet.a = json.b"
    ),
    "select * from (select * from PARQUET.staging) join `text`.`../y` using (id)": (
        "select * from (select * from PARQUET.`{0}/staging`) join `text`.`{0}/../y` using (id)"
    ),
    "from orc.`a` select json.b, csv.`c` order by d desc, json.e": (
        "from orc.`{0}/a` select json.b, csv.`c` order by d desc, json.e"
    ),
    "with q as (select 1 from xml.`x`) select 1 from q where exists (select 1 from avro.`y`)": (
        "with q as (select 1 from xml.`{0}/x`) select 1 from q where exists (select 1 from avro.`{0}/y`)"
    ),
    "merge into t using csv.`s` p on t.a = p.json when matched then update set a = json.b, c = json.d": (
        "merge into t using csv.`{0}/s` p on t.a = p.json when matched then update set a = json.b, c = json.d"
    ),
    "create table t using csv options (path 'x', header 'y') location \"z\"": (
        "create table t using csv options (path '{1}/x', header 'y') location \"{0}/z\""
    ),
    'alter table t add partition (a = 1) location r"x"': (
        'alter table t add partition (a = 1) location r"{0}/x"'
    ),
    "insert overwrite local directory 'x' select 1": "insert overwrite local directory '{1}/x' select 1",
    "load data inpath 'x' into table t": "load data inpath '{1}/x' into table t",
    "add jar lib/a.jar": "add jar {0}/lib/a.jar",
    "set spark.sql.streaming.checkpointLocation = c": "set spark.sql.streaming.checkpointLocation = {0}/c",
}
LEFT = (
    "select json.a, csv.`name`, extract(day from csv.d), trim(both from json.e) from t csv, u json",
    "select a is distinct from json.b, struct(json.c, json.d) from t lateral view explode(x) json as y",
    "select 'from csv.`x`' -- from csv.`y`",
    "select * from parquet.`s3a://bucket/x`, leads.`x`, a.json.x",
    "create table t using bigquery options (path 'project.table')",
    "select `location`, path from t where `location` in ('x') and directory = 'y'",
)  # fmt: skip


@pytest.fixture
def here(monkeypatch):
    """The relative paths of a process in a folder whose name has a quote."""
    monkeypatch.setattr(os, "getcwd", lambda: FOLDER.removeprefix("file://"))
    return RelativePaths(is_of_this_machine=True)


@pytest.mark.parametrize("query", [*QUERIES, *LEFT])
def test_paths_in_sql_are_those_of_the_process(here, query):
    """Where a table's name or a path can stand; columns, texts and addresses stay as they are."""
    relation = proto.Relation(sql=proto.SQL(query=query))
    here.resolve(relation)
    assert QUERIES.get(query, query).format(FOLDER, FOLDER.replace("'", "\\'")) == relation.sql.query


def test_only_paths_of_files_change(here, monkeypatch):
    """A reader takes paths for patterns, and other sources have paths that name no file."""
    monkeypatch.setattr(os, "getcwd", lambda: "/a[1]")
    command = proto.Command()
    write = command.write_operation
    write.input.read.data_source.paths.extend(["x*", "/y", "gs://b/z"])
    write.path = "out"
    stream = command.write_stream_operation_start
    here.resolve(write)
    assert (list(write.input.read.data_source.paths), write.path) == (
        ["file:///a\\[1\\]/x*", "/y", "gs://b/z"],
        "file:///a[1]/out",
    )
    stream.format = "kafka"
    stream.options.update({"path": "topic", "CheckpointLocation": "c", "sep": ","})
    here.resolve(command)
    assert dict(stream.options) == {"path": "topic", "CheckpointLocation": "file:///a[1]/c", "sep": ","}


USES = {
    "read": lambda session: session.read.parquet("staging"),
    "table": lambda session: session.table("parquet.`staging`").schema,
    "write": lambda session: session.range(1).write.parquet("staging"),
    "V2": lambda session: session.range(1).writeTo("t").using("csv").option("path", "staging").create(),
    "stream": lambda session: session.readStream.schema("a int").json("staging"),
    "checkpoint": lambda session: (
        session.readStream.format("rate")
        .load()
        .writeStream.option("checkpointLocation", "staging")
        .start("/x")
    ),
    "setting": lambda session: session.conf.set("spark.sql.streaming.checkpointLocation", "staging"),
    "SQL": lambda session: session.sql("select * from json.`staging`"),
    "column": lambda session: session.range(1).selectExpr("(select max(a) from csv.`staging`)").collect(),
    "catalog": lambda session: session.catalog.createTable("t", "staging", "csv"),
}


@pytest.mark.spark
def test_on_another_machine_relative_paths_are_refused(spark_engine, spark_settings):
    """With a remedy, and the question about a table without a path is answered."""
    with closing(attach(spark_settings, f"local[{cores()}]", print)) as server:
        elsewhere = spark_settings.model_copy(update={"spark": server.address.url})
        with closing(connect(elsewhere, print, is_process=True)) as connection:
            for name, use in USES.items():
                with pytest.raises(InvalidOption, match="The path 'staging' is relative") as caught:
                    use(connection.session)
                assert "absolute path" in caught.value.remedy, name
            assert connection.session.sql("select 'staging' a").first()["a"] == "staging"


@pytest.mark.spark
def test_nothing_can_be_written_in_the_servers_working_folder(spark_engine, spark_settings):
    """What a session without the library asks for fails, to root as well: it would be every tenant's."""
    with closing(attach(spark_settings, f"local[{cores()}]", print)) as server:
        session = SparkSession(connection=server.address.url)
        try:
            for mode in ("append", "overwrite"):
                with pytest.raises(PySparkException):
                    session.range(1).write.mode(mode).parquet("slipped")
            with pytest.raises(PySparkException, match="relative_paths_are_not_resolved_on_the_server"):
                session.read.text("slipped").count()
        finally:
            session.stop()
        assert not list(server.folder.rglob("slipped*"))
        working = Path(f"/proc/{server.address.process}/cwd")
        if working.is_dir():
            with pytest.raises(OSError, match="slipped"):
                (working / "slipped").touch()


@pytest.mark.spark
def test_a_clone_of_a_session_makes_nothing_that_all_jobs_see(spark_engine, spark_settings):
    """As the session itself, also in a plan of many megabytes, which Spark would compress."""
    with closing(connect(spark_settings, print, is_process=True)) as connection:
        clone = connection.session.cloneSession()
        large = f"create global temp view leads as select '{'x' * 11_000_000}'"
        for use in (
            lambda: clone.range(1).createGlobalTempView("leads"),
            lambda: connection.session.sql(large),
        ):
            with pytest.raises(InvalidOption, match="global temporary views"):
                use()
