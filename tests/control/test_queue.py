"""The job queue on both databases: who gets which job when, and what becomes of it."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from freezeframe.control.database import ControlDatabase
from freezeframe.control.job import JobFilter, cursor_after
from freezeframe.control.queue import Backoff, JobQueue
from freezeframe.control.submission import Submission
from freezeframe.errors import (
    IdempotencyConflict,
    InvalidName,
    InvalidOption,
    JobRevoked,
    NotFound,
    RateLimited,
)

REQUEST = '{"script": "etl.py"}'


@pytest.fixture
def queue(database_url, clock):
    """An empty queue; the first wait after a failure is 10 s."""
    database = ControlDatabase.open(database_url, clock)
    yield JobQueue(database, Backoff(10, 15))
    database.close()


def submit(queue, job_id, tenant="acme", **options):
    return queue.submit(Submission(REQUEST, environment="dev", tenant=tenant, job_id=job_id, **options))


def status(queue, job_id, tenant="acme"):
    return queue.get("dev", tenant, job_id).status


def test_no_more_of_a_tenant_wait_than_may(queue):
    """One that waits is found again; those of others, and those that began, do not count."""
    for job_id in ("a", "b"):
        submit(queue, job_id, queued_max=2)
    with pytest.raises(RateLimited) as refused:
        submit(queue, "c", queued_max=2)
    with pytest.raises(RateLimited, match="2 jobs"):
        queue.require_place("dev", "acme", "c", 2)
    queue.require_place("dev", "acme", "b", 2)
    queue.require_place("dev", "other", "c", 2)
    queue.require_place("dev", "acme", "c", 0)
    submit(queue, "b", queued_max=2)
    submit(queue, "c", tenant="other", queued_max=2)
    queue.claim("w")
    submit(queue, "c", queued_max=2)

    assert "service_tenant_jobs_queued_max" in refused.value.cause
    assert refused.value.details["retry_after_seconds"] == 60
    assert [status(queue, name) for name in "abc"] == ["running", "queued", "queued"]


def test_no_more_wait_than_may_when_many_come_at_once(queue):
    """Each sees those that were let in before it."""

    def attempt(number):
        try:
            submit(queue, f"job-{number}", queued_max=5)
        except RateLimited:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        let_in = sum(pool.map(attempt, range(40)))
    assert (let_in, queue.counts()["queued"]) == (5, 5)


def test_a_run_begins_without_waiting_for_its_turn(queue, clock):
    """Beside its tenant's jobs; what waits, runs, is held or has succeeded under that name stays as it is."""

    def begin(job_id, request=REQUEST):
        given = Submission(request, "dev", "acme", job_id, attempts_max=1, lane="runs", running_max=9)
        return queue.begin(given, "w", lease_seconds=30)

    submit(queue, "queued")
    assert [began and began.attempts for began in map(begin, ["queued", "r", "r"])] == [None, 1, None]
    run = queue.get("dev", "acme", "r")
    assert ("running", timedelta(seconds=30)) == (run.status, run.lease_until - run.started)
    queue.finish(run, "failed", '{"exit_code": 1}')

    again = begin("r", '{"script": "other.py"}')
    assert (again.status, again.attempts, again.attempts_max, again.outcome) == ("running", 2, 2, None)
    assert again.request == '{"script":"other.py"}'
    queue.finish(again, "succeeded")
    queue.finish(begin("h"), "held")
    assert (begin("r"), begin("h"), queue.get("dev", "acme", "h").status) == (None, None, "held")
    assert queue.claim("w2").job_id == "queued"


def test_a_job_goes_from_the_queue_to_its_end(queue, clock):
    """Queued, running under a lease, ended with its outcome; each moment is the database's."""
    submitted = submit(queue, "j")
    clock.forward(5)
    claimed = queue.claim("w1", lease_seconds=30)
    assert (claimed.status, claimed.worker, claimed.attempts) == ("running", "w1", 1)
    assert timedelta(seconds=30) == claimed.lease_until - claimed.started
    assert (claimed.taken_over_from, claimed.only_close) == ("", False)
    assert queue.heartbeat(claimed) == "held"
    clock.forward(7)

    ended = queue.finish(claimed, "succeeded", '{"tenant_version": 3}')

    assert (ended.status, ended.outcome, ended.lease_id) == ("succeeded", {"tenant_version": 3}, None)
    assert [
        (ended.started - submitted.created).seconds,
        (ended.finished - ended.started).seconds,
    ] == [5, 7]
    assert queue.claim("w1") is None
    assert queue.heartbeat(claimed) == "lost"
    assert ended.finished == datetime(2026, 11, 21, 8, 0, 12, tzinfo=UTC)


