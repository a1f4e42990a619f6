"""Workers that are killed or stand still: what they had is taken over, and done once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.control.conftest import database_url, postgresql_server  # noqa: F401 - fixtures
from tests.runs.file_run import file_run, ledger, order
from tests.waiting import until

from freezeframe.control.database import ControlDatabase
from freezeframe.control.job import JobFilter
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.runs.queue.attempt import Times
from freezeframe.runs.queue.worker import Worker, WorkerOptions
from freezeframe.settings import Settings

pytestmark = pytest.mark.long

# A process that has everything loaded, and forks a worker for each line that it reads.
NURSERY = """
import json, os, signal, sys
from pathlib import Path
from freezeframe.control.database import ControlDatabase
from freezeframe.runs.queue.attempt import Times
from freezeframe.runs.queue.worker import Worker, WorkerOptions
from freezeframe.settings import Settings
from tests.runs.file_run import file_run
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    child = os.fork()
    if child:
        print(child, flush=True)
        continue
    url, state = json.loads(line)
    options = WorkerOptions(poll_seconds=0.05, times=Times(lease_seconds=1.0, beat_seconds=0.2))
    worker = Worker(ControlDatabase.open(url), file_run, Settings(state_dir=Path(state)), options)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.work()
    os._exit(0)
"""
TENANTS = ("a", "b", "c", "d")


class Workers:
    """Worker processes of one queue."""

    def __init__(self, nursery, *place):
        self._nursery = nursery
        self._place = place
        self.living = []

    def start(self):
        """A new one; its process id."""
        self._nursery.stdin.write(json.dumps([str(item) for item in self._place]) + "\n")
        self._nursery.stdin.flush()
        process = int(self._nursery.stdout.readline())
        self.living.append(process)
        return process

    def kill(self, process):
        """End it without a word."""
        self.living.remove(process)
        os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def nursery():
    """The process that workers are forked from."""
    here = Path(__file__).parent.parent.parent
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=here
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def workers(nursery, database_url, tmp_path):  # noqa: F811 - a fixture
    """None yet; all are killed at the end."""
    started = Workers(nursery, database_url, tmp_path / "state")
    yield started
    for process in list(started.living):
        started.kill(process)


def put(queue, root, tenant, job_id, **parameters):
    """A job in the queue, with attempts enough for every kill."""
    request = order(root, tenant, job_id, **parameters)
    queue.submit(
        Submission(
            json.dumps(request.to_json()), environment="dev", tenant=tenant, job_id=job_id, attempts_max=90
        )
    )


def test_a_worker_that_stood_still_cannot_commit_any_more(database_url, workers, tmp_path):  # noqa: F811
    """Taken over, it is refused by the tenant's log; the job is done once, by the worker that has it now."""
    root, settings = tmp_path / "store", Settings(state_dir=tmp_path / "state")
    began, go, refused = (tmp_path / name for name in ("began", "go", "refused"))
    with closing(ControlDatabase.open(database_url)) as database:
        queue = JobQueue(database)
        put(queue, root, "acme", "j", began=began, until=go, refused=refused, seconds=60.0)
        former = workers.start()
        until(began.exists)
        os.kill(former, signal.SIGSTOP)

        def wake_the_former_first(request, **options):
            go.touch()
            os.kill(former, signal.SIGCONT)
            until(refused.exists)
            return file_run(request, **options)

        options = WorkerOptions(poll_seconds=0.05, times=Times(30, 10))
        present = Worker(database, wake_the_former_first, settings, options)
        until(lambda: present.work("one") == 1)
        job = queue.get("dev", "acme", "j")

    assert refused.read_text() == "JOB_REVOKED"
    assert ("succeeded", 2, present.name) == (job.status, job.attempts, job.worker)
    assert job.outcome["status"] == "succeeded"
    assert ledger(root, "acme", settings) == ["j"]


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)], indirect=True
)
def test_killed_workers_lose_nothing(database_url, workers, tmp_path):  # noqa: F811 - a fixture
    """Five of them die at random moments: each job is committed once, each tenant's in order."""
    kill_some(database_url, workers, tmp_path, kills=5, seed=7)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_many_killed_workers_lose_nothing(database_url, workers, tmp_path, seed):  # noqa: F811 - a fixture
    """Thirty of them, three times."""
    kill_some(database_url, workers, tmp_path, kills=30, seed=seed)


def victim(chance, queue, workers):
    """A worker that is just at work, if one is."""
    busy = {int(job.worker.split(":")[1]) for job in queue.list(JobFilter(status="running")).jobs}
    return chance.choice([item for item in workers.living if item in busy] or workers.living)


def kill_some(url, workers, folder, kills, seed):
    """Two workers at a time; again and again one is killed and another one started."""
    chance = random.Random(seed)
    root, settings = folder / "store", Settings(state_dir=folder / "state")
    per_tenant = 3 + kills // 2
    with closing(ControlDatabase.open(url)) as database:
        queue = JobQueue(database)
        for number in range(per_tenant):
            for tenant in TENANTS:
                put(queue, root, tenant, f"{tenant}{number}", seconds=0.15)
        workers.start()
        for _ in range(kills):
            workers.start()
            until(lambda: queue.list(JobFilter(status="running")).jobs)
            time.sleep(chance.uniform(0, 0.2))
            workers.kill(victim(chance, queue, workers))
        workers.start()
        until(lambda: queue.counts()["succeeded"] == per_tenant * len(TENANTS), 30 + 10 * kills)
        jobs = queue.list(limit=1000).jobs

    for tenant in TENANTS:
        assert [f"{tenant}{number}" for number in range(per_tenant)] == ledger(root, tenant, settings)
    assert any(job.taken_over_from for job in jobs)
