"""A worker posts a job that ended without success, once, to the address of the settings."""

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
from freezeframe.runs.queue.attempt import notify
from freezeframe.runs.queue.worker import Worker, WorkerOptions


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent, and answers with the next of its statuses; with 204 once they are used up."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events, self.statuses = [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/hook?token=s3cr3t"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.events.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Nothing is printed."""


@pytest.fixture
def receiver():
    with Receiver() as found:
        threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True).start()
        yield found
        found.shutdown()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr("freezeframe.runs.queue.attempt._PAUSES_SECONDS", (0.0, 0.0, 0.0))


@pytest.fixture
def failed(queue):
    """A job that failed."""
    job = queue.submit(Submission("{}", environment="dev", tenant="acme", job_id="j"))
    error = {"code": "SCRIPT_FAILED", "cause": "KeyError: 'Id'\nat line 3", "problem": "The script failed."}
    return replace(job, status="failed", attempts=2, outcome={"error": error}, finished=datetime.now(UTC))


def test_a_failed_job_is_posted(receiver, failed):
    """With its names, and the first line of what its script said."""
    assert notify(receiver.url, failed)
    [event] = receiver.events
    assert {
        "type": "job.failed",
        "tenant": "acme",
        "job_id": "j",
        "status": "failed",
    }.items() <= event.items()
    assert (event["error"], event["error_code"], event["attempts"]) == ("KeyError: 'Id'", "SCRIPT_FAILED", 2)


def test_a_held_job_is_posted_with_the_check_that_it_failed(receiver, failed):
    """So that somebody decides before what it staged is deleted."""
    checks = [{"stream": "Account", "check": "deleted = 0", "reason": "deleted is 7"}]
    held = replace(failed, status="held", outcome={"dry_run": {"failed_checks": checks}})

    assert notify(receiver.url, held)

    [event] = receiver.events
    assert ("job.held", "held", "Account: deleted = 0 (deleted is 7)") == (
        event["type"],
        event["status"],
        event["error"],
    )


@pytest.mark.parametrize(("statuses", "is_taken"), [([500, 302], True), ([500, 500, 404], False)])
def test_it_is_tried_three_times(receiver, failed, caplog, statuses, is_taken):
    """A redirect is no delivery; the warning does not name the address."""
    receiver.statuses = list(statuses)
    assert is_taken == notify(receiver.url, failed)
    assert len(receiver.events) == 3
    assert is_taken == ("was not posted" not in caplog.text)
    assert "s3cr3t" not in caplog.text


@pytest.mark.parametrize("url", ["", "no address", "http://127.0.0.1:1/"])
def test_an_address_that_takes_nothing_harms_nobody(failed, url):
    """None, one that is none, and one where nobody listens."""
    assert not notify(url, failed)


def test_what_ended_well_or_waits_is_not_posted(receiver, failed):
    """Success, an end that was asked for, and a job that will be tried again."""
    for status in ("succeeded", "cancelled", "queued"):
        assert not notify(receiver.url, replace(failed, status=status))
    assert receiver.events == []


def test_a_worker_posts_the_end_of_its_job(receiver, database, settings):
    """A job that cannot be run: one post after its last attempt."""
    JobQueue(database).submit(Submission("{}", environment="dev", tenant="acme", job_id="j"))
    told = settings.model_copy(update={"notify_url": receiver.url})
    Worker(database, lambda *_, **__: None, told, WorkerOptions(poll_seconds=0.05)).work(until="empty")
    assert [event["job_id"] for event in receiver.events] == ["j"]
