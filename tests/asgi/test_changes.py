"""Each operation that changes something has its entry before it, and has its effect once.

The cases are the operations of ``operations`` (which the OpenAPI document holds complete) that are no reads.
"""

import json
import subprocess
import sys
import uuid

import pytest
from sqlalchemy import select, update
from tests.asgi.operations import OPEN_ROWS, OTHER_ROWS, TENANT_ROWS, H, T
from tests.asgi.test_isolation import World
from tests.cli.test_audited_commands import made_by_hand

from freezeframe.asgi.application import create_application
from freezeframe.control.database import ControlDatabase, database_url
from freezeframe.control.job import JobFilter
from freezeframe.control.tables import audit, keys, metadata
from freezeframe.errors import StorageUnavailable
from freezeframe.service.operations.catalogue import OPERATIONS
from freezeframe.settings import Settings

pytestmark = pytest.mark.long

ROWS = {**TENANT_ROWS, **OTHER_ROWS}
READS = {"get", "head", "options"}
# They have bodies, and read all the same.
CHANGE_NOTHING = {("post", f"{T}/streams/{{stream}}/import-preview")}
CHANGES = [item for item in ROWS if item[0] not in READS and item not in CHANGE_NOTHING]
ACTIONS = {route: item.action for item in OPERATIONS if item.action for route in item.routes}
# A key has no password, so the row of this one is refused.
REFUSED = ("post", "/api/v1/session/password")
KEYED = [item for item in CHANGES if item[0] == "post" and H not in item[1] and item != REFUSED]
# Told otherwise by who finds it done: made (201) or there (200); a secret is given once (409).
FOUND_DONE = {
    ("post", "/api/v1/environments/{environment}/tenants"): 200,
    ("post", "/api/v1/keys"): 409,
    ("post", "/api/v1/keys/{key_id}/rotate"): 409,
}
# What the rows of ``operations`` do without an effect: nobody is signed out, files are as they were.
WITHOUT_EFFECT = {
    ("delete", "/api/v1/session"),
    REFUSED,
    ("post", f"{T}/file-returns"),
    ("post", f"{T}/reversions"),
    # Staged blobs are no part of the tenant; the request that publishes them has its entry.
    ("post", f"{T}/blobs"),
    ("delete", f"{T}/blobs/{{blob_id}}"),
}
# What an answer may tell otherwise the second time.
MOVING = {"modified", "timestamp", "created", "expires", "run_at", "files_deleted", "bytes_deleted"}
"""Fields that hold a time, or what was left to be deleted."""


class Refusing:
    """A storage that takes no entry of any log while it refuses."""

    def __init__(self, inner):
        self._inner = inner
        self.refuses = False

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def put_if_absent(self, name, content):
        if self.refuses and "/log/" in name:
            raise StorageUnavailable("The disk is away.", remedy="Bring it back.")
        return self._inner.put_if_absent(name, content)


@pytest.fixture(scope="module")
def world(serve, tmp_path_factory):
    """A server whose storage can be made to refuse, and tenants that have everything."""
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "etl.py").write_text("print('ran')\n")
    quotas = {"service_requests_per_second": 0}
    served = serve(**quotas, service_scripts_dir=scripts)
    stores = served.service.stores
    stores._storage = Refusing(stores._storage)
    found = World(served)
    yield found
    found.line.close()


class Case:
    """An operation on a tenant of its own, ready to be asked for."""

    def __init__(self, world, operation):
        self.world, self.operation = world, operation
        self.tenant = f"own-{uuid.uuid4().hex[:8]}"
        self.names = {**world.prepare(self.tenant, "mine"), "unique": uuid.uuid4().hex[:8]}
        self.names["key_id"] = world.served.service.keys.create(scopes=["tenants:read"]).id
        self.request_id = uuid.uuid4().hex

    def ask(self, **headers):
        row = ROWS[self.operation]
        sent = {**self.world.admin, "x-request-id": self.request_id, **headers}
        return self.world.ask(self.operation, row, sent, self.tenant, **self.names)

    def entries(self):
        """What the audit has of the request, in all chains."""
        with self.world.served.service.database.read() as connection:
            query = select(audit).where(audit.c.request_id.startswith(f"{self.request_id}."))
            return [dict(row) for row in connection.execute(query.order_by(audit.c.number)).mappings()]

    def versions(self):
        """The tenant's history, newest first; nothing where it is gone."""
        store = self.world.served.service.stores.environment("dev")
        return [] if store.folder(self.tenant) is None else list(store.tenant(self.tenant).history())

    def made(self):
        """How much there is of all that operations make."""
        service = self.world.served.service
        jobs = service.queue.list(JobFilter(environment="dev", tenant=self.tenant)).jobs
        uploads = list(self.world.served.uploads.glob("*/*"))
        tenants = service.stores.environment("dev").tenants(limit=100_000)
        keys = {item.id for item in service.keys.list(limit=100_000)}
        return len(self.versions()), {job.job_id for job in jobs}, set(uploads), tenants, keys


