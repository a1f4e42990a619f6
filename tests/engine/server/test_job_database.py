"""Jobs of two tenants on one warm server try each way of meeting, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.connect.functions import call_udf, lit, udf
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType
from tests.waiting import until

from freezeframe.engine.configuration import cores
from freezeframe.engine.connect import connect
from freezeframe.engine.server.job_database import VARIABLE, claim
from freezeframe.engine.server.server import attach
from freezeframe.engine.server.watcher import DATABASES
from freezeframe.errors import InvalidOption

pytestmark = pytest.mark.spark

LOST = "TABLE_OR_VIEW_NOT_FOUND"


@contextmanager
def job(settings):
    """The connection of a job."""
    connection = connect(settings, lambda _: None)
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture
def jobs(spark_settings):
    """The sessions of two jobs at the same time."""
    with job(spark_settings) as one, job(spark_settings) as other:
        yield one.session, other.session


def databases(session):
    """Those in the catalog."""
    return {row[0] for row in session.sql("show databases").collect()}


def test_tables_do_not_meet(jobs, spark_settings):
    """Both make one of the same name; each reads its own, and after the jobs neither is there."""
    for number, session in enumerate(jobs):
        session.range(number + 1).write.saveAsTable("leads")
    assert [session.table("leads").count() for session in jobs] == [1, 2]
    with job(spark_settings) as later, pytest.raises(AnalysisException, match=LOST):
        later.session.table("leads").count()


@pytest.mark.parametrize("make", ["create view leads as select 1", "create temporary view leads as select 1"])
def test_views_do_not_meet(jobs, make):
    """A view is its job's, whether it is in the catalog or in the session alone."""
    jobs[0].sql(make)
    assert jobs[0].table("leads").count() == 1
    with pytest.raises(AnalysisException, match=LOST):
        jobs[1].table("leads").count()


def test_functions_in_the_catalog_do_not_meet(jobs):
    """One of SQL goes with the job's database, one of Python with its session."""
    jobs[0].sql("create function one() returns int return 1")
    assert jobs[0].sql("select one()").first()[0] == 1
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        jobs[1].sql("select one()").first()


def test_functions_of_python_do_not_meet_run_with_our_python_and_end_with_their_job(jobs, spark_settings):
    """Two of the same name, in forks of a process for each job, which Spark itself would keep for ever."""
    with job(spark_settings) as ended:
        sessions = (jobs[0], ended.session)
        for number, session in enumerate(sessions):

            def answer(_, number=number):
                return f"{number} {sys.prefix} {os.getppid()}"

            session.udf.register("answer", udf(answer, StringType()))
        found = [session.range(1).select(call_udf("answer", lit(1))).first()[0] for session in sessions]
        told, daemons = zip(*(text.rsplit(" ", 1) for text in found), strict=True)
        kept, gone = (Path("/proc", number) for number in daemons)
        assert (f"0 {sys.prefix}", f"1 {sys.prefix}") == told
        assert gone.exists()
    until(lambda: not gone.exists(), seconds=20)

    assert kept.exists()


def test_settings_do_not_meet(jobs):
    """What one sets, the other has as before."""
    name = "spark.sql.session.timeZone"
    jobs[0].conf.set(name, "America/New_York")
    assert jobs[1].conf.get(name) == "UTC"


def test_cached_frames_do_not_meet(jobs):
    """A table of the same name that one has cached is not what the other reads."""
    for number, session in enumerate(jobs):
        session.range(number + 1).write.saveAsTable("cached_leads")
    jobs[0].catalog.cacheTable("cached_leads")
    assert [session.table("cached_leads").count() for session in jobs] == [1, 2]
    assert [session.catalog.isCached("cached_leads") for session in jobs] == [True, False]


def test_added_files_do_not_meet(jobs, tmp_path):
    """A module of the same name in both jobs: each imports its own."""
    schema = StructType([StructField("value", IntegerType())])

    def value(batches):
        import leads_module
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"value": pa.array([leads_module.VALUE], pa.int32())})

    for number, session in enumerate(jobs):
        file = tmp_path / str(number) / "leads_module.py"
        file.parent.mkdir()
        file.write_text(f"VALUE = {number}\n")
        session.addArtifacts(str(file), pyfile=True)
    told = [session.range(0, 1, 1, 1).mapInArrow(value, schema).first()[0] for session in jobs]
    assert told == [0, 1]


