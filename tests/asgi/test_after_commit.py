"""A request whose change is committed is answered as done, whichever storage call fails afterwards."""

import uuid

import pyarrow as pa
import pytest
from tests.after_commit import OF_STORE, OF_TENANT, AfterCommit
from tests.examples import sampled

pytestmark = pytest.mark.long

REQUESTS = {
    "file written": lambda api, at: api.put(f"{at}/files/a.txt", content=b"new"),
    "file deleted": lambda api, at: api.delete(f"{at}/files/a.txt"),
    "file moved": lambda api, at: api.post(f"{at}/file-moves", json={"path": "a.txt", "target": "b.txt"}),
    "files deleted": lambda api, at: api.post(f"{at}/file-deletions", json={"paths": ["a.txt"]}),
    "batch written": lambda api, at: api.post(f"{at}/file-batches", json={"files": [staged(api, at)]}),
    "folder made": lambda api, at: api.post(f"{at}/folders", json={"path": "new"}),
    "folder moved": lambda api, at: api.post(f"{at}/folder-moves", json={"path": "in", "target": "out"}),
    "file returned": lambda api, at: api.post(f"{at}/file-returns", json={"path": "a.txt", "version": 2}),
    "stream restored": lambda api, at: api.post(f"{at}/streams/Account/restore", json={"version": 0}),
    "stream dropped": lambda api, at: api.delete(f"{at}/streams/Account"),
    "rows restored": lambda api, at: api.post(
        f"{at}/streams/Account/row-restorations", json={"version": 0, "keys": [{"Id": "1"}]}
    ),
    "tenant restored": lambda api, at: api.post(f"{at}/restorations", json={"version": 0}),
    "tagged": lambda api, at: api.put(f"{at}/tags/new", json={"version": 0}),
    "retained": lambda api, at: api.put(f"{at}/policy", json={"keep_versions": 3}),
    "configured": lambda api, at: api.put(f"{hotglue(at)}/config", json={"a": 1}),
    "tenant created": lambda api, at: api.post(at.rpartition("/")[0], json={"tenant": uuid.uuid4().hex}),
    "tenant cloned": lambda api, at: api.post(f"{at}/clone", json={"tenant": uuid.uuid4().hex}),
}


def staged(api, at):
    """A blob that waits, as a file of a batch."""
    return {"path": "b.txt", "blob": api.post(f"{at}/blobs", content=b"batch").json()["id"]}


def hotglue(at):
    """The tenant's path in hotglue's API."""
    return f"/tenant/dev/{at.rpartition('/')[2]}"


@pytest.fixture(scope="module")
def storage():
    return AfterCommit()


@pytest.fixture(scope="module")
def prepared(serve, storage):
    """A client, and a function that makes a tenant with a stream of two versions and files."""
    served = serve(service_requests_per_second=0, checkpoint_interval=1)
    served.service.stores._storage = storage

    def make():
        storage.expect(None, None)
        at = served.tenant(f"t{uuid.uuid4().hex}")
        tenant = served.service.stores.environment("dev").tenant(at.rpartition("/")[2])
        for city in ("Basel", "Zug"):
            tenant.stream("Account").update(pa.table({"Id": ["1"], "City": [city]}), key="Id")
        for path in ("a.txt", "in/c.txt", "a.txt"):
            tenant.files.write_text(path, f"{path} in version {tenant.version}")
        return at

    with served.client() as api:
        yield api, make


@pytest.mark.sampled
@pytest.mark.parametrize("request_", REQUESTS)
def test_a_committed_change_is_answered_as_done(prepared, storage, request_):
    """The status and the body's members are those of a request that nothing disturbs."""
    api, make = prepared
    commit = OF_STORE if request_.startswith("tenant c") else OF_TENANT
    answers = []
    for number in (-1, *sampled(range(200), every=8)):
        at = make()
        storage.expect(commit, number)
        answer = REQUESTS[request_](api, at)
        answers.append((answer.status_code, sorted(answer.json()) if answer.content else []))
        if storage.seen <= number:
            break
    assert answers[0][0] < 300
    assert answers == [answers[0]] * len(answers)
    assert len(answers) > 2