def test_the_same_submission_is_the_same_job(queue):
    """Whatever the order of the request's fields; another request under the name is a conflict."""
    first = queue.submit(Submission('{"a": 1, "b": 2}', environment="dev", tenant="acme", job_id="j"))
    again = queue.submit(
        Submission('{"b": 2, "a": 1}', environment="dev", tenant="acme", job_id="j", priority=5)
    )

    assert first == again
    with pytest.raises(IdempotencyConflict, match="another request"):
        queue.submit(Submission('{"a": 2}', environment="dev", tenant="acme", job_id="j"))
    others = [
        queue.submit(Submission("{}", environment=environment, tenant=tenant, job_id="j"))
        for environment, tenant in (("dev", "other"), ("prod", "acme"))
    ]
    assert len({first.sequence, *(other.sequence for other in others)}) == 3


def test_a_tenants_jobs_run_one_at_a_time_in_order(queue):
    """Another tenant's do not wait for them."""
    for job_id in ("a1", "a2"):
        submit(queue, job_id)
    submit(queue, "b1", tenant="beta")
    first, other = queue.claim("w"), queue.claim("w")

    assert [first.job_id, other.job_id] == ["a1", "b1"]
    assert queue.claim("w") is None
    queue.finish(first, "succeeded")
    assert queue.claim("w").job_id == "a2"


def test_more_at_once_by_a_key(queue):
    """A key of several tenants counts them together; the newest number holds."""
    for number, tenant in enumerate(("a", "b", "c")):
        submit(queue, f"j{number}", tenant=tenant, lane="api", running_max=2)

    assert [job and job.job_id for job in (queue.claim("w") for _ in range(3))] == ["j0", "j1", None]
    submit(queue, "j3", tenant="d", lane="api", running_max=3)
    assert queue.claim("w").job_id == "j2"


def test_priority_comes_before_order_and_time_before_both(queue, clock):
    """A job is not claimed before its moment."""
    later = datetime.fromtimestamp(clock.now_ms / 1000, UTC) + timedelta(seconds=20)
    submit(queue, "plain", tenant="a")
    submit(queue, "urgent", tenant="b", priority=10)
    submit(queue, "later", tenant="c", priority=20, run_at=later)

    assert [job and job.job_id for job in (queue.claim("w") for _ in range(3))] == ["urgent", "plain", None]
    clock.forward(20)
    assert queue.claim("w").job_id == "later"


def test_a_silent_worker_is_taken_over(queue, clock):
    """Its lease is void: it hears so, and cannot end the job; the new one is told whom it follows."""
    submit(queue, "j")
    former = queue.claim("w1", lease_seconds=30)
    clock.forward(29)
    assert queue.claim("w2") is None
    clock.forward(1)
    present = queue.claim("w2")

    assert (
        present.job_id,
        present.taken_over_from,
        present.attempts,
        present.only_close,
    ) == ("j", "w1", 2, False)
    assert present.lease_id != former.lease_id
    assert queue.heartbeat(former) == "lost"
    for ending in (lambda: queue.finish(former, "succeeded"), lambda: queue.give_back(former)):
        with pytest.raises(JobRevoked):
            ending()
    assert status(queue, "j") == "running"
    assert queue.finish(present, "succeeded").status == "succeeded"


def test_silent_jobs_come_before_waiting_ones(queue, clock):
    """The one whose lease ran out first is taken first, whatever the priority of what waits."""
    for job_id, tenant, seconds in (("late", "a", 30), ("early", "b", 20)):
        submit(queue, job_id, tenant=tenant)
        queue.claim("w1", lease_seconds=seconds)
    submit(queue, "urgent", tenant="c", priority=10)
    clock.forward(30)

    assert [queue.claim("w2").job_id for _ in range(3)] == ["early", "late", "urgent"]
    assert queue.claim("w2") is None