def _ids(operation):
    return " ".join(operation)


def test_each_operation_is_read_or_change():
    """An operation that is neither is one of signing in."""
    signing_in = {("post", "/api/v1/session")}
    assert signing_in == {item for item in OPEN_ROWS if item[0] not in READS}
    assert len(CHANGES) > 30


def test_each_change_is_in_the_catalogue(world):
    """But for staged blobs, which are no part of the tenant."""
    blobs = {name for name in map(world.route, CHANGES) if name in {"stage_blob", "remove_blob"}}

    assert 2 == len(blobs)
    assert ACTIONS.keys() == set(map(world.route, CHANGES)) - blobs


def test_each_route_is_made_or_has_a_reason(world):
    """What the catalogue does not make does more than call and answer; it says what."""
    made = {route for item in OPERATIONS if item.run and item.method for route in item.routes}
    by_hand = made_by_hand("routes")

    assert set(map(world.route, ROWS)) | set(map(world.route, OPEN_ROWS)) == made | by_hand
    assert made & by_hand == set()


@pytest.mark.parametrize("operation", [item for item in CHANGES if item not in KEYED], ids=_ids)
def test_a_change_has_its_entry(world, operation):
    """One entry under the request's id; a version that came of it carries the id as well."""
    case = Case(world, operation)
    before = case.versions()
    answer = case.ask()

    assert answer.status in ROWS[operation].status, answer
    require_entries(case, before)


def require_entries(case, before):
    """Each thing that was changed has one entry, and new versions have the request's id."""
    entries, after = case.entries(), case.versions()
    details = [json.loads(entry["details"]) for entry in entries]

    assert case.operation in WITHOUT_EFFECT or entries
    action = ACTIONS.get(case.world.route(case.operation), "")
    assert [] == [entry["action"] for entry in entries if not entry["action"].startswith(action)]
    assert case.operation in WITHOUT_EFFECT or not any("outcome" in detail for detail in details)
    assert len(entries) == len(
        {(item["environment"], item["tenant"], item["subject"]) for item in entries}
    ) or (case.operation in WITHOUT_EFFECT)
    assert {case.request_id} >= {_own(item) for item in after[: max(0, len(after) - len(before))]}


def test_what_fails_has_a_second_entry(world):
    """Where no log takes an entry nothing is changed, and the audit has the attempt with its outcome."""
    failed, case = set(), Case(world, CHANGES[0])
    for operation in CHANGES:
        if operation[0] == "delete" and operation[1] in {T, f"{T}/blobs/{{blob_id}}"}:
            continue  # they take away what the others need
        case.operation, case.request_id = operation, uuid.uuid4().hex
        before = case.versions()
        world.served.service.stores._storage.refuses = True
        answer = case.ask()
        world.served.service.stores._storage.refuses = False
        if answer.status < 500:
            continue  # what it changes is in the control database
        failed.add(operation)
        outcomes = [json.loads(entry["details"]).get("outcome") for entry in case.entries()]

        assert answer.status == 503, operation
        assert before == case.versions(), operation
        assert "failed" in outcomes, operation
        assert None in outcomes, operation

    writes = {("put", f"{T}/files/{{path}}"), ("post", f"{T}/restorations"), ("put", f"{H}/config")}
    assert writes <= failed
    assert len(failed) >= 15


def test_what_is_refused_has_its_outcome(world):
    """A move to a place that is taken, and a restoration of what is so already."""
    case = Case(world, ("post", f"{T}/file-moves"))
    place = f"/api/v1/environments/dev/tenants/{case.tenant}"
    with world.served.client() as api:
        api.put(f"{place}/files/b.txt", content=b"taken").raise_for_status()
        moved = case.ask()
        same = api.post(f"{place}/restorations", json={"version": len(case.versions()) - 1})
        found = api.get(f"{place}/audit?limit=2").json()["entries"]

    assert (moved.status, same.status_code) == (409, 200)
    body = [json.loads(entry["details"]) for entry in case.entries()]
    assert [body[0]["target"], body[1]["outcome"]] == ["b.txt", "refused"]
    assert body[1]["code"] == "ALREADY_EXISTS"
    assert found[0]["details"]["outcome"] == "unchanged"
    assert found[1]["number"] == found[0]["details"]["entry"]


