"""Several processes at one queue: every job is one worker's."""

import json
import time
from contextlib import closing
from itertools import pairwise

import pytest
from sqlalchemy import insert, select

from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.control.tables import jobs

# Forked, so that the libraries are loaded once; each process has a connection of its own.
WORK = """
import json, os, sys
from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
url, processes = sys.argv[1], int(sys.argv[2])

def work(name):
    queue = JobQueue(ControlDatabase.open(url))
    mine = []
    while (job := queue.claim(name)) is not None:
        mine.append(job.job_id)
        queue.finish(job, "succeeded")
    os.write(1, (json.dumps(mine) + "\\n").encode())
    os._exit(0)

for number in range(processes):
    if os.fork() == 0:
        work(f"w{number}")
for _ in range(processes):
    assert os.wait()[1] == 0
"""
PROCESSES = 8


@pytest.mark.long
@pytest.mark.parametrize("count", [48, pytest.param(400, marks=pytest.mark.nightly)])
def test_eight_processes_claim_all_jobs(database_url, run_python, count):
    """None is lost, none is run twice, and none runs beside another of its tenant."""
    with closing(ControlDatabase.open(database_url)) as database:
        queue = JobQueue(database)
        for number in range(count):
            queue.submit(
                Submission("{}", environment="dev", tenant=f"t{number % (count // 6)}", job_id=f"j{number}")
            )
        out, error = run_python(WORK, database_url, PROCESSES).communicate(timeout=120)
        claimed = [job_id for line in out.splitlines() for job_id in json.loads(line)]
        # A worker ends when each tenant with work has a job running elsewhere, so a few may be left.
        while (job := queue.claim("last")) is not None:
            claimed.append(job.job_id)
            queue.finish(job, "succeeded")

        found = queue.list(limit=1000).jobs
    assert (error, len(out.splitlines())) == ("", PROCESSES)
    assert sorted(f"j{number}" for number in range(count)) == sorted(claimed)
    assert {(job.status, job.attempts) for job in found} == {("succeeded", 1)}
    assert 1 < len({job.worker for job in found})
    assert not overlapping(found)


def test_a_long_queue_of_one_tenant_holds_nobody_up(database):
    """Another's job is found at once behind 5,000, also while one of those waits for its next attempt."""
    queue = JobQueue(database)
    queue.submit(Submission("{}", environment="dev", tenant="busy", job_id="first"))
    with database.begin() as connection:
        row = connection.execute(select(jobs)).one()._asdict()
        del row["sequence"]
        connection.execute(insert(jobs), [{**row, "job_id": f"j{number}"} for number in range(5000)])
    first = queue.claim("w")
    for tenant in ("late", "later"):
        queue.submit(Submission("{}", environment="dev", tenant=tenant, job_id="x"))

    started = time.monotonic()
    assert queue.claim("w").tenant == "late"
    queue.finish(first, "failed", may_retry=True)
    assert queue.claim("w").tenant == "later"
    assert queue.claim("w") is None
    assert time.monotonic() - started < 5


def overlapping(found):
    """Pairs of one tenant's jobs of which one began before the other had ended."""
    spans = sorted((job.tenant, job.started, job.finished) for job in found)
    return [(one, other) for one, other in pairwise(spans) if one[0] == other[0] and other[1] < one[2]]