def test_a_late_heartbeat_is_in_time_if_nobody_came(queue, clock):
    """A lease that ran out is still the worker's own until somebody else takes it."""
    submit(queue, "j")
    claimed = queue.claim("w1", lease_seconds=30)
    clock.forward(45)

    assert queue.heartbeat(claimed, lease_seconds=30) == "held"
    assert queue.claim("w2") is None


def test_when_attempts_are_used_up_a_silent_job_is_only_to_be_closed(queue, clock):
    """It is not run again, but its worker must still make void what the former may do."""
    submit(queue, "j", attempts_max=1)
    queue.claim("w1", lease_seconds=30)
    clock.forward(30)
    closing = queue.claim("w2")

    assert (closing.only_close, closing.attempts, closing.taken_over_from) == (True, 1, "w1")
    assert queue.finish(closing, "dead", None, may_retry=True).status == "dead"


def test_a_failed_job_waits_and_keeps_its_place(queue, clock):
    """Twice as long each time up to a limit; a later job of the tenant does not overtake it."""
    submit(queue, "first", attempts_max=3)
    submit(queue, "second")
    for wait in (10, 15):
        failed = queue.finish(queue.claim("w"), "failed", '{"error": "x"}', may_retry=True)
        assert (failed.status, failed.outcome) == ("queued", {"error": "x"})
        clock.forward(wait - 1)
        assert queue.claim("w") is None
        clock.forward(1)
    last = queue.claim("w")
    assert (last.job_id, last.attempts) == ("first", 3)
    assert queue.finish(last, "timed_out", may_retry=True).status == "timed_out"
    assert queue.claim("w").job_id == "second"


def test_what_need_not_be_retried_is_not(queue):
    """Without leave, with success, or when it was cancelled."""
    for job_id, ending, may_retry in (("a", "failed", False), ("b", "succeeded", True)):
        submit(queue, job_id)
        assert ending == queue.finish(queue.claim("w"), ending, may_retry=may_retry).status
    submit(queue, "c")
    claimed = queue.claim("w")
    queue.cancel("dev", "acme", "c")
    assert queue.finish(claimed, "failed", may_retry=True).status == "failed"


def test_a_given_back_job_is_as_before(queue):
    """The attempt does not count, and it is the next one again."""
    submit(queue, "j", attempts_max=1)
    submit(queue, "k")
    back = queue.give_back(queue.claim("w1"))
    assert (back.status, back.attempts) == ("queued", 0)
    again = queue.claim("w2")
    assert (again.job_id, again.attempts, again.taken_over_from) == ("j", 1, "")
    queue.cancel("dev", "acme", "j")
    assert queue.give_back(again).status == "cancelled"


def test_cancel_ends_a_queued_job_and_asks_a_running_one(queue, clock):
    """The worker hears of it by its heartbeat, whoever takes over is told; what has ended stays."""
    submit(queue, "waiting", tenant="b")
    assert queue.cancel("dev", "b", "waiting").status == "cancelled"
    submit(queue, "j")
    claimed = queue.claim("w1", lease_seconds=30)
    assert (
        (asked := queue.cancel("dev", "acme", "j")).status,
        asked.cancel_requested,
    ) == ("running", True)
    assert queue.heartbeat(claimed, lease_seconds=30) == "cancel"
    clock.forward(30)
    closing = queue.claim("w2")
    assert (closing.only_close, closing.cancel_requested) == (True, True)
    assert queue.finish(closing, "cancelled").status == "cancelled"
    assert queue.cancel("dev", "acme", "j").status == "cancelled"
    assert queue.claim("w") is None


def test_retry_gives_an_ended_job_more_attempts(queue):
    """Under its own name, also after a cancellation; one that succeeded or is under way is refused."""
    submit(queue, "j", attempts_max=1)
    with pytest.raises(InvalidOption, match="it is queued"):
        queue.retry("dev", "acme", "j")
    queue.finish(queue.claim("w"), "failed")
    again = queue.retry("dev", "acme", "j", attempts=2)
    assert (again.status, again.attempts, again.attempts_max, again.finished) == ("queued", 1, 3, None)
    queue.cancel("dev", "acme", "j")
    assert not queue.retry("dev", "acme", "j").cancel_requested
    queue.finish(queue.claim("w"), "succeeded")
    with pytest.raises(InvalidOption, match="it is succeeded"):
        queue.retry("dev", "acme", "j")


