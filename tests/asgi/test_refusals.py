"""A key that is refused and asks on takes nothing from others: it is answered from memory, and has turns."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

from freezeframe.asgi.authentication import credential_of
from freezeframe.asgi.middleware import refusals
from freezeframe.asgi.middleware.refusals import REFUSALS_MAX, SECONDS

pytestmark = pytest.mark.long

REMEMBERED = "This was refused a moment ago"
UPLOAD = {"upload-length": "9", "upload-metadata": "path YS5iaW4="}


@pytest.fixture(scope="module")
def full(serve, tmp_path_factory):
    """A server on which one job of a tenant may wait, and one upload be under way."""
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "etl.py").touch()
    return serve(
        service_requests_per_minute=0,
        service_tenant_requests_per_minute=0,
        service_tenant_jobs_queued_max=1,
        service_tenant_uploads_max=1,
        service_scripts_dir=scripts,
    )


def order(api, place, what):
    """Ask for a job or an upload, of which the tenant may have one."""
    if what == "jobs":
        return api.post(f"{place}/jobs", json={"script": "etl.py"})
    return api.post(f"{place}/uploads", headers=UPLOAD)


def ask_on(api, place, what):
    """Ask until an answer comes from memory; the answers before it have been given by the limit."""
    answers = [order(api, place, what) for _ in range(3 * REFUSALS_MAX)]
    assert {answer.status_code for answer in answers} == {429}
    assert answers[-1].json()["title"].startswith(REMEMBERED)
    return answers


@pytest.mark.parametrize("what", ["jobs", "uploads"])
def test_what_is_refused_at_a_limit_writes_nothing(full, what):
    """The audit holds what was begun, not each refusal."""
    place = full.tenant(f"unwritten-{what}")
    with full.client() as api:
        assert order(api, place, what).is_success
        before = api.get(f"{place}/audit").json()["entries"]
        refused = [order(api, place, what) for _ in range(3)]
        after = api.get(f"{place}/audit").json()["entries"]

    assert [(one.status_code, one.json()["code"]) for one in refused] == [(429, "RATE_LIMITED")] * 3
    assert f"service_tenant_{'jobs_queued' if what == 'jobs' else what}_max" in refused[0].json()["cause"]
    assert after == before


def test_who_repeats_a_request_that_was_taken_gets_it_again_at_the_limit(full):
    """A job of that id and an upload of that Idempotency-Key are there; they are given, not refused."""
    place, once = full.tenant("repeats"), {"idempotency-key": "the same"}
    with full.client() as api:
        jobs = [api.post(f"{place}/jobs", json={"script": "etl.py", "job_id": "j"}) for _ in range(2)]
        uploads = [api.post(f"{place}/uploads", headers=UPLOAD | once) for _ in range(2)]

    assert [one.status_code for one in jobs + uploads] == [202, 202, 201, 201]
    assert uploads[0].json()["id"] == uploads[1].json()["id"]


def test_who_asks_on_is_refused_from_memory_and_nobody_else(full):
    """The limit has room again, and the key is told so a second later; other keys and operations at once."""
    place, queue = full.tenant("insists"), full.service.jobs._queue
    with full.client() as busy, full.client() as other:
        assert order(busy, place, "jobs").is_success
        ask_on(busy, place, "jobs")
        claimed = queue.claim("worker")
        while claimed.tenant != "insists":  # those of other tests
            claimed = queue.claim("worker")
        queue.finish(claimed, "succeeded", "{}")
        still, elsewhere = order(busy, place, "jobs"), busy.get(f"{place}/jobs")
        taken = order(other, place, "jobs")
        queue.cancel("dev", "insists", taken.json()["job_id"])
        time.sleep(SECONDS + 0.1)
        later = order(busy, place, "jobs")

    assert (still.status_code, still.headers["retry-after"]) == (429, "1")
    assert still.headers["x-request-id"]
    assert (elsewhere.status_code, taken.status_code, later.status_code) == (200, 202, 202)


def test_a_refusal_from_memory_is_measured_as_the_route_it_is_of(full):
    """Metrics and the audit do not lose sight of who is refused."""
    place, tenant = full.tenant("measured"), "/api/v1/environments/{environment}/tenants/{tenant}"
    with full.client() as api:
        assert order(api, place, "uploads").is_success
        name = f'freezeframe_requests_total{{method="POST",route="{tenant}/uploads",status="429"}}'
        before, asked = _number(api, name), len(ask_on(api, place, "uploads"))
        after = _number(api, name)

    assert after - before == asked


def _number(api, name):
    lines = api.get("/metrics").text.splitlines()
    return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)), 0.0)


def test_what_is_remembered_of_a_key_is_bounded_whatever_it_sends(monkeypatch):
    """Many paths are forgotten, the oldest first; a cookie beside the key makes nobody another caller."""
    monkeypatch.setattr(refusals, "_REFUSED_MAX", 50)

    async def refuse(scope, receive, send):
        del receive
        scope["state"] = {"principal": SimpleNamespace(kind="key", id="k")}
        await send({"type": "http.response.start", "status": 429, "headers": []})

    async def ignore(message):
        del message

    async def ask():
        for number in range(200):
            headers = [(b"x-api-key", b"k"), (b"cookie", b"junk=%d" % number)]
            scope = {"type": "http", "method": "GET", "path": f"/{number}", "headers": headers}
            await asked(scope, None, ignore)

    asked = refusals.Refusals(refuse, credential_of)
    asyncio.run(ask())

    assert (len(asked._refused), len(asked._callers)) == (50, 1)


def test_slow_requests_of_one_key_do_not_take_all_threads(served):
    """Sixty changes that wait for the database leave room for another key's reads."""
    place = served.tenant("slow")
    with served.client() as busy, served.client() as other:
        for api in (busy, other):  # the first use of a key is noted in the database
            api.put(f"{place}/files/a", content=b"a").raise_for_status()
        with ThreadPoolExecutor(60) as pool, served.service.database.begin():
            asked = [pool.submit(busy.put, f"{place}/files/{number}", content=b"b") for number in range(60)]
            time.sleep(0.5)  # they have come as far as they can
            began = time.monotonic()
            read = other.get(f"{place}/files/a")
            seconds = time.monotonic() - began
        wait(asked)
    assert (read.status_code, {one.result().status_code for one in asked}) == (200, {201})
    assert seconds < 10  # a read that waits for the changes takes as long as they
