"""A tenant at a glance, several things as one zip, and rows that differ, over HTTP."""

import io
import json
import zipfile

import pyarrow as pa
import pytest

from freezeframe.control.submission import Submission

CSV = b"Id,City\n007,Bern\n1,Basel\n2,Thun\n"


@pytest.fixture
def tenant(api, acme):
    """The path of a tenant with two versions of a stream, and two files after them."""
    hotglue = f"/tenant/dev/{acme.rpartition('/')[2]}/snapshots?file=Account.snapshot.csv"
    for content in (CSV, CSV.replace(b"Basel", b"Chur").replace(b"2,Thun", b"3,Zug")):
        api.put(hotglue, content=content).raise_for_status()
    for path in ("a.txt", "folder/b.txt"):
        api.put(f"{acme}/files/{path}", content=path.encode()).raise_for_status()
    return acme


def test_a_tenant_at_a_glance(api, tenant):
    """Streams with rows and last changes, files with their bytes; of a past version what it had."""
    now = api.get(f"{tenant}/overview").json()
    stream = now["streams"][0]
    first = api.get(f"{tenant}/overview", params={"tenant_version": 0}).json()

    size = len(CSV) - 2 + len(b"a.txtfolder/b.txt")
    assert (3, 3, size) == (now["version"], now["files"], now["file_bytes"])
    assert (stream["stream"], stream["rows"], stream["last"]["version"]) == ("Account", 3, 1)
    assert (len(now["days"]), now["days"][-1] > 0) == (30, True)
    assert (first["version"], first["files"], first["streams"][0]["last"]["version"]) == (0, 1, 0)
    assert api.get(f"{tenant}/overview", params={"tenant_version": 9}).status_code == 404


def test_a_tenant_without_a_version_is_empty(api, acme):
    """Nothing was kept yet, and that is no error."""
    body = api.get(f"{acme}/overview").json()

    assert (body["version"], body["timestamp"], body["streams"], body["files"]) == (-1, None, [], 0)


def test_files_folders_and_streams_come_as_one_zip(api, tenant):
    """Each under its path, a stream as CSV; nothing selected or nothing there is told."""
    chosen = {"file": "a.txt", "folder": "folder", "stream": "Account", "tenant_version": 3}
    answer = api.get(f"{tenant}/bundle", params=chosen)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as bundle:
        found = {name: bundle.read(name) for name in bundle.namelist()}

    assert found.keys() == {"a.txt", "folder/b.txt", "Account.snapshot.csv"}
    assert found["folder/b.txt"] == b"folder/b.txt"
    assert b"Chur" in found["Account.snapshot.csv"]
    assert api.get(f"{tenant}/bundle").status_code == 422
    assert api.get(f"{tenant}/bundle", params={"folder": "nowhere"}).status_code == 404
    assert api.get(f"{tenant}/bundle", params={"file": "b.txt"}).status_code == 404


def test_what_a_list_shows_comes_for_many_tenants_at_once(served, api, tenant):
    """Sums of streams and files, the last job; tenants that are not there or not one's own are left out."""
    name, other = tenant.rpartition("/")[2], served.tenant("initech").rpartition("/")[2]
    served.service.jobs._queue.submit(Submission("{}", environment="dev", tenant=name, job_id="job-1"))
    place = "/api/v1/environments/dev/overviews"
    both = api.get(place, params={"tenant": [other, name, "nobody"]}).json()["tenants"]
    with served.client(served.key("snapshots:read", tenants=[name])) as bound:
        mine = bound.get(place, params={"tenant": [other, name]}).json()["tenants"]

    assert [(other, -1), (name, 3)] == [(item["tenant"], item["version"]) for item in both]
    assert (
        both[1]["streams"],
        both[1]["rows"],
        both[1]["last_job"]["job_id"],
        both[1]["last_job"]["status"],
    ) == (1, 3, "job-1", "queued")
    assert [(name, None)] == [(item["tenant"], item["last_job"]) for item in mine]
    assert api.get(place).status_code == 422


