"""Health in three degrees, numbers of commits and of the queue, and lines of the log with their request."""

import json
import logging
import shutil
import time

import pytest
from tests.recorded_spans import spans  # noqa: F401 - a fixture

from freezeframe.observation import configure_logging
from freezeframe.service.access.keys import Keys


@pytest.fixture(scope="module")
def served(serve):
    """A server with no other jobs."""
    return serve(service_requests_per_second=0)


@pytest.fixture
def log(capsys):
    """A function that begins to log; it gives one for the lines of the service's log since, from JSON."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level

    def begin():
        root.handlers[:] = []
        configure_logging("json", "info")
        return told

    def told():
        return [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]

    yield begin
    root.handlers[:] = before
    root.setLevel(level)


def test_a_service_is_ready(served):
    """Without a key; nothing is wrong."""
    with served.client("") as nobody:
        answer = nobody.get("/health")

    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "reasons": []})


def test_a_service_without_workers_is_degraded(served, api, acme):
    """Jobs that wait and a queue that nobody serves are told, in numbers too; the service stays ready."""
    import_path = f"{acme}/streams/Account/import"
    api.post(import_path, content=b"Id\n1\n", headers={"content-type": "text/csv"}).raise_for_status()
    database = served.service.database
    with database.begin() as connection:
        connection.exec_driver_sql("UPDATE jobs SET run_at_ms = run_at_ms - 1000000 WHERE status = 'queued'")
    answer = api.get("/health").json()
    metrics = api.get("/metrics").text
    with database.begin() as connection:
        connection.exec_driver_sql("DELETE FROM jobs")

    assert answer["status"] == "degraded"
    assert "none runs" in answer["reasons"][0]
    assert api.get("/health/ready").status_code == 200
    (age,) = [line for line in metrics.splitlines() if line.startswith("freezeframe_queue_age_seconds ")]
    assert float(age.split()[1]) >= 1000


def test_a_full_disk_is_told(api, monkeypatch):
    """Below a twentieth of free room the service says so."""
    usage = shutil.disk_usage("/")._replace(total=1000, free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    assert "1.0%" in api.get("/health").json()["reasons"][0]


def test_commits_are_counted(api, acme):
    """By what came of them, with the tries that others made them repeat."""
    api.put(f"{acme}/files/a", content=b"x")
    metrics = api.get("/metrics").text

    assert 'freezeframe_commit_seconds_count{outcome="done"}' in metrics
    assert "freezeframe_commit_retries_total" in metrics


def test_a_request_is_a_span_above_its_commit(api, acme, spans):  # noqa: F811 - a fixture
    """Named by its route, with its id, tenant and status."""
    answer = api.put(f"{acme}/files/a", content=b"x")
    until = time.monotonic() + 60
    while not (requests := [span for span in spans if span.name.startswith("request PUT")]):
        assert time.monotonic() < until, "a request's span ends after its answer was sent"
        time.sleep(0.01)
    (request,) = requests

    assert request.name.endswith("/tenants/{tenant}/files/{path:path}")
    assert "201" == request.attributes["freezeframe.outcome"]
    assert answer.headers["x-request-id"] == request.attributes["freezeframe.request"]
    assert acme.rpartition("/")[2] == request.attributes["freezeframe.tenant"]
    (commit,) = [span for span in spans if span.name == "commit"]
    assert request is commit.parent


def test_each_request_has_a_line(api, acme, log):
    """With its request, principal, tenant and the version that it made; without its query."""
    logged = log()
    answer = api.put(f"{acme}/files/a", params={"message": "secret"}, content=b"x")
    (line, *_) = [
        item for item in logged() if item["logger"] == "freezeframe.access" and "PUT" in item["message"]
    ]

    assert answer.headers["x-request-id"] == line["request"]
    assert line["message"].startswith(f"PUT {acme}/files/a 201")
    assert ("dev", acme.rpartition("/")[2]) == (line["environment"], line["tenant"])
    assert line["principal"].startswith("key:")
    assert line["version"] >= 0
    assert "secret" not in json.dumps(line)


def test_the_log_has_the_request_of_a_failure(api, log, monkeypatch):
    """The id in the answer to a 500 is on the line with the traceback, which the answer does not have."""

    def fail(*_):
        raise ZeroDivisionError("inside")

    logged = log()
    monkeypatch.setattr(Keys, "list", fail)
    answer = api.get("/api/v1/keys")
    lines = [item for item in logged() if item.get("request") == answer.headers["x-request-id"]]

    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert any("ZeroDivisionError: inside" in line.get("exception", "") for line in lines)