def test_a_held_job_gets_its_last_status_once(queue, clock):
    """Its lane is free while it is held; the first decision counts, and only then can it be tried again."""
    for job_id in ("a", "b"):
        submit(queue, job_id)
    held = queue.finish(queue.claim("w"), "held", '{"n": 1}')
    assert (held.is_final, queue.claim("w").job_id) == (True, "b")
    with pytest.raises(InvalidOption, match="it is held"):
        queue.retry("dev", "acme", "a")
    clock.forward(5)

    done = queue.settle(held, "cancelled", '{"n": 2}')

    assert (done.status, done.outcome, done.finished > held.finished) == ("cancelled", {"n": 2}, True)
    assert queue.settle(held, "succeeded", '{"n": 3}') == done
    assert queue.retry("dev", "acme", "a").status == "queued"


def test_lists_go_by_pages(queue):
    """Newest first, each job once, by what was asked; a cursor that no list gave is refused."""
    for number in range(7):
        submit(queue, f"j{number}", tenant="acme" if number % 2 else "beta")
    found, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = queue.list(JobFilter(environment="dev"), limit=3, cursor=cursor)
        found += [job.job_id for job in page.jobs]
        cursor, pages = page.next_cursor, pages + 1

    assert [f"j{number}" for number in range(6, -1, -1)] == found
    assert pages == 3
    assert [job.job_id for job in queue.list(JobFilter(tenant="acme")).jobs] == ["j5", "j3", "j1"]
    queue.claim("w")
    assert [job.job_id for job in queue.list(JobFilter(status="running")).jobs] == ["j0"]
    assert tuple(queue.counts()[item] for item in ("running", "queued", "dead")) == (1, 6, 0)
    for wrong in ("", "x", "ajE6LTE", "ajE6", f"{cursor_after(3)}="):
        with pytest.raises(InvalidOption, match="is not a cursor"):
            queue.list(cursor=wrong)
    for limit in (0, 1001):
        with pytest.raises(InvalidOption):
            queue.list(limit=limit)
    with pytest.raises(InvalidOption, match="not a status"):
        JobFilter(status="lost")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tenant": "../x"}, InvalidName),
        ({"environment": ""}, InvalidName),
        ({"job_id": " "}, InvalidOption),
        ({"job_id": "a\nb"}, InvalidOption),
        ({"job_id": "x" * 501}, InvalidOption),
        ({"request": "[]"}, InvalidOption),
        ({"request": "{"}, InvalidOption),
        ({"request": json.dumps({"a": "x" * 1_100_000})}, InvalidOption),
        ({"attempts_max": 0}, InvalidOption),
        ({"priority": 1001}, InvalidOption),
        ({"running_max": 0}, InvalidOption),
        ({"lane": "k" * 501}, InvalidOption),
        ({"run_at": datetime(2026, 1, 1)}, InvalidOption),  # noqa: DTZ001 - the point of it
    ],
)
def test_what_cannot_be_a_job_is_refused(tmp_path, options, error):
    """Before anything is written."""
    database = ControlDatabase.open(f"sqlite:///{tmp_path / 'control.db'}")
    queue = JobQueue(database)
    good = {"request": REQUEST, "environment": "dev", "tenant": "acme", "job_id": "j"}

    with pytest.raises(error):
        queue.submit(Submission(**{**good, **options}))
    assert queue.list().jobs == ()
    with pytest.raises(NotFound):
        queue.get("dev", "acme", "j")
    database.close()


def test_odd_names_come_back_as_they_went_in(queue):
    """Quotes, letters of all alphabets and half a surrogate in a request are kept, and no SQL."""
    job_id = "j'; DROP TABLE jobs; -- ü 日本 😀"
    request = json.dumps({"parameters": {"p": "\ud800 \x00 '"}})
    queue.submit(Submission(request, environment="dév", tenant="O'Brien & Söhne", job_id=job_id))
    found = queue.claim("w")

    assert ("dév", "O'Brien & Söhne", job_id) == (found.environment, found.tenant, found.job_id)
    assert json.loads(request) == json.loads(found.request)
