"""The worker: it runs what is in the queue, and what it cannot finish is somebody else's."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.control.manual_clock import ManualClock
from tests.runs.file_run import file_run, ledger, order
from tests.waiting import until

from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import ScheduleRequest, Schedules, Timing
from freezeframe.control.submission import Submission
from freezeframe.errors import InvalidOption, JobRevoked
from freezeframe.runs.queue.attempt import Heartbeat, JobAttempt, Times, attempt_token
from freezeframe.runs.queue.worker import Worker, WorkerOptions
from freezeframe.runs.request import request_store
from freezeframe.store.job import find_committed_job
from freezeframe.store.tenant import open_script_job

pytestmark = pytest.mark.long

SHORT = Times(lease_seconds=1.0, beat_seconds=0.05)


@pytest.fixture
def make_worker(database, settings):
    """A worker with short leases."""

    def make(**options):
        options = {"poll_seconds": 0.05, "times": SHORT, **options}
        return Worker(database, file_run, settings, WorkerOptions(**options))

    return make


@pytest.fixture
def submit(queue, tmp_path):
    """Put a run into the queue."""

    def put(job_id, tenant="acme", attempts_max=3, *, dry_run=False, **parameters):
        request = replace(order(tmp_path / "store", tenant, job_id, **parameters), dry_run=dry_run)
        return queue.submit(
            Submission(
                json.dumps(request.to_json()),
                environment="dev",
                tenant=tenant,
                job_id=job_id,
                attempts_max=attempts_max,
            )
        )

    return put


@contextmanager
def working(worker):
    """The worker works in a thread as long as the block lasts."""
    thread = threading.Thread(target=worker.work)
    thread.start()
    try:
        yield
    finally:
        worker.give_up()
        thread.join(timeout=120)
    assert not thread.is_alive()


def test_it_runs_the_jobs_of_the_queue(queue, make_worker, submit, settings, tmp_path):
    """In each tenant's order, with what became of them; with `one` it takes one at most."""
    for job_id in ("j1", "j2"):
        submit(job_id)
    submit("j3", tenant="beta")
    worker = make_worker()

    assert worker.work("one") == 1
    assert worker.work("empty") == 2
    assert worker.work("one") == 0
    assert ledger(tmp_path / "store", "acme", settings) == ["j1", "j2"]
    job = queue.get("dev", "acme", "j2")
    assert (job.status, job.attempts, job.outcome["tenant_version"]) == ("succeeded", 1, 1)
    assert worker.name == job.worker


def test_a_job_is_not_run_for_the_next_tenant_of_the_id(queue, make_worker, settings, tmp_path):
    """The tenant was deleted and another one made: what was queued for the first one fails."""
    request = order(tmp_path / "store", "acme", "j")
    store = request_store(request, settings)
    store.tenant("acme", create=True)
    for job_id, folder in (("j", store.folder("acme")), ("old", "0" * 32)):
        request = order(tmp_path / "store", "acme", job_id)
        queue.submit(
            Submission(
                json.dumps(request.to_json()),
                environment="dev",
                tenant="acme",
                job_id=job_id,
                incarnation=folder,
            )
        )

    assert make_worker().work("empty") == 2
    assert queue.get("dev", "acme", "j").status == "succeeded"
    old = queue.get("dev", "acme", "old")
    assert (old.status, old.attempts, old.outcome["error"]["code"]) == ("failed", 1, "TENANT_NOT_FOUND")
    assert ledger(tmp_path / "store", "acme", settings) == ["j"]


def test_a_script_outside_the_folder_is_not_run(database, queue, submit, settings, tmp_path):
    """Whoever wrote the queue's row, and whatever a link became after the submission."""
    (tmp_path / "scripts").mkdir()
    where = settings.model_copy(update={"service_scripts_dir": tmp_path / "scripts"})
    submit("j")

    Worker(database, file_run, where, WorkerOptions(times=SHORT)).work("one")

    job = queue.get("dev", "acme", "j")
    assert (job.status, job.attempts, job.outcome["error"]["code"]) == ("failed", 1, "INVALID_OPTION")
    assert not (tmp_path / "store").exists()


def test_several_jobs_run_at_once(make_worker, submit, queue, tmp_path):
    """As many as it may: here each of two tenants waits for what the other one does."""
    submit("j1", tenant="a", began=tmp_path / "1", until=tmp_path / "2", seconds=100.0)
    submit("j2", tenant="b", began=tmp_path / "2", until=tmp_path / "1", seconds=100.0)
    started = time.monotonic()

    make_worker(concurrency=2).work("empty")

    assert time.monotonic() - started < 90
    assert queue.counts()["succeeded"] == 2


