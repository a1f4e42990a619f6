"""The one Spark session of a process, wherever Spark is and whoever makes the session."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.one_session import EXPECTED, facts, plain_environment

import freezeframe
from freezeframe.engine.configuration import cores
from freezeframe.engine.connect import connect
from freezeframe.engine.process_session import process_session
from freezeframe.engine.server.server import attach
from freezeframe.errors import InvalidOption

pytestmark = pytest.mark.spark


@pytest.fixture
def url(spark_engine, spark_settings):
    """Where the run's server listens, as somebody else's would be named."""
    attachment = attach(spark_settings, f"local[{cores()}]", lambda _: None)
    yield attachment.address.url
    attachment.close()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("first", "variable"),
    [("builder", "SPARK_REMOTE"), ("library", "SPARK_REMOTE"), ("library", "FREEZEFRAME_SPARK")],
)
def test_a_process_has_one_session_on_a_server_elsewhere(tmp_path, url, variable, first):
    """Frames of the library and of Spark's builder join; views and SQL see both."""
    assert {**EXPECTED, "kind": ".connect"} == facts(tmp_path, first, **{variable: url})


def test_a_process_without_a_session_gets_one_on_the_warm_server(tmp_path, spark_engine):
    """It becomes the default one: Spark's builder returns it, and starts no Spark of its own."""
    assert {**EXPECTED, "kind": ".connect"} == facts(tmp_path, "library")


@pytest.mark.nightly
def test_a_session_of_classic_spark_is_taken(tmp_path, spark_engine):
    """What the script had before it asked the library: frames come back in it."""
    assert {**EXPECTED, "kind": ""} == facts(tmp_path, "builder")


@pytest.mark.nightly
def test_a_private_server_has_the_session_of_its_process(tmp_path, spark_engine):
    """FREEZEFRAME_SPARK=local."""
    assert {**EXPECTED, "kind": ".connect"} == facts(tmp_path, "library", FREEZEFRAME_SPARK="local")


def test_threads_and_settings_share_the_session(spark_engine, spark_settings):
    """Whoever asks first makes it; it is the default one, in UTC, and otherwise as Spark has it."""
    other = spark_settings.model_copy(update={"spark_memory": "2g"})
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(freezeframe.spark) for _ in range(4)]
        found = {id(item.result()) for item in asked} | {id(process_session(other, print))}
    session = freezeframe.spark()
    assert {id(session)} == found
    assert session is SparkSession.builder.getOrCreate()
    names = ("spark.sql.session.timeZone", "spark.sql.caseSensitive", "spark.sql.adaptive.enabled")
    assert [session.conf.get(name) for name in names] == ["UTC", "false", "true"]


def test_a_session_that_was_stopped_is_replaced(spark_engine):
    """By one of the library's, or by what the script made meanwhile."""
    first = freezeframe.spark()
    first.stop()
    second = freezeframe.spark()
    assert (second.range(2).count(), second is first) == (2, False)
    second.stop()
    third = SparkSession.builder.getOrCreate()
    assert third is freezeframe.spark()
    third.stop()


def test_sessions_of_sparks_builder_are_in_the_database_of_their_job(spark_engine, spark_settings):
    """The one after a stop, and a further one: other jobs see nothing of what they save or define."""
    freezeframe.spark().stop()
    again = SparkSession.builder.appName("again").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    further = SparkSession.builder.remote(os.environ["SPARK_REMOTE"]).create()
    try:
        assert again is freezeframe.spark() is not further
        assert again.conf.get("spark.sql.shuffle.partitions") == "3"
        for number, session in enumerate([again, further]):
            session.range(number + 1).write.saveAsTable("leads")
            with pytest.raises(InvalidOption):
                session.range(1).createGlobalTempView("leads")
        assert [session.table("leads").count() for session in (again, further)] == [1, 2]
        with closing(connect(spark_settings, print)) as other, pytest.raises(AnalysisException):
            other.session.table("leads").count()
    finally:
        further.stop()
        again.stop()


def test_a_frame_comes_back_in_the_session_of_the_callers(tmp_path, spark_session):
    """Also where the process has another one; its settings stay, and say nothing about what is read."""
    name = "spark.sql.session.timeZone"
    before = spark_session.conf.get(name)
    spark_session.conf.set(name, "America/New_York")
    try:
        frame = spark_session.sql("select '1' Id, timestamp'2026-01-01 12:00:00' at")
        after = freezeframe.update_snapshot(tmp_path, "Account", "Id", frame)
        assert after.sparkSession is spark_session is not freezeframe.spark()
        assert [row["at"] for row in frame.collect()] == [row["at"] for row in after.collect()]
        assert spark_session.conf.get(name) == "America/New_York"
    finally:
        spark_session.conf.set(name, before)
    kept = freezeframe.get_snapshot(tmp_path, "Account", as_="spark")
    assert kept.sparkSession is freezeframe.spark()
    assert kept.selectExpr("string(at)").first()[0] == "2026-01-01 17:00:00"


