"""A name in another spelling (decomposed letters, the Kelvin sign) is the same name wherever it counts."""

import unicodedata
from urllib.parse import quote

import pytest

NAME, STREAM, FILE = "Kåfé", "Aufträge", "Übersicht/ä.csv"
KEY_BYTES = 32


def other(name):
    """The same name in other code points."""
    return unicodedata.normalize("NFD", name).replace("K", "\u212a")


def place(tenant, environment="dev"):
    return f"/api/v1/environments/{quote(environment)}/tenants/{quote(tenant)}"


OTHER_NAME, OTHER_STREAM, OTHER_FILE = other(NAME), other(STREAM), other(FILE)


@pytest.fixture(scope="module")
def spelled(serve, tmp_path_factory):
    """A server with a sealed file and a stream, on which a tenant may ask and send little."""
    key = tmp_path_factory.mktemp("keys") / "master"
    key.write_bytes(b"k" * KEY_BYTES)
    key.chmod(0o600)
    served = serve(service_requests_per_second=0, master_key_file=key)
    served.tenant(NAME)
    with served.client() as api:
        api.put(f"{place(NAME)}/files/{quote(FILE)}?sealed=true", content=b"secret").raise_for_status()
        csv = f"/tenant/dev/{quote(NAME)}/snapshots?file={quote(STREAM)}.snapshot.csv"
        api.put(csv, content=b"Id\n1\n").raise_for_status()
    return served


def entries(api, action):
    """The subjects of the tenant's audit entries of this action."""
    body = api.get(f"{place(NAME)}/audit?action={action}").json()["entries"]
    return [item["subject"] for item in body]


@pytest.mark.parametrize("tenant", [NAME, OTHER_NAME])
@pytest.mark.parametrize("file", [FILE, OTHER_FILE])
def test_reading_a_sealed_file_is_in_the_audit(spelled, tenant, file):
    """Each read leaves its entry in the one chain of the tenant, by the one name of the file."""
    with spelled.client() as api:
        before = entries(api, "file.unseal")
        paths = (
            f"{place(tenant)}/files/{quote(file)}",
            f"/tenant/dev/{quote(tenant)}/snapshots?file={quote(file)}",
        )
        for path in paths:
            api.get(path).raise_for_status()
        assert [FILE, FILE, *before] == entries(api, "file.unseal")


def test_a_change_is_in_the_audit_and_the_answer_by_its_one_name(spelled):
    """Whatever the spelling of stream, file and tenant: one subject, one tenant, one location."""
    with spelled.client() as api:
        api.put(f"{place(OTHER_NAME)}/files/{quote(other('ö'))}", content=b"x").raise_for_status()
        shown = api.get(place(OTHER_NAME)).json()
        history = api.get(f"{place(OTHER_NAME)}/file-history?path={quote(other('ö'))}").json()
        job = api.post(
            f"{place(OTHER_NAME)}/streams/{quote(OTHER_STREAM)}/import?key=Id&job_id=one",
            content=b"Id\n1\n",
            headers={"content-type": "text/csv"},
        )
        body = api.get(f"/api/v1/environments/dev/jobs?tenant={quote(OTHER_NAME)}").json()["jobs"]
        mine = api.get(f"{place(NAME)}/jobs/one").json()

        assert entries(api, "file.write")[0] == "ö"
        assert entries(api, "stream.import") == [STREAM]
    assert (shown["tenant"], history["path"]) == (NAME, "ö")
    assert (202, f"{place(NAME)}/jobs/one") == (job.status_code, job.headers["location"])
    assert (mine["tenant"], [item["job_id"] for item in body]) == (NAME, ["one"])


def test_a_bound_key_sees_its_tenant_by_any_spelling(spelled):
    """The bounds of a key are names, not texts."""
    with spelled.client(spelled.key(tenants=[OTHER_NAME], environments=["dev"])) as api:
        assert [api.get(place(name)).status_code for name in (NAME, OTHER_NAME)] == [200, 200]
        seen = api.get(
            f"/api/v1/environments/dev/overviews?tenant={quote(OTHER_NAME)}&tenant={quote(NAME)}"
        ).json()
    assert [item["tenant"] for item in seen["tenants"]] == [NAME]


def test_blobs_are_of_one_tenant(spelled):
    """What was staged under one spelling is published under another."""
    with spelled.client() as api:
        blob = api.post(f"{place(OTHER_NAME)}/blobs", content=b"x").json()["id"]
        order = {"files": [{"blob": blob, "path": "ü"}]}
        api.post(f"{place(NAME)}/file-batches", json=order).raise_for_status()
        assert api.get(f"{place(NAME)}/files/{quote('ü')}").content == b"x"


def test_a_follower_is_told_of_its_tenant(spelled):
    """Who watches a tenant by another spelling is told its version."""
    url = f"/api/v1/events?environment=dev&tenant={quote(OTHER_NAME)}&seconds=2"
    with spelled.client() as api:
        body = api.get(url).text
    assert "event: version" in body