@pytest.mark.parametrize("operation", KEYED, ids=_ids)
def test_a_request_whose_answer_was_lost_has_its_effect_once(world, operation):
    """Sent again under its Idempotency-Key, a request is answered alike and not carried out again.

    The rights are looked up anew before that: a key that has lost the tenant gets no answer.
    """
    case = Case(world, operation)
    before, service = case.versions(), world.served.service
    made = service.keys.create(scopes=["admin"])
    sent = {"idempotency-key": uuid.uuid4().hex, "x-api-key": made.key}
    first = case.ask(**sent)
    made_once = case.made()
    require_entries(case, before)
    again = case.ask(**sent)

    assert first.status in ROWS[operation].status, first
    assert again.status == FOUND_DONE.get(operation, first.status), again
    assert made_once == case.made()
    assert again.status == 409 or _told(first.body) == _told(again.body)
    if "{tenant}" in operation[1]:
        with service.database.begin() as connection:
            bound = update(keys).where(keys.c.id == made.id).values(tenants='["globex"]')
            connection.execute(bound)
        assert case.ask(**sent).status == 404


def _told(body):
    found = json.loads(body) if body else {}
    return {name: value for name, value in found.items() if name not in MOVING}


def test_no_secret_is_kept_with_an_answer(world):
    """A key is told once, also under an Idempotency-Key, and lies nowhere in the clear."""
    with world.served.client() as api:
        key = {"idempotency-key": uuid.uuid4().hex}
        made, again = (api.post("/api/v1/keys", json={"name": "k"}, headers=key).json() for _ in range(2))
        rotate = f"/api/v1/keys/{made['id']}/rotate"
        rotated, once = (api.post(rotate, json={}, headers=key) for _ in range(2))
        with world.served.client(made["key"]) as mine:
            assert mine.get("/api/v1/session").status_code == 200
    secret = made["key"].partition(".")[2]
    with world.served.service.database.read() as connection:
        kept = [str(row) for table in metadata.sorted_tables for row in connection.execute(select(table))]

    assert (again["code"], once.json()["code"]) == ("KEY_GIVEN_ONCE", "KEY_GIVEN_ONCE")
    assert made["id"] in again["title"]
    assert rotated.status_code == 200
    assert made["id"] in "".join(kept)
    assert secret not in "".join(kept)


KILLED = """
import os, sys
from fastapi.testclient import TestClient
from freezeframe.asgi.application import create_application
from freezeframe.control.database import ControlDatabase, database_url
from freezeframe.settings import Settings

root, state, key = sys.argv[1:]

class Killing:
    def __init__(self, inner):
        self._inner, self.when = inner, ""
    def __getattr__(self, name):
        return getattr(self._inner, name)
    def put_if_absent(self, name, content):
        is_entry = self.when and name.startswith("tenants/") and "/log/" in name
        if is_entry and self.when == "before":
            os._exit(9)
        self._inner.put_if_absent(name, content)
        if is_entry:
            os._exit(9)

for when in ("before", "after"):
    if (child := os.fork()) == 0:
        settings = Settings(state_dir=state)
        app = create_application(settings, root, ControlDatabase.open(database_url(settings, root)))
        stores, client = app.state.service.stores, TestClient(app)
        files, headers = "/api/v1/environments/dev/tenants/acme/files", {"x-api-key": key}
        stores._storage = storage = Killing(stores._storage)
        own = {**headers, "x-request-id": "told"}
        told = client.put(f"{files}/told-{when}", content=b"told", headers=own)
        assert told.status_code == 201
        storage.when = when
        client.put(f"{files}/a", content=b"new", headers={**headers, "x-request-id": when})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
"""


def _own(entry):
    """What the client called its request."""
    return entry.request_id.partition(".")[0]


def test_a_kill_leaves_the_entry(tmp_path):
    """Killed before and after the commit: the audit has both requests, the history the second one.

    What was acknowledged is there, before either kill.
    """
    root, settings = str(tmp_path / "store"), Settings(state_dir=tmp_path / "state")
    database = ControlDatabase.open(database_url(settings, root))
    service = create_application(settings, root, database).state.service
    tenant = service.stores.environment("dev").tenant("acme", create=True)
    key = service.keys.create(scopes=["admin"]).key
    run = subprocess.run([sys.executable, "-c", KILLED, root, settings.state_dir, key], check=False)
    entries = service.audit.entries(service.access(service.keys.authenticate(key)).audit_scope("dev", "acme"))
    database.close()

    assert run.returncode == 0
    assert [(entry.action, entry.subject, _own(entry)) for entry in entries] == [
        ("file.write", "a", "after"),
        ("file.write", "told-after", "told"),
        ("file.write", "a", "before"),
        ("file.write", "told-before", "told"),
    ]
    assert [_own(item) for item in tenant.history()] == ["after", "told", "told"]
    assert {"a": b"new", "told-after": b"told", "told-before": b"told"} == {
        file.path: tenant.files.read(file.path) for file in tenant.files.list()
    }
