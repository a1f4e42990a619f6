"""Relative paths of Spark's readers and writers: a job's own, though all jobs share a server."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.one_session import plain_environment

import freezeframe as ff

pytestmark = pytest.mark.spark

STEPS = Path(__file__).with_name("relative_steps.py")
STAGED = """
import os
import freezeframe as ff
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.createDataFrame([(os.environ["TENANT"],)], "Id string")
rows.write.mode("append").parquet("staging")
ff.update_snapshot(os.environ["snapshot_dir"], "Lead", "Id", spark.sql("select * from parquet.`staging`"))
assert os.path.isdir("staging")
"""


@pytest.fixture
def settings(spark_settings):
    """Those of the run's server, without a warm runner, which would outlive the test."""
    return spark_settings.model_copy(update={"runner_idle_seconds": 0})


def test_jobs_of_two_tenants_stage_under_one_name(runs, settings):
    """Each finds what it wrote itself, and commits only that."""
    tenants = {}
    for tenant in ("ta", "tb"):
        assert runs.run(STAGED, tenant=tenant, settings=settings).is_success, "\n".join(runs.lines)
        tenants[tenant] = ff.open(runs.root).tenant(tenant)["Lead"].to_pandas()["Id"].tolist()
    assert tenants == {"ta": ["ta"], "tb": ["tb"]}


@pytest.mark.nightly
def test_every_reader_and_writer_stays_in_its_jobs_folder(runs, settings, tmp_path):
    """By `freezeframe run` for two tenants, and in plain Python: no path is taken, files are the script's."""
    found = {}
    for tenant in ("ta", "tb"):
        assert runs.run(STEPS, tenant=tenant, settings=settings).is_success, "\n".join(runs.lines)
        found[tenant] = ff.open(runs.root).tenant(tenant)["Answer"].to_pandas()
    plain = tmp_path / "plain"
    plain.mkdir()
    environment = {name: value for name, value in plain_environment().items() if name != "TENANT"}
    subprocess.run([sys.executable, STEPS], cwd=plain, env=environment, check=True)
    found["plain"] = ff.get_snapshot(plain / "snapshots", "Answer")
    for tenant, answers in found.items():
        ways = answers.set_index("Id")["v"].to_dict()
        assert ways.pop("model") == "1.0 True"
        assert set(ways.values()) == {f"False {tenant} True"}, ways
        assert len(ways) > 20
    assert not Path("out").exists()