def test_a_failure_is_retried_where_that_may_help(database, make_worker, submit, queue):
    """What must be changed first is not; a mistake of ours does not stop the worker."""
    submit("bad", tenant="a", error="bad")
    submit("busy", tenant="b", error="busy", attempts_max=2)
    submit("crash", tenant="c", crash=1.0, attempts_max=1)
    submit("script", tenant="d", error="script")
    submit("dry", tenant="e", error="other", dry_run=True)
    submit("dry and busy", tenant="f", error="busy", dry_run=True, attempts_max=2)
    submit("real", tenant="g", error="other", attempts_max=2)
    worker = make_worker()
    worker._queue = queue  # without waits between attempts

    assert worker.work("empty") == 10

    ended = {
        job.job_id: (job.status, job.attempts, job.outcome["error"]["code"]) for job in queue.list().jobs
    }
    assert ended == {
        "bad": ("failed", 1, "BAD_REQUEST"),
        "busy": ("failed", 2, "TRY_AGAIN"),
        "crash": ("failed", 1, "FREEZEFRAME_ERROR"),
        "script": ("failed", 1, "FREEZEFRAME_ERROR"),
        "dry": ("failed", 1, "FREEZEFRAME_ERROR"),
        "dry and busy": ("failed", 2, "TRY_AGAIN"),
        "real": ("failed", 2, "FREEZEFRAME_ERROR"),
    }


def test_a_job_may_only_be_what_the_queue_knows_it_as(queue, make_worker, tmp_path, settings):
    """A request for another tenant is refused, and nothing of it is done."""
    request = json.dumps(order(tmp_path / "store", "victim", "j").to_json())
    queue.submit(Submission(request, environment="dev", tenant="acme", job_id="j"))
    queue.submit(Submission("{}", environment="dev", tenant="acme", job_id="empty"))
    make_worker().work("empty")

    assert [(job.status, job.outcome["error"]["code"]) for job in queue.list().jobs] == [
        ("failed", "INVALID_OPTION")
    ] * 2
    assert not (tmp_path / "store").exists()


def test_a_running_job_hears_that_it_is_cancelled(queue, make_worker, submit, tmp_path):
    """At its worker's next heartbeat; nothing of it is visible."""
    submit("j", began=tmp_path / "began", seconds=30.0)
    with working(make_worker()):
        until((tmp_path / "began").exists)
        queue.cancel("dev", "acme", "j")
        assert until(lambda: queue.get("dev", "acme", "j").status == "cancelled")


def test_a_stopped_worker_finishes_or_gives_back(queue, make_worker, submit, tmp_path, settings):
    """Within the grace a job may end; after it the job is queued as if it had not been begun."""
    for grace, expected in ((20.0, ("succeeded", 1)), (0.0, ("queued", 0))):
        job_id = f"j{grace:g}"
        submit(job_id, began=tmp_path / job_id, until=tmp_path / "go", seconds=30.0)
        worker = make_worker(grace_seconds=grace)
        with working(worker):
            until((tmp_path / job_id).exists)
            worker.stop()
            if grace:
                (tmp_path / "go").touch()
            until(lambda: queue.counts()["running"] == 0)
        (tmp_path / "go").unlink(missing_ok=True)
        job = queue.get("dev", "acme", job_id)
        assert (job.status, job.attempts) == expected
    (tmp_path / "go").touch()
    make_worker().work("empty")
    assert ledger(tmp_path / "store", "acme", settings) == ["j20", "j0"]


def test_a_lease_outlasts_a_long_job(queue, make_worker, submit, tmp_path):
    """The heartbeat renews it: a second worker gets nothing, though the job takes longer than a lease."""
    submit("j", began=tmp_path / "began", until=tmp_path / "go", seconds=100.0)
    with working(make_worker(times=Times(lease_seconds=3.0, beat_seconds=0.05))):
        until((tmp_path / "began").exists)
        time.sleep(3.2)
        assert queue.claim("other") is None
        (tmp_path / "go").touch()
        until(lambda: queue.get("dev", "acme", "j").status == "succeeded")


