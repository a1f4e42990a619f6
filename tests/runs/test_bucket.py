"""Runs and queued jobs of a store in a bucket: the script's process opens it by what it is given."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.buckets import made_bucket

from freezeframe.script.tenants import storage_at
from freezeframe.settings import Settings
from freezeframe.store.snapshot_store import Store

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

SCRIPT = """
import os
import pandas as pd
from freezeframe.script import get_snapshot, update_snapshot

assert "AWS_SECRET_ACCESS_KEY" in os.environ
folder, number = os.environ["snapshot_dir"], int(os.environ["JOB_ID"].partition("-")[2])
rows = pd.DataFrame({"Id": [f"A{n:03d}" for n in range(500)], "by": number})
update_snapshot(folder, "Account", "Id", rows.iloc[number * 100:])
update_snapshot(folder, "Seen", "Id", rows.head(3).assign(by=len(get_snapshot(folder, "Account"))))
"""


@pytest.fixture
def command(spark_settings, tmp_path):
    """A function that runs a command on a store in a bucket, and that bucket's root."""
    with made_bucket() as bucket:
        root = f"s3://{bucket}/store"
        environment = {
            **os.environ,
            "FREEZEFRAME_ROOT": root,
            "FREEZEFRAME_DATABASE_URL": f"sqlite:///{tmp_path / 'control.db'}",
            "FREEZEFRAME_STATE_DIR": str(tmp_path / "state"),
            "FREEZEFRAME_SPARK_JARS_DIR": str(Path(__file__).parents[2] / ".cache" / "jars"),
            "FREEZEFRAME_SPARK_MEMORY": "1g",
            "FREEZEFRAME_ENGINE": "spark",
            "FREEZEFRAME_SPARK_IDLE_SECONDS": "2",
            "FREEZEFRAME_RUNNER_IDLE_SECONDS": "2",
        }
        environment.pop("SPARK_CONF_DIR", None)

        def run(*words):
            done = subprocess.run(
                [sys.executable, "-m", "freezeframe", *words, "--json"],
                env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

        yield run, root


def test_a_run_and_jobs_of_the_queue_commit_to_a_bucket(command, tmp_path):
    """One run, then two jobs by a worker: each is one version, by a Spark server with the fetched jars."""
    run, root = command
    (tmp_path / "etl.py").write_text(SCRIPT)
    run("run", "etl.py", "--tenant", "acme", "--job-id", "job-0")
    for number in (1, 2):
        run("job", "submit", "etl.py", "--tenant", "acme", "--job-id", f"job-{number}")
    run("worker", "--drain")

    tenant = Store(storage_at(root, Settings()), None, Settings()).tenant("acme")
    assert [entry.job_id for entry in tenant.history() if entry.job_id] == ["job-2", "job-1", "job-0"]
    rows = tenant.stream("Account").read(as_="pandas").sort_values("Id").groupby("by").size().to_dict()
    assert rows == {0: 100, 1: 100, 2: 300}
    assert tenant.stream("Seen").read(as_="pandas")["by"].to_list() == [500] * 3
