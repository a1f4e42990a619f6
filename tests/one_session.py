"""A script that joins the library's Spark frames with those of the session that Spark's builder gives."""

import json
import os
import subprocess
import sys

from pyspark.sql.connect.session import SparkSession

SCRIPT = """
import json, sys, threading
from pathlib import Path
import pandas as pd
import pyarrow.parquet as pq
from freezeframe import get_snapshot, spark, update_snapshot
from freezeframe.script import read_csv_folder, read_parquet_folder, snapshot_views

folder, first = sys.argv[1:]
update_snapshot(folder, "Lead", "Id", pd.DataFrame({"Id": ["1", "2"], "v": [1, 2]}))
if first == "library":
    kept = get_snapshot(folder, "Lead", as_="spark")
from pyspark.sql import SparkSession, functions as F
session = SparkSession.builder.appName("a script").config("spark.sql.shuffle.partitions", "1").getOrCreate()
if first == "builder":
    kept = get_snapshot(folder, "Lead", as_="spark")
new = session.createDataFrame([("2", 20), ("3", 30)], "Id string, w long")
sent = new.select("Id", F.col("w").alias("v"))
preview = update_snapshot(folder, "Lead", "Id", sent, persist=False)
after = update_snapshot(folder, "Lead", "Id", sent)
found = []
thread = threading.Thread(target=lambda: found.append(spark()))
thread.start()
thread.join()
sync = Path(folder, "sync-output")
sync.mkdir()
(sync / "Call-1.csv").write_text("Id,w\\n2,20\\n")
pq.write_table(new.toArrow(), sync / "Call-1.parquet")
calls = [read_csv_folder(sync, as_="spark")["Call"], read_parquet_folder(sync, as_="spark")["Call"]]
sessions = [spark(), *found, *(one.sparkSession for one in (*calls, kept, preview, after))]
new.createOrReplaceTempView("new")
views = [snapshot_views(folder), snapshot_views(folder, 0, prefix="old_")]
query = "select Id, old_Lead.v, Lead.v, w from Lead left join old_Lead using (Id) left join new using (Id)"
print(json.dumps({
    "others": sum(one is not session for one in sessions),
    "joined": [list(row) for row in kept.join(new, "Id").collect()],
    "read": [kept.join(one, "Id").count() for one in calls],
    "after": [list(row) for row in after.join(new, "Id", "left").orderBy("Id").collect()],
    "preview": [list(row) for row in preview.collect()],
    "views": views,
    "sql": sorted(list(row) for row in session.sql(query).collect()),
    "kind": type(session).__module__.partition(".connect")[1],
}))
"""

EXPECTED = {
    "others": 0,
    "joined": [["2", 2, 20]],
    "read": [1, 1],
    "after": [["1", 1, None], ["2", 20, 20], ["3", 30, 30]],
    "preview": [["1", 1], ["2", 20], ["3", 30]],
    "views": [{"Lead": "Lead"}, {"Lead": "old_Lead"}],
    "sql": [["1", 1, 1, None], ["2", 2, 20, 20], ["3", None, 30, 30]],
}

_PROCESS_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "FREEZEFRAME_OWN_REMOTE")


def end_session():
    """End the session of this process: the next Spark frame belongs to one that its own engine makes."""
    session = SparkSession._get_default_session()
    if session is not None:
        session.stop()


def plain_environment(**variables):
    """This process's environment as it was before the library made a session in it."""
    kept = {name: value for name, value in os.environ.items() if name not in _PROCESS_VARIABLES}
    return {**kept, **variables}


def answered(script, *arguments, environment, timeout=300):
    """What a script says last, as JSON, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def facts(folder, first, **variables):
    """What the script says in a process of its own, where the library or Spark's builder is asked first."""
    return answered(SCRIPT, folder, first, environment=plain_environment(**variables))
