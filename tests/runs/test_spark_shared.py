"""Several jobs on one warm Spark server at once, and what becomes of them when it is killed."""

import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.waiting import until

from freezeframe.engine.configuration import cores
from freezeframe.engine.server.server import running_servers, server_folder, stop
from freezeframe.engine.server.watcher import DATABASES
from freezeframe.runs.running import run
from freezeframe.script import tenants
from freezeframe.settings import load_settings

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("asked_spark")]

TENANTS = ("alder", "birch", "cedar", "douglas")
ROWS, CHANGED = 1_000, 100
SCRIPT = f"""
import os
import pandas as pd
from freezeframe import update_snapshot

number = int(os.environ["PARAM_number"])
count = {ROWS} if number == 0 else {CHANGED}
rows = pd.DataFrame({{"Id": [f"A{{i:05d}}" for i in range(count)], "Job": [number] * count}})
for stream in ("Lead", "Account"):
    update_snapshot(os.environ["snapshot_dir"], stream, "Id", rows)
"""


class Farm:
    """The tenants of one store, each with a script that changes two streams."""

    def __init__(self, runs, settings, tenants=TENANTS):
        self.runs = runs
        self.settings = settings
        self.tenants = tenants
        self.script = runs.script(SCRIPT)

    def job(self, tenant, number, job_id):
        request = self.runs.request(self.script, tenant=tenant, job_id=job_id, parameters={"number": number})
        return run(request, settings=self.settings)

    def at_once(self, number, attempt=0):
        """The outcome of each tenant's job."""
        with ThreadPoolExecutor(len(self.tenants)) as pool:
            jobs = [
                pool.submit(self.job, tenant, number, f"{tenant}-{number}-{attempt}")
                for tenant in self.tenants
            ]
            return [job.result() for job in jobs]

    def all_succeed(self, number):
        """Run each tenant's job, and find that it succeeded and is what the tenant has."""
        failed = [outcome for outcome in self.at_once(number) if outcome.status != "succeeded"]
        assert failed == []
        assert [{number}] * len(self.tenants) == [self.numbers(tenant) for tenant in self.tenants]

    def numbers(self, tenant):
        """The number of the job that wrote the changed rows of each stream: one, for all rows and both."""
        found = tenants.open(self.runs.root).tenant(tenant)
        frames = [found.stream(name).read(as_="pandas").sort_values("Id") for name in ("Lead", "Account")]
        assert [len(frame) for frame in frames] == [ROWS, ROWS]
        assert sorted({*frames[0]["Job"][CHANGED:], *frames[1]["Job"][CHANGED:]}) == [0]
        return {*frames[0]["Job"][:CHANGED], *frames[1]["Job"][:CHANGED]}


LEADS = """
import os
from pyspark.sql import SparkSession
from freezeframe import get_snapshot, spark as library_session, update_snapshot
from freezeframe.script import snapshot_views

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
tenant, snapshots = os.environ["TENANT"], os.environ["snapshot_dir"]
spark.createDataFrame([(tenant,)], "Id string").write.saveAsTable("leads")
after = update_snapshot(snapshots, "Lead", "Id", spark.table("leads"))
kept = get_snapshot(snapshots, "Lead", as_="spark")
sessions = {id(one) for one in (spark, library_session(), after.sparkSession, kept.sparkSession)}
kept.createOrReplaceTempView("kept")
snapshot_views(snapshots)
rows = spark.sql("select * from leads join kept using (Id) join Lead using (Id)").collect()
views = sorted(table.name for table in spark.catalog.listTables() if table.isTemporary)
print(tenant, len(sessions), [row.Id for row in rows], views, spark.conf.get("spark.sql.session.timeZone"))
spark.stop()
"""