def test_rows_that_vectors_delete_are_left_out_in_any_session(tmp_path, spark_session, monkeypatch):
    """The frame that an update returns reads stored files in the caller's session."""
    monkeypatch.setenv("FREEZEFRAME_VECTORS_FROM_BYTES", "0")
    rows = pa.table({"Id": pa.array(range(5_000)), "v": ["stored"] * 5_000})
    freezeframe.update_snapshot(tmp_path, "Account", "Id", rows)
    frame = spark_session.sql("select bigint(7) Id, 'new' v")
    after = freezeframe.update_snapshot(tmp_path, "Account", "Id", frame)
    assert any("deletionVector" in file.read_text() for file in tmp_path.rglob("_delta_log/*.json"))
    assert (after.count(), after.where("v = 'new'").count()) == (5_000, 1)


DEAD = """
import os, signal, sys, time
import pandas as pd
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from freezeframe import get_snapshot, spark, update_snapshot
from freezeframe.engine.server.server import running_servers
from freezeframe.settings import Settings

update_snapshot(sys.argv[1], "Lead", "Id", pd.DataFrame({"Id": ["1"]}))
first = spark()
[server] = running_servers(Settings())
os.kill(server.process, signal.SIGKILL)
while running_servers(Settings()):
    time.sleep(0.05)
try:
    first.range(1).count()
except PySparkException:
    print("gone")
kept = get_snapshot(sys.argv[1], "Lead", as_="spark")
print(kept.count(), kept.sparkSession is first, kept.sparkSession is SparkSession.builder.getOrCreate())
"""


@pytest.mark.nightly
def test_a_session_whose_server_died_is_replaced(tmp_path, spark_engine):
    """The next frame belongs to a session on the next server, which Spark's builder finds as well."""
    done = subprocess.run(
        [sys.executable, "-c", DEAD, str(tmp_path / "tenant")],
        env=plain_environment(FREEZEFRAME_STATE_DIR=str(tmp_path / "state")),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout.splitlines(), done.returncode) == (["gone", "1 False True"], 0), done.stderr


_MASTER = """
import atexit, threading
import freezeframe
session = freezeframe.spark()
from pyspark.sql import SparkSession
assert SparkSession.builder.master("local[2]").appName("x").getOrCreate() is session
assert SparkSession.builder.config("spark.master", "local").getOrCreate() is session

def refuse(*_):
    raise RuntimeError("can't start new thread at interpreter shutdown")

atexit.register(setattr, threading.Thread, "start", refuse)
"""


def test_a_script_that_names_a_master_gets_the_session_that_is_there(tmp_path, spark_engine):
    """A line says so; an interpreter that starts no thread at its end ends without a word."""
    environment = plain_environment()
    done = subprocess.run(
        [sys.executable, "-c", _MASTER],
        check=False,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert "token" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("is not used") == 2


STARTED = """
import freezeframe as ff
from pyspark.sql import SparkSession
from freezeframe.engine.server.server import running_servers
from freezeframe.settings import Settings
before = len(running_servers(Settings()))
rows = SparkSession.builder.getOrCreate().range(30_000).selectExpr("Id", "Id % 7 as v")
stream = ff.open_tenant("snapshots").stream("Lead")
told = [stream.update(rows.union(rows), "Id")]
told += [stream.update(rows.selectExpr("Id + 10 as Id", "8L as v").where("Id < 30"))]
told += [stream.update(rows.where("Id % 2 = 0"), mode="full", max_delete_ratio=1.0)]
told += [stream.update(rows.where("v = 1 and Id % 4 = 0"), replace_where="v = 1")]
kept = stream.read(as_="spark")
kind = "remote" if "connect" in type(kept).__module__ else "classic"
counts = [(one.inserted, one.updated, one.unchanged, one.deleted) for one in told]
engines = {one.engine for one in told[1:]}
print(kind, counts, kept.count(), engines, len(running_servers(Settings())) - before, flush=True)
"""
COUNTS = [(30_000, 0, 0, 0), (0, 20, 0, 0), (0, 10, 14_990, 15_000), (0, 0, 1_072, 1_071)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["spark-submit", "etl.py"], "classic"),
        (["pyspark"], "classic"),
        (["pyspark", "--remote", "URL"], "remote"),
        (["pyspark", "--remote", "local[2]"], "remote"),
        (["python", "etl.py"], "remote"),
    ],
)
@pytest.mark.usefixtures("default_engine")
def test_a_script_runs_however_spark_starts_it(tmp_path, url, command, kind):
    """By spark-submit, in Spark's shell, which reads what is typed, and by Python alone.

    Frames are landed and settled, keys found, files merged and windows looked for in the Spark that it
    has: no other one is started.
    """
    first = "import freezeframe as ff\nff.spark()\n" if command[0] == "python" else ""
    (tmp_path / "etl.py").write_text(first + STARTED)
    is_shell = command[0] == "pyspark"
    options = {"PYSPARK_DRIVER_PYTHON_OPTS": "-i"} if is_shell else {}
    if not first:  # Spark's commands start a Java with a heap of their own
        options |= {"JAVA_TOOL_OPTIONS": "", "FREEZEFRAME_STATE_DIR": str(tmp_path / "state")}
    words = [url if word == "URL" else word for word in command[1:]]
    done = subprocess.run(
        [Path(sys.executable).with_name(command[0]), *words],
        input=STARTED if is_shell else None,
        cwd=tmp_path,
        env=plain_environment(PYSPARK_PYTHON=sys.executable, **options),
        capture_output=True,
        text=True,
        check=False,
    )
    expected = f"{kind} {COUNTS} 13929 {{'spark'}} 0"
    assert expected in done.stdout.splitlines(), done.stdout + done.stderr
