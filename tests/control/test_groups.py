"""Job groups: jobs of many tenants, submitted in one transaction and counted as one."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from freezeframe.control import groups
from freezeframe.control.groups import find_group, job_groups, jobs_of_group, submit_group
from freezeframe.control.job import JobFilter
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.errors import IdempotencyConflict, InvalidOption, NotFound, RateLimited

TENANTS = ("a", "b", "c")


def fleet(tenants=TENANTS, group="g", script="/scripts/etl.py", **options):
    """Submissions of a script for tenants."""
    return [
        Submission(json.dumps({"script": script, "tenant": name}), "dev", name, group, group=group, **options)
        for name in tenants
    ]


@pytest.fixture
def queue(database):
    """The queue in that database."""
    return JobQueue(database)


def end(queue, status, outcome="{}"):
    """Let the next job end; return its tenant."""
    return queue.finish(queue.claim("worker"), status, outcome).tenant


def test_a_group_is_one_line_and_its_failures_come_first(database, queue):
    """The counts of its jobs by status, of some tenants only if they are named; a list page by page."""
    assert submit_group(database, fleet()) == 3
    queue.submit(Submission("{}", "dev", "a", "alone"))
    assert [end(queue, status) for status in ("succeeded", "failed")] == ["a", "b"]

    found = find_group(database, "dev", "g")
    assert (found.text, found.jobs, found.failed, found.is_final) == (
        "etl.py for 3 tenants: 1 succeeded, 1 queued, 1 failed",
        3,
        1,
        False,
    )
    assert find_group(database, "dev", "g", {"b"}).text == "etl.py for 1 tenant: 1 failed"
    assert [job.tenant for job in jobs_of_group(database, "dev", "g", {"a", "b"}, ("failed",))] == ["b"]
    requested, tenants, cursor = JobFilter(environment="dev", group="g"), [], None
    while True:
        page = queue.list(requested, limit=1, cursor=cursor)
        tenants += [job.tenant for job in page.jobs]
        if (cursor := page.next_cursor) is None:
            break
    assert tenants == ["b", "c", "a"]


def test_groups_are_listed_from_the_newest(database, queue):
    """Those of the environment since a moment; an unknown one, or one of others' tenants, is not found."""
    for name in ("old", "new"):
        submit_group(database, fleet(group=name))
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    assert [item.group for item in job_groups(database, "dev")] == ["new", "old"]
    assert [item.group for item in job_groups(database, "dev", limit=1)] == ["new"]
    assert (job_groups(database, "dev", since=tomorrow), job_groups(database, "prod")) == ((), ())
    for group, tenants in (("none", None), ("new", {"z"})):
        with pytest.raises(NotFound) as refused:
            find_group(database, "dev", group, tenants)
        assert refused.value.error_code == "JOB_GROUP_NOT_FOUND"


def test_the_same_group_again_adds_the_tenants_that_are_new(database, queue):
    """Those that are there stay as they are, also those that ended; another request queues nothing."""
    submit_group(database, fleet())
    end(queue, "failed")

    assert submit_group(database, fleet((*TENANTS, "d"))) == 1
    assert find_group(database, "dev", "g").counts == {"queued": 3, "failed": 1}
    with pytest.raises(IdempotencyConflict, match="Job g of d was submitted"):
        submit_group(database, [*fleet(("e",)), *fleet(("d",), script="other.py")])
    assert find_group(database, "dev", "g").jobs == 4


def test_a_full_queue_of_a_tenant_keeps_all_from_being_queued(database, queue):
    """The error names the tenants; a job that is there already needs no room."""
    for name in ("b", "c"):
        queue.submit(Submission("{}", "dev", name, "before"))

    with pytest.raises(RateLimited, match="1 jobs are already queued for b, c: nothing was queued"):
        submit_group(database, fleet(queued_max=1))
    assert queue.counts()["queued"] == 2
    submit_group(database, fleet(("a",), queued_max=1))
    assert submit_group(database, fleet(("a",), queued_max=1)) == 0


@pytest.mark.parametrize("count", [0, 3])
def test_a_group_has_a_number_of_tenants(database, monkeypatch, count):
    """None, or more than the most, are refused."""
    monkeypatch.setattr(groups, "GROUP_TENANTS_MAX", 2)

    with pytest.raises(InvalidOption, match=f"not {count}"):
        submit_group(database, fleet(TENANTS[:count]))


def test_a_later_tenant_of_an_id_gets_a_job_of_its_own(database, queue):
    """The running job of the tenant before gives its lane back; the limits of lanes are the newest."""
    submit_group(database, fleet(("a",), incarnation="first"))
    former = queue.claim("worker")
    assert submit_group(database, fleet(("a",), incarnation="second", running_max=2)) == 1

    claimed = queue.claim("worker")
    assert (claimed.incarnation, claimed.tenant, queue.heartbeat(former)) == ("second", "a", "lost")
    queue.submit(Submission("{}", "dev", "a", "beside", running_max=2))
    assert queue.claim("worker").job_id == "beside"


def test_submissions_at_once_make_each_job_once(database):
    """Four that submit the same group for a thousand tenants: each tenant has one job."""
    tenants = [f"tenant-{number:04}" for number in range(1000)]

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: submit_group(database, fleet(tenants)), range(4)))

    assert find_group(database, "dev", "g").counts == {"queued": 1000}
    assert max(made) == 1000
