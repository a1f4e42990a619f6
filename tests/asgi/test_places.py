"""The service on PostgreSQL, and on a bucket: what it does on one machine's disk, it does there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.asgi.conftest import servers

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[1]
TENANTS = "/api/v1/environments/dev/tenants"


@pytest.fixture(scope="module", params=["postgresql", "bucket"])
def placed(request, tmp_path_factory):
    """A server whose control database, or whose store, is not on this disk."""
    with servers(request, tmp_path_factory, request.param) as start:
        yield start(service_requests_per_second=0)


@pytest.fixture
def api(placed):
    with placed.client() as client:
        yield client


def test_files_have_versions_conditions_and_a_past(api):
    """Written, changed under a condition, read in part, moved, deleted and brought back."""
    place = f"{TENANTS}/acme"
    assert api.post(TENANTS, json={"tenant": "acme"}).status_code == 201
    first = api.put(f"{place}/files/mappings/a.csv", content=b"Id\n1\n", headers={"if-none-match": "*"})
    again = api.put(f"{place}/files/mappings/a.csv", content=b"no", headers={"if-none-match": "*"})
    changed = {"if-match": first.headers["etag"]}
    assert [
        first.status_code,
        again.status_code,
        api.put(f"{place}/files/mappings/a.csv", content=b"Id\n2\n", headers=changed).status_code,
        api.put(f"{place}/files/mappings/a.csv", content=b"Id\n3\n", headers=changed).status_code,
    ] == [201, 412, 200, 412]
    part = api.get(f"{place}/files/mappings/a.csv", headers={"range": "bytes=3-3"})
    assert (part.status_code, part.content) == (206, b"2")
    api.post(f"{place}/file-moves", json={"path": "mappings/a.csv", "target": "b.csv"}).raise_for_status()
    assert api.get(f"{place}/files/mappings/a.csv").status_code == 404
    api.post(f"{place}/restorations", json={"version": 0}).raise_for_status()
    assert api.get(f"{place}/files/mappings/a.csv").content == b"Id\n1\n"
    assert [item["version"] for item in api.get(f"{place}/history").json()["versions"]] == [3, 2, 1, 0]
    large = bytes(range(256)) * 8_000
    api.put(f"{place}/files/large.bin", content=large).raise_for_status()
    for _ in range(2):
        part = api.get(f"{place}/files/large.bin", headers={"range": "bytes=1000000-1000003"})
        assert large[1_000_000:1_000_004] == part.content


def test_a_request_is_done_once_and_leaves_a_trace(api):
    """A repeated POST is answered again, jobs wait in the queue, and the audit's chain is whole."""
    place = f"{TENANTS}/globex"
    made = [api.post(TENANTS, json={"tenant": "globex"}) for _ in range(2)]
    assert [item.status_code for item in made] == [201, 200]
    headers = {"content-type": "text/csv", "idempotency-key": "one"}
    jobs = [
        api.post(f"{place}/streams/A/import?key=Id", content=b"Id\n1\n", headers=headers) for _ in range(2)
    ]
    job = jobs[1]
    assert {item.json()["job_id"] for item in jobs} == {"one"}
    assert (job.status_code, api.get(job.headers["location"]).json()["status"]) == (202, "queued")
    body = [item["action"] for item in api.get(f"{place}/audit").json()["entries"]]
    assert set(body) == {"stream.import", "tenant.create"}
    assert api.get("/api/v1/audit/proof").json()["is_whole"]
    assert api.delete(f"{place}?confirm=globex").status_code == 200
    assert api.get(place).status_code == 404
    api.post(TENANTS, json={"tenant": "globex"}).raise_for_status()
    assert api.get(f"{place}/jobs").json()["jobs"] == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", ["postgresql", "bucket"])
def test_the_service_is_the_same_elsewhere(place):
    """What holds on one machine's disk holds there."""
    suites = [TESTS / "asgi", TESTS / "service"]
    options = ["-q", "-x", "-m", "not nightly and not spark", "--ignore", __file__]
    variables = {**os.environ, "FREEZEFRAME_TEST_PLACE": place}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *suites],
        env=variables,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout[-4000:]
