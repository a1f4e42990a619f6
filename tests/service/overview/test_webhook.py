"""Notifications reach a receiver on this machine: signed, each event once, again after a failure."""

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

from freezeframe.control.database.backoff import Backoff
from freezeframe.control.database.database import ControlDatabase
from freezeframe.control.jobs.queue import JobQueue
from freezeframe.control.jobs.submission import Submission
from freezeframe.control.notifications import ATTEMPTS_MAX, Notifications
from freezeframe.errors import InvalidOption, SetupError
from freezeframe.service.access.stores import Stores
from freezeframe.service.overview.findings import TenantFindings
from freezeframe.service.overview.overview import Overviews
from freezeframe.service.overview.webhook import Notifier, Round, Webhook
from freezeframe.settings import Settings

SECRET = b"a secret of some length"


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent, and answers with the next of its statuses; with 204 once they are used up."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests, self.statuses = [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    @property
    def events(self):
        return [json.loads(body) for _, body in self.requests]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((dict(self.headers), body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Nothing is printed."""


@pytest.fixture
def receiver():
    with Receiver() as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join(10)


@pytest.fixture
def database(tmp_path):
    found = ControlDatabase.open(f"sqlite:///{tmp_path}/control.db")
    yield found
    found.close()


@pytest.fixture
def settings(receiver, tmp_path):
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    return Settings(notify_url=receiver.url, notify_secret_file=tmp_path / "secret")


@pytest.fixture
def notifier(database, settings, tmp_path):
    """One of a store with a tenant, whose failed notifications are due again at once."""
    stores = Stores(str(tmp_path / "store"), settings)
    stores.environment("dev").tenant("acme", create=True)
    found = Notifier(stores, TenantFindings(Overviews()), database, "dev")
    found.stores = stores
    found.notifications = Notifications(database, "dev", Backoff(0, 0))
    return found


def failed(database, job_id, code, environment="dev"):
    """A job of acme that has failed."""
    queue = JobQueue(database)
    queue.submit(Submission("{}", environment=environment, tenant="acme", job_id=job_id, attempts_max=1))
    error = {"code": code, "problem": "Too many rows would go.", "cause": "ValueError: no rows\nmore"}
    queue.finish(queue.claim("worker"), "failed", json.dumps({"error": error}))


def test_what_happened_is_told_once_and_signed(notifier, database, settings, receiver):
    """Failed jobs, refused deletions and drift of this environment, whoever looks how often."""
    stream = notifier.stores.environment("dev").tenant("acme").stream("Account")
    stream.update(pa.table({"Id": [1]}), "Id")
    stream.update(pa.table({"Id": [2], "City": ["Bern"]}), "Id")
    failed(database, "job-1", "SCRIPT_FAILED")
    failed(database, "job-2", "TOO_MANY_DELETIONS")
    failed(database, "job-3", "SCRIPT_FAILED", environment="prod")
    first = notifier.look(Webhook(settings))
    second = notifier.look(Webhook(settings))

    assert (Round(3, 3, 0, 0), Round(0, 0, 0, 0)) == (first, second)
    told = {one["type"]: one for one in receiver.events}
    assert (told["job.failed"]["job_id"], told["job.failed"]["error"]) == ("job-1", "ValueError: no rows")
    assert (
        told["guard.refused"]["job_id"],
        told["guard.refused"]["error"],
    ) == ("job-2", "Too many rows would go.")
    assert told["schema.drift"]["added"] == {"City": "string"}
    assert {(one["environment"], one["tenant"]) for one in receiver.events} == {("dev", "acme")}
    assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == 3
    for headers, body in receiver.requests:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        expected = base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256)).decode()
        assert f"v1,{expected}" == headers["webhook-signature"]
        assert abs(time.time() - int(headers["webhook-timestamp"])) < 600


def test_what_does_not_arrive_is_sent_again_under_the_same_id(notifier, database, settings, receiver):
    """A status other than 2xx, a redirect included, is no arrival; after some attempts it is given up."""
    receiver.statuses += [500, 302]
    failed(database, "job-1", "SCRIPT_FAILED")
    assert Round(1, 1, 2, 0) == notifier.look(Webhook(settings))
    assert len(receiver.requests) == 3
    assert len({(headers["webhook-id"], body) for headers, body in receiver.requests}) == 1

    receiver.statuses += [503] * ATTEMPTS_MAX
    failed(database, "job-2", "SCRIPT_FAILED")
    assert Round(1, 0, ATTEMPTS_MAX, 0) == notifier.look(Webhook(settings))
    assert Round(0, 0, 0, 0) == notifier.look(Webhook(settings))


def test_while_nobody_listens_it_waits(notifier, database, settings, tmp_path):
    """The next look sends it, in this process or another."""
    closed = settings.model_copy(update={"notify_url": "http://127.0.0.1:9/"})
    notifier.notifications = Notifications(database, "dev")
    failed(database, "job-1", "SCRIPT_FAILED")

    assert Round(1, 0, 1, 1) == notifier.look(Webhook(closed))
    assert Round(0, 0, 0, 1) == notifier.look(Webhook(settings))


def test_without_an_address_or_a_secret_nothing_is_sent(tmp_path):
    """The settings are refused before anything is queued."""
    short = tmp_path / "short"
    short.write_bytes(b"short")
    for url in ("", "ftp://host/", "host/path"):
        with pytest.raises(InvalidOption):
            Webhook(Settings(notify_url=url))
    for path in (None, short, tmp_path / "missing"):
        with pytest.raises(SetupError):
            Webhook(Settings(notify_url="http://host/", notify_secret_file=path))
