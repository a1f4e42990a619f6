"""One environment with freezeframe and delta-spark: a user's classic session with Delta beside ours."""

import importlib.util

import pytest
from tests.one_session import answered, plain_environment
from tests.spark_server import ORACLE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.skipif(
        importlib.util.find_spec("delta") is None,
        reason="delta-spark is not installed: `make nightly` runs this in an environment that has it",
    ),
]

SCRIPT = """
import json, sys
import pandas as pd
from delta import DeltaTable
from pyspark.sql import SparkSession

folder, jars = sys.argv[1:]
session = (
    SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.databricks.delta.snapshotPartitions", "1").config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", folder + "/warehouse").config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
from freezeframe import get_snapshot, update_snapshot

def rows(frame):
    return sorted(list(row) for row in frame.select("Id", "Total").collect())

table = folder + "/orders"
orders = session.createDataFrame([("007", 9.5), ("008", 1.0)], "Id string, Total double")
orders.write.format("delta").save(table)
first = update_snapshot(folder + "/acme", "Order", "Id", session.read.format("delta").load(table))
DeltaTable.forPath(session, table).update("Id = '008'", {"Total": "2.5D"})
update_snapshot(folder + "/acme", "Order", "Id", session.read.format("delta").load(table))
update_snapshot(folder + "/acme", "Order", "Id", pd.DataFrame({"Id": ["009"], "Total": [3.0]}))
stream = folder + "/acme/Order.snapshot"
before = session.read.format("delta").option("versionAsOf", 0).load(stream)
get = get_snapshot(folder + "/acme", "Order", as_="spark")
merge = DeltaTable.forPath(session, table).alias("t").merge(get.alias("s"), "t.Id = s.Id")
merge.whenNotMatchedInsertAll().execute()
print(json.dumps({
    "first": rows(first),
    "ours": rows(get),
    "delta": rows(session.read.format("delta").load(stream)),
    "before": rows(before),
    "merged": rows(session.read.format("delta").load(table)),
    "session": get.sparkSession is session,
}))
"""


def test_a_script_reads_and_writes_streams_and_its_own_delta_tables(tmp_path):
    """Each side reads what the other wrote, in the script's session with Delta's extension and catalog."""
    jars = ",".join(map(str, (ORACLE / "jars").glob("*.jar")))
    # The heap that the shared server asks for is more than Spark's launcher has.
    found = answered(SCRIPT, tmp_path, jars, environment=plain_environment(JAVA_TOOL_OPTIONS=""), timeout=600)
    first, now = [["007", 9.5], ["008", 1.0]], [["007", 9.5], ["008", 2.5], ["009", 3.0]]
    expected = {"first": first, "ours": now, "delta": now, "before": first, "merged": now, "session": True}
    assert expected == found
