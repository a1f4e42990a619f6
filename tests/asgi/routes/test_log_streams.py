"""Logs and events that are followed: they end with the key, and nobody takes them all."""

import json
import time
import uuid
from pathlib import Path

import pytest
from tests.asgi.routes.test_events import ENVIRONMENT, EVENTS, Following

from freezeframe.control.submission import Submission
from freezeframe.runs.request import RunRequest

pytestmark = pytest.mark.long


@pytest.fixture
def crowded(serve):
    """A server on which one key follows two things, and all of them three."""
    return serve(
        service_requests_per_second=0,
        service_streams_max=3,
        service_streams_per_principal_max=2,
    )


def waiting_log(served, path):
    """The address of the log of a job that nobody runs."""
    tenant, job_id = path.rpartition("/")[2], uuid.uuid4().hex
    request = RunRequest(served.root, ENVIRONMENT, tenant, Path("etl.py"), job_id)
    queue = served.service.jobs._queue
    queue.submit(
        Submission(json.dumps(request.to_json()), environment=ENVIRONMENT, tenant=tenant, job_id=job_id)
    )
    return f"{path}/jobs/{job_id}/logs"


@pytest.mark.parametrize("ending", ["revoked", "tenant deleted"])
def test_a_log_ends_with_what_allowed_to_read_it(served, ending):
    """Soon after the key was revoked, or the tenant deleted, no line of it is told any more."""
    tenant = served.tenant(f"acme-{uuid.uuid4().hex[:8]}")
    key = served.key("jobs:read", "tenants:read")
    with served.client(key) as client, client.stream("GET", waiting_log(served, tenant)) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: status"
        if ending == "revoked":
            served.service.keys.revoke(key.partition(".")[0])
        else:
            served.service.stores.environment(ENVIRONMENT).delete_tenant(tenant.rpartition("/")[2])
        assert all(not line.startswith("event: line") for line in lines)  # it ends by itself


def test_one_key_does_not_take_all_streams(crowded):
    """One too many is refused before the answer begins; one that has ended makes room for another."""
    first, second, log = crowded.key(), crowded.key(), waiting_log(crowded, crowded.tenant("acme"))
    with crowded.client(first) as busy, crowded.client(second) as other:
        with busy.stream("GET", log) as entry, Following(busy, seconds=60) as two:
            assert (entry.status_code, two.answer.status_code) == (200, 200)
            refused = [busy.get(address) for address in (log, f"{EVENTS}?environment=dev&seconds=1")]
            with other.stream("GET", log) as three:
                assert three.status_code == 200
                full = other.get(log)
        short = {"environment": ENVIRONMENT, "seconds": 0}
        # The server hears of a stream that was left a moment later.
        left = (busy.get(EVENTS, params=short).status_code for _ in range(200) if not time.sleep(0.05))
        assert 200 in left
        answers = [busy.get(EVENTS, params=short) for _ in range(5)]

    assert [(item.status_code, item.json()["code"]) for item in refused] == [(429, "RATE_LIMITED")] * 2
    assert (full.status_code, full.headers["retry-after"]) == (503, "30")
    assert {answer.status_code for answer in answers} == {200}