@pytest.mark.parametrize(
    ("is_committed", "attempts_max", "is_cancelled", "expected"),
    [
        (True, 3, False, "succeeded"),  # answered with the commit
        (True, 1, False, "succeeded"),
        (True, 3, True, "succeeded"),
        (False, 3, False, "succeeded"),  # run again
        (False, 1, False, "dead"),
        (False, 3, True, "cancelled"),
    ],
)
def test_a_silent_workers_job_is_brought_to_its_true_end(
    queue, make_worker, submit, settings, tmp_path, is_committed, attempts_max, is_cancelled, expected
):
    """Whatever the queue knows, what the tenant's log says counts."""
    submit("j", attempts_max=attempts_max)
    claimed = queue.claim("silent", lease_seconds=0.2)
    if is_committed:
        file_run(order(tmp_path / "store", "acme", "j"), settings=settings)
    if is_cancelled:
        queue.cancel("dev", "acme", "j")
    make_worker().work("empty")

    job = queue.get("dev", "acme", "j")
    assert (job.status, job.taken_over_from) == (expected, "silent")
    if expected == "succeeded":
        assert ledger(tmp_path / "store", "acme", settings) == ["j"]
    else:
        tenant = request_store(order(tmp_path / "store", "acme", "j"), settings).tenant("acme")
        assert [(item.kind, item.files_written) for item in tenant.history()] == [("revoke", ())]
    assert queue.heartbeat(claimed) == "lost"


def test_what_a_silent_worker_started_cannot_commit_any_more(queue, make_worker, submit, settings, tmp_path):
    """Not even a process that nobody has heard of yet, of any attempt, though the job is over."""
    requests = []

    def start(request, **_):
        requests.append(request)
        raise SystemExit  # the worker dies, and what it started lives on

    submit("j", attempts_max=2)
    for _ in range(2):
        job = queue.claim("silent", lease_seconds=0.05)
        with pytest.raises(SystemExit):
            JobAttempt(queue, job, start, settings, SHORT, lambda: False)._report(Heartbeat(queue, job, 1, 1))
        time.sleep(0.1)
    make_worker().work("empty")

    assert queue.get("dev", "acme", "j").status == "dead"
    assert len({request.token for request in requests} - {""}) == 2
    place = request_store(requests[0], settings).tenant("acme").context
    for request in requests:
        with pytest.raises(JobRevoked), open_script_job(place, "j", token=request.token):
            pass
    queue.retry("dev", "acme", "j")
    job = queue.claim("next")
    with open_script_job(place, "j", token=attempt_token(job, job.attempts)) as tenant:
        tenant.files.write("a.txt", b"")
    assert find_committed_job(place, "j") is not None


def test_it_lets_schedules_come_due(tmp_path, settings):
    """Their jobs are run like any other."""
    clock = ManualClock()
    database = ControlDatabase.open(f"sqlite:///{tmp_path / 'control.db'}", clock)
    request = json.dumps(order(tmp_path / "store", "acme", "-").to_json())
    Schedules(database).create(ScheduleRequest("s", "dev", "acme", Timing("@hourly"), request))
    clock.forward(3600)

    assert Worker(database, file_run, settings).work("empty") == 1

    (job,) = JobQueue(database).list().jobs
    assert (job.status, job.schedule) == ("succeeded", "s")
    assert [job.job_id] == ledger(tmp_path / "store", "acme", settings)
    database.close()


def test_a_schedule_ends_with_its_tenant(tmp_path, settings):
    """Deleted by a program that knows no queue: the next job is refused, and there is none after it.

    A tenant that is made again under the id, and its own schedule of that name, are not concerned.
    """
    clock = ManualClock()
    database = ControlDatabase.open(f"sqlite:///{tmp_path / 'control.db'}", clock)
    schedules, worker = Schedules(database), Worker(database, file_run, settings)
    request = order(tmp_path / "store", "acme", "-")
    store = request_store(request, settings)

    def scheduled():
        store.tenant("acme", create=True)
        text, folder = json.dumps(request.to_json()), store.folder("acme")
        schedules.create(ScheduleRequest("s", "dev", "acme", Timing("@hourly"), text, incarnation=folder))

    scheduled()
    clock.forward(3600)
    assert len(schedules.submit_due()) == 1
    store.delete_tenant("acme")
    store.tenant("acme", create=True)
    worker.work("empty")
    (job,) = JobQueue(database).list().jobs
    assert (job.status, job.outcome["error"]["code"]) == ("failed", "TENANT_NOT_FOUND")
    assert schedules.list() == ()
    assert tuple(store.tenant("acme").history()) == ()

    scheduled()
    assert not schedules.end_with_tenant(job)
    clock.forward(3600)
    worker.work("empty")
    assert JobQueue(database).list().jobs[0].status == "succeeded"
    database.close()


def test_times_and_options_that_cannot_be_are_refused():
    """A lease that ends between two beats, no job at once."""
    for make in (
        lambda: Times(10, 6),
        lambda: Times(10, 0),
        lambda: WorkerOptions(concurrency=0),
        lambda: WorkerOptions(poll_seconds=0),
        lambda: WorkerOptions(grace_seconds=-1),
    ):
        with pytest.raises(InvalidOption):
            make()
