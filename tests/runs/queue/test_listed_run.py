"""A run of the command in the list of jobs: begun at once, ended by its outcome, closed if it was killed."""

import json

import pytest
from sqlalchemy import text
from tests.runs.file_run import file_run, ledger, order

from freezeframe.control.submission import Submission
from freezeframe.errors import InputNotFound
from freezeframe.runs.queue.attempt import Times
from freezeframe.runs.queue.job_log import run_listed
from freezeframe.runs.queue.worker import Worker, WorkerOptions
from freezeframe.runs.request import parse_run_request


@pytest.fixture
def run_it(queue, settings, tmp_path):
    """Run one as the command does; what the process of the command is asked is ``is_cancelled``."""

    def run(job_id, is_cancelled=lambda: False, times=None, **parameters):
        return run_listed(
            queue,
            order(tmp_path / "store", "acme", job_id, **parameters),
            settings,
            lambda request, item: file_run(request, settings=settings, is_cancelled=item),
            is_cancelled,
            times or Times(),
        )

    return run


@pytest.mark.parametrize(
    ("parameters", "status", "code"),
    [({}, "succeeded", None), ({"error": "bad"}, "failed", "BAD_REQUEST")],
    ids=["a success", "a failure"],
)
def test_a_run_is_a_job_with_its_outcome(queue, run_it, parameters, status, code):
    """It runs at once, though another job of the tenant runs, and the queue says how it ended."""
    queue.submit(Submission("{}", environment="dev", tenant="acme", job_id="other"))
    assert queue.claim("w").job_id == "other"
    outcome = run_it("r", **parameters)

    job = queue.get("dev", "acme", "r")
    assert (status, status, 1) == (outcome.status, job.status, job.attempts)
    assert code == (job.outcome["error"] or {}).get("code")
    assert None is queue.claim("w2")


def test_a_run_that_failed_is_tried_again_with_another_request(queue, run_it):
    """By the same id, as a job that is repeated; one that succeeded is answered, and stays as it is."""
    assert run_it("r", error="bad").status == "failed"
    assert run_it("r").status == "succeeded"
    job = queue.get("dev", "acme", "r")
    assert (job.status, job.attempts) == ("succeeded", 2)
    assert parse_run_request(job.request).parameters == {}

    assert run_it("r", seconds=1.0).status == "repeated"
    assert job == queue.get("dev", "acme", "r")


def test_a_run_of_a_queued_job_leaves_it_in_the_queue(queue, run_it, settings, tmp_path):
    """The script is run, unlisted; whoever gets the job finds it committed."""
    request = order(tmp_path / "store", "acme", "r")
    queue.submit(Submission(json.dumps(request.to_json()), environment="dev", tenant="acme", job_id="r"))

    assert run_it("r").status == "succeeded"
    assert queue.get("dev", "acme", "r").status == "queued"
    assert ledger(tmp_path / "store", "acme", settings) == ["r"]


def test_what_cannot_be_run_is_listed_as_failed(queue, settings, tmp_path):
    """An error before the script is the job's, and the caller's."""

    def refuse(request, _):
        raise InputNotFound("There is no script.", remedy="Name one.")

    with pytest.raises(InputNotFound):
        run_listed(queue, order(tmp_path / "store", "acme", "r"), settings, refuse, lambda: False)
    job = queue.get("dev", "acme", "r")
    assert (job.status, job.outcome["error"]["problem"]) == ("failed", "There is no script.")


def test_a_run_is_cancelled_by_its_queue(queue, run_it):
    """As a worker's job is: at the next heartbeat."""

    def cancel():
        queue.cancel("dev", "acme", "r")
        return False

    outcome = run_it("r", cancel, Times(lease_seconds=60.0, beat_seconds=0.05), until="never", seconds=60.0)
    assert (outcome.status, queue.get("dev", "acme", "r").status) == ("cancelled", "cancelled")


def test_a_run_that_was_killed_is_closed_by_a_worker(database, queue, settings, tmp_path):
    """Its lease ran out: it is dead, and not run again."""
    request = order(tmp_path / "store", "acme", "r")
    submission = Submission(json.dumps(request.to_json()), "dev", "acme", "r", attempts_max=1)
    assert queue.begin(submission, "gone", lease_seconds=0.0).status == "running"
    Worker(database, file_run, settings, WorkerOptions()).work("one")

    job = queue.get("dev", "acme", "r")
    assert (job.status, job.taken_over_from, job.outcome["error"]["code"]) == ("dead", "gone", "WORKER_LOST")


def test_a_queue_that_cannot_be_reached_keeps_no_script_from_running(database, run_it, settings, tmp_path):
    """It is run, and said not to be listed."""
    with database.begin() as connection:
        connection.execute(text("DROP TABLE jobs"))

    assert run_it("r").status == "succeeded"
    assert ledger(tmp_path / "store", "acme", settings) == ["r"]