def test_a_kept_overview_follows_the_tenant(api, tenant):
    """What was told once is told again until something changes, by whatever way; then the new is told."""
    before = api.get(f"{tenant}/overview").json()
    again = api.get(f"{tenant}/overview").json()
    api.delete(f"{tenant}/files/a.txt").raise_for_status()
    after = api.get(f"{tenant}/overview").json()

    assert before == again
    assert (4, 2, before["days"]) == (after["version"], after["files"], after["days"])
    assert before["streams"] == after["streams"]
    assert after["last"]["files_deleted"] == ["a.txt"]


def test_an_environment_at_a_glance(served):
    """Failed jobs with the first line of their error, drift, unsealed files and bytes, a page at a time."""
    place = "/api/v1/environments/attention"
    served.tenant("quiet", "attention")
    acme = served.tenant("acme", "attention")
    store = served.service.stores.environment("attention")
    for table in ({"Id": [1]}, {"Id": [2], "City": ["Bern"]}):
        store.tenant("acme").stream("Account").update(pa.table(table), "Id")
    error = {"code": "SCRIPT_FAILED", "problem": "The script failed.", "cause": "KeyError: 'Id'\nand more"}
    queue = served.service.jobs._queue
    queue.submit(
        Submission("{}", environment="attention", tenant="acme", job_id="job-7", attempts_max=1, priority=9)
    )
    queue.finish(queue.claim("worker"), "failed", json.dumps({"error": error}))
    with served.client() as api:
        api.put(f"{acme}/files/tenant-config.json", content=b"{}").raise_for_status()
        first = api.get(f"{place}/overview", params={"limit": 1}).json()
        second = api.get(f"{place}/overview", params={"limit": 1, "cursor": first["next_cursor"]}).json()
    with served.client(served.key("tenants:read", "snapshots:read", tenants=["quiet"])) as bound:
        mine = bound.get(f"{place}/overview").json()
    with served.client(served.key("tenants:read", "jobs:read")) as lacking:
        refused = lacking.get(f"{place}/overview")

    body = first["tenants"][0]
    assert [
        (item["tenant"], item["job_id"], item["status"], item["error"]) for item in first["failed_jobs"]
    ] == [("acme", "job-7", "failed", "KeyError: 'Id'")]
    assert (
        body["tenant"],
        body["last_job"]["status"],
        body["unsealed"],
    ) == ("acme", "failed", ["tenant-config.json"])
    assert [(item["stream"], item["version"], item["columns"]["added"]) for item in body["drift"]] == [
        ("Account", 1, {"City": "string"})
    ]
    assert (body["size_bytes"] > 2, body["rows_by_day"]) == (True, [0] * 30 + [2])
    assert [item["tenant"] for item in second["tenants"]] == ["quiet"]
    assert (second["failed_jobs"], second["next_cursor"]) == ([], None)
    assert ([item["tenant"] for item in mine["tenants"]], mine["failed_jobs"]) == (["quiet"], [])
    assert refused.status_code == 403


def test_a_damaged_tenant_is_named_and_hides_nobody(served):
    """The others are told as if it were not there."""
    for name in ("broken", "whole"):
        api_place = served.tenant(name, "damaged")
        with served.client() as api:
            api.put(f"{api_place}/files/a.txt", content=b"a").raise_for_status()
    storage = served.service.stores.environment("damaged").tenant("broken").context.storage
    storage.replace("_freezeframe/log/00000000000000000000.json", b"no entry\n")
    for path in ("overview", "overviews?tenant=broken&tenant=whole"):
        with served.client() as api:
            body = api.get(f"/api/v1/environments/damaged/{path}").json()
        assert [item["tenant"] for item in body["unreadable"]] == ["broken"]
        assert [item["tenant"] for item in body["tenants"]] == ["whole"]