def test_scripts_of_two_tenants_have_tables_and_views_of_the_same_name(runs, spark_settings):
    """Each reads its own in its one session, in UTC, and the server's catalog has nothing left of either."""
    script, lines = runs.script(LEADS), []
    databases = server_folder(spark_settings, f"local[{cores()}]") / DATABASES
    before = set(databases.glob("*"))  # this process may have one, too

    def job(tenant):
        request = runs.request(script, tenant=tenant)
        return run(request, settings=load_settings(runner_idle_seconds=20), on_line=lines.append)

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(job, TENANTS[:2]))
    assert [outcome.status for outcome in outcomes] == ["succeeded"] * 2, outcomes
    expected = [f"{tenant} 1 ['{tenant}'] ['kept', 'lead'] UTC" for tenant in TENANTS[:2]]
    assert sorted(map(str.strip, lines)) == expected
    assert set(databases.glob("*")) <= before


# Java without its second compiler and without a second look at PySpark's own classes: half of a start.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"


@pytest.fixture
def quick_spark(run_settings, monkeypatch):
    """Settings of a server that is a test's own: it may be killed."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", QUICK_JAVA)
    settings = run_settings.model_copy(
        update={
            "spark_memory": "600m",
            "spark_idle_seconds": 30,
            "script_variables": "JAVA_TOOL_OPTIONS",
            "engine": "spark",
        }
    )
    yield settings
    for server in running_servers(settings):
        stop(server, 20, at_once=True)


KILLED = """
import os
import signal
from pathlib import Path
from freezeframe import spark, update_snapshot
from freezeframe.engine import process_session

number = int(os.environ["PARAM_kills"])
runs = Path(os.environ["PARAM_runs"])
rows = spark().createDataFrame([("1", "new")], "Id string, Status string")
(Path(os.environ["ROOT_DIR"]) / "etl-output" / "leads.txt").open("x").close()
with runs.open("a") as file:
    file.write("run\\n")
if len(runs.read_text().splitlines()) <= number:
    os.kill(process_session._made.attachment.address.process, signal.SIGKILL)
update_snapshot(os.environ["snapshot_dir"], "Lead", "Id", rows)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("kills", [1, 2])
def test_a_job_whose_session_died_with_the_server_runs_once_more(runs, tmp_path, quick_spark, kills):
    """From its beginning and under its id; a second death ends it, and the tenant is as it was."""
    told = tmp_path / "runs.txt"
    outcome = runs.run(
        KILLED, settings=quick_spark, job_id="lost", parameters={"kills": kills, "runs": str(told)}
    )
    assert told.read_text().splitlines() == ["run", "run"]
    assert sum("is run once more" in line for line in runs.lines) == 1
    if kills == 1:
        assert (outcome.status, outcome.job_id, outcome.receipt["job_id"]) == ("succeeded", "lost", "lost")
        assert len(runs.tenant.stream("Lead").read(as_="arrow")) == 1
    else:
        assert (outcome.status, outcome.error["code"]) == ("failed", "ENGINE_UNAVAILABLE")
        assert list(runs.tenant.streams()) == []


@pytest.mark.nightly
@pytest.mark.parametrize("kills", [1, 30])
def test_a_killed_server_leaves_each_tenant_at_the_old_or_the_new_version(runs, quick_spark, kills):
    """Whatever moment Java is killed at: jobs fail whole or succeed whole, and the next ones go on."""
    settings = quick_spark
    farm = Farm(runs, settings, TENANTS[:2])
    dice = random.Random(7)
    farm.all_succeed(0)
    expected = dict.fromkeys(farm.tenants, 0)
    for number in range(1, kills + 1):
        killer = threading.Thread(target=_kill_when_used, args=(settings, dice.random()))
        killer.start()
        outcomes = farm.at_once(number)
        killer.join()
        for tenant, outcome in zip(farm.tenants, outcomes, strict=True):
            assert outcome.status in {"succeeded", "failed"}
            expected[tenant] = number if outcome.status == "succeeded" else expected[tenant]
            assert {expected[tenant]} == farm.numbers(tenant)
    farm.all_succeed(kills + 1)


def _kill_when_used(settings, seconds):
    """Kill Java some time after the first job holds it."""
    used = until(lambda: [server for server in running_servers(settings) if server.clients], 300)
    time.sleep(seconds)
    os.kill(used[0].process, signal.SIGKILL)
