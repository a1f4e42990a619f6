"""Spark that is not ours and a store in a bucket: both at once, on a cluster and on a Connect server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.buckets import keys, made_bucket
from tests.spark_processes import COUNTS, ROWS_AND_UPDATE, connect_server, standalone_cluster

from freezeframe.engine.configuration import s3_packages
from freezeframe.engine.java import spark_version

JARS = Path(__file__).parents[2] / ".cache" / "jars"
NEEDED = [package.split(":")[1:] for package in s3_packages(spark_version()).split(",")]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not all((JARS / f"{artifact}-{release}.jar").exists() for artifact, release in NEEDED),
        reason="the pinned jars for S3 are those of the locked Spark, whose Hadoop is another",
    ),
]

# Found and written by this process; merged by Spark; written by Spark and landed by it.
JOB = (
    """
import json, os
import pandas as pd
import freezeframe
from freezeframe.engine.connect import connect
from freezeframe.settings import load_settings

stream = freezeframe.open(os.environ["FREEZEFRAME_ROOT"]).tenant("acme", create=True).stream("Account")
"""
    + ROWS_AND_UPDATE
    + """update(rows)
update(rows.assign(Name=None, Size=rows.Size + 1).tail(300))
update(rows.iloc[100:].assign(Name="m"), mode="full")
session = connect(load_settings(), lambda _: None)
update(session.session.range(950, 1050).selectExpr("format_string('A%04d', id) AS Id", "'s' AS Name"))
session.close()
read = stream.read(as_="arrow").num_rows, stream.read(as_="spark").count()
print(json.dumps([told, *read]))
"""
)


def answers(spark, bucket, state, **environment):
    """What the job was told; the rows that this process reads, and those that Spark does."""
    done = subprocess.run(
        [sys.executable, "-c", JOB],
        env={
            **os.environ,
            "FREEZEFRAME_SPARK": spark,
            "FREEZEFRAME_ROOT": f"s3://{bucket}/store",
            "FREEZEFRAME_STATE_DIR": str(state),
            "FREEZEFRAME_ENGINE": "spark",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [COUNTS, 950, 950]
    assert any("/Account.snapshot/" in key and key.endswith(".parquet") for key in keys(bucket))


def test_a_cluster_reads_and_writes_a_bucket(tmp_path):
    """Executors have no jars of their own: the driver hands them those that were fetched, and the keys."""
    with standalone_cluster(tmp_path) as (master, settings), made_bucket() as bucket:
        answers(master, bucket, tmp_path / "state", FREEZEFRAME_SPARK_JARS_DIR=str(JARS), **settings)
    for number in range(2):
        fetched = {jar.name for jar in (tmp_path / f"work-{number}").glob("app-*/*/*.jar")}
        assert {jar.name for jar in sorted(JARS.glob("*.jar"))} <= fetched


def test_a_connect_server_reads_and_writes_a_bucket_by_a_role_of_its_own(tmp_path):
    """It has the jars on its class path and a key in its environment; the client sends it neither."""
    token = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": "the-token"}
    with (
        made_bucket() as bucket,
        connect_server(tmp_path / "log", classes=sorted(JARS.glob("*.jar")), environment=token) as port,
    ):
        answers(f"sc://localhost:{port}/;token=the-token", bucket, tmp_path / "state")
