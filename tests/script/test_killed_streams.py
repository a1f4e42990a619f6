"""A streaming query that is killed at any moment, and started again, loses and doubles nothing."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from tests.one_session import plain_environment
from tests.spark_server import DELTA, ORACLE

import freezeframe as ff

KILLS = int(os.environ.get("FREEZEFRAME_STREAM_KILLS", "5"))
SECONDS_MAX = 300

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout((KILLS + 2) * SECONDS_MAX)]
TENANTS = ("acme", "globex", "initech")

# A classic session: its Java, in which the query runs, ends with this process.
QUERY = """
import json, sys
from pyspark.sql import SparkSession, functions as F
import freezeframe as ff

root, folder, starting, tenants, sink, trigger, options = sys.argv[1:]
options = {"spark.ui.enabled": "false", "spark.driver.memory": "600m", **json.loads(options)}
spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
ff.register(spark, root)
source = spark.readStream.format("freezeframe").option("readChangeFeed", True)
source = source.option("startingVersion", starting).load(f"{tenants}/Account")
writer = source.writeStream.format(sink).option("checkpointLocation", f"{folder}/checkpoint")
query = writer.trigger(**json.loads(trigger)).start(f"{folder}/sink")
print("begun", flush=True)
query.awaitTermination()
columns = ["_commit_version", "_change_type", "Id", "Value"]
rows = spark.read.format(sink).load(f"{folder}/sink")
rows = rows.select("_tenant" if tenants == "*" else F.lit(tenants), *columns).collect()
print(json.dumps([list(row) for row in rows]))
"""


@contextlib.contextmanager
def query(root, folder, starting, tenants, sink, trigger):
    """The query, for Delta of the Spark that knows it; at the end it is killed with its Java, at once."""
    environment, options = plain_environment(), {"spark.sql.shuffle.partitions": "1"}
    if sink == "delta":
        jars = ",".join(map(str, (ORACLE / "jars").glob("*.jar")))
        assert jars, f"Spark with Delta is not in {ORACLE}: `make test` fetches it"
        found = [str(ORACLE), *filter(None, [environment.get("PYTHONPATH")])]
        environment |= {"PYTHONPATH": os.pathsep.join(found), "SPARK_HOME": str(ORACLE / "pyspark")}
        options |= {**DELTA, "spark.jars": jars}
    words = [str(root), str(folder), starting, tenants, sink, json.dumps(trigger), json.dumps(options)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", QUERY, *words],
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


class Writer:
    """What the tenants are told, and what a change feed has of it."""

    def __init__(self, root, seed, tenants):
        self.store = ff.open(root, engine="auto")
        self.tenants = tenants
        self.random = random.Random(seed)
        self.rows = {}
        self.changes = []

    def update(self, tenant):
        """Insert some rows and change some, as one version."""
        known = self.rows.setdefault(tenant, {})
        values = {key: self.random.random() for key in self.random.sample(range(400), 30)}
        held = self.store.tenant(tenant, create=True)
        rows = pa.table({"Id": list(values), "Value": list(values.values())})
        version = held.stream("Account").update(rows, "Id").version  # gc may have made another one behind it
        for key, value in values.items():
            if key in known:
                self.changes.append([tenant, version, "update_preimage", key, known[key]])
            word = "update_postimage" if key in known else "insert"
            self.changes.append([tenant, version, word, key, value])
        known.update(values)

    def update_until(self, is_over):
        """Update one tenant after the other."""
        until = time.monotonic() + SECONDS_MAX
        while not is_over():
            assert time.monotonic() < until
            self.update(self.random.choice(self.tenants))
            time.sleep(self.random.uniform(0, 1))

    def expected(self, begun, found):
        """The rows of a query whose first batch began after these versions; other tenants come whole."""
        rows = []
        for tenant in self.rows:
            since = begun.get(tenant)
            if since is None:
                since = min(row[1] for row in found if row[0] == tenant)
                whole = self.store[tenant].at(since)["Account"].to_arrow().to_pylist()
                rows += [[tenant, since, "insert", row["Id"], row["Value"]] for row in whole]
            rows += [row for row in self.changes if row[0] == tenant and row[1] > since]
        return rows


@pytest.mark.parametrize(
    ("starting", "path", "sink"),
    [("0", "*", "parquet"), ("latest", "*", "delta"), ("0", "acme", "delta"), ("latest", "acme", "parquet")],
)
def test_a_killed_stream_loses_and_doubles_nothing(tmp_path, starting, path, sink):
    """Whatever it was doing: planning, reading, writing sink or checkpoint; a tenant comes meanwhile."""
    root, seed = tmp_path / "store", random.randrange(10**9)
    writer = Writer(root, seed, TENANTS if path == "*" else (path,))
    for tenant in writer.tenants[:2]:
        writer.update(tenant)
    first = tmp_path / "checkpoint" / "offsets" / "0"

    def finished():
        return list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))

    for number in range(KILLS):
        with query(root, tmp_path, starting, path, sink, {"processingTime": "0 seconds"}) as process:
            assert process.stdout.readline() == b"begun\n", (tmp_path / "log").read_text()[-3000:]
            if number == 0:
                writer.update_until(first.exists)
            elif number % 2:  # else it is killed before it has read what its predecessor left
                done = len(finished())
                writer.update_until(lambda done=done: len(finished()) > done)
            kill_at = time.monotonic() + writer.random.uniform(0, 3)
            writer.update_until(lambda at=kill_at: time.monotonic() > at)
    with query(root, tmp_path, starting, path, sink, {"availableNow": True}) as process:
        told, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    found = json.loads(told.splitlines()[-1])
    offset = json.loads(first.read_text().splitlines()[-1])
    begun = {tenant: item[2] for tenant, item in offset.items()}
    told = f"seed {seed}, {path} to {sink} from {starting}: {KILLS} kills, {len(finished())} batches, "
    told += f"{len(found)} rows, begun after {begun}"
    (tmp_path / "told").write_text(told)
    assert sorted(writer.expected(begun, found)) == sorted(found), told