def test_what_all_jobs_would_see_is_refused(jobs):
    """Global temporary views and databases, by the frame's method and by SQL; nothing is made."""
    before = databases(jobs[1])
    with pytest.raises(InvalidOption, match="cannot create") as caught:
        jobs[0].range(1).createGlobalTempView("leads")
    assert caught.value.remedy
    for statement in (
        "CREATE OR REPLACE GLOBAL TEMPORARY VIEW leads AS SELECT 1",
        "create database leads",
        "select * from global_temp.leads",
    ):
        with pytest.raises(InvalidOption, match="cannot create"):
            jobs[0].sql(statement)
    with pytest.raises(AnalysisException, match=LOST):
        jobs[1].table("global_temp.leads").count()
    assert before == databases(jobs[1])


def test_what_is_outside_of_any_job_can_save_no_table(jobs, spark_settings):
    """A process of a script that makes a session without the library; Spark's error says what to use."""
    attachment = attach(spark_settings, f"local[{cores()}]", print)
    plain = SparkSession(attachment.address.url)
    try:
        for save in (
            lambda: plain.range(1).write.saveAsTable("leads"),
            lambda: plain.sql("create table leads as select 1").collect(),
        ):
            with pytest.raises(PySparkException):
                save()
        with pytest.raises(PySparkException, match=r"freezeframe\.spark\(\)"):
            plain.sql("create table leads (a int) using parquet")
        assert plain.sql("show tables").collect() == []
    finally:
        plain.stop()
        attachment.close()


def test_a_job_that_ends_leaves_nothing(spark_settings, jobs):
    """No database, no folder of its tables, no name for the watcher to look at."""
    before = databases(jobs[0])
    with job(spark_settings) as ended:
        ended.session.range(1).write.saveAsTable("leads")
        folder, name = ended.attachment.folder, ended.database.file.name
        assert databases(jobs[0]) - before == {name}
        assert list(folder.glob(f"work-*/**/{name}.db/leads"))
    assert before == databases(jobs[0])
    assert [*folder.glob(f"work-*/**/{name}.db"), *folder.glob(f"{DATABASES}/{name}")] == []


def test_the_sessions_of_a_run_are_in_one_database(spark_settings, monkeypatch, jobs):
    """The script's and the library's; who made the database drops it, also where a script stopped its own."""
    with job(spark_settings) as other:
        folder = other.attachment.folder
    with claim(folder) as file:
        monkeypatch.setenv(VARIABLE, str(file))
        with job(spark_settings) as scripts, job(spark_settings) as library:
            assert file.name == scripts.session.catalog.currentDatabase()
            assert file.name == library.session.catalog.currentDatabase()
            scripts.session.stop()
        assert file.name not in databases(jobs[0])
        assert not file.exists()


KILLED = """
import sys, time
from pathlib import Path
import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType
from freezeframe.engine.configuration import cores
from freezeframe.engine.connect import connect
from freezeframe.settings import Settings

folder = sys.argv[1]
def slow(batches):
    for batch in batches:
        Path(folder, str(batch["id"][0])).touch()
        time.sleep(0.5)
        yield batch

connection = connect(Settings(), print)
session = connection.session
session.range(1).write.saveAsTable("leads")
print(connection.database.file, session.session_id, flush=True)
session.range(0, 200, 1, 200).mapInArrow(slow, StructType([StructField("id", LongType())])).count()
"""


def test_a_job_that_is_killed_leaves_nothing(jobs, tmp_path):
    """Its query is interrupted within seconds, and its database dropped."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        file, _ = process.stdout.readline().split()
        until(lambda: list(tmp_path.iterdir()))
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: not os.path.exists(file))  # noqa: PTH110 - a path as text
    assert os.path.basename(file) not in databases(jobs[0])  # noqa: PTH119
    # A task that a worker had been handed may still begin; the 200 would take fifty seconds on two cores.
    until(lambda: stands_still(tmp_path), seconds=20)
    assert len(list(tmp_path.iterdir())) < 200


def stands_still(folder):
    begun = len(list(folder.iterdir()))
    time.sleep(1.5)
    return begun == len(list(folder.iterdir()))
