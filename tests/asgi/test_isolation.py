"""No request of anybody gives, changes or betrays anything of a tenant that is not theirs.

The cases are every operation of the OpenAPI document, asked by every kind of stranger under every
spelling of the name. An operation without its row in ``operations`` fails.
"""

import http.client
import json
import unicodedata
import uuid
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

import pyarrow as pa
import pytest
from tests.asgi.operations import OPEN_ROWS, OTHER_ROWS, SCOPES, TENANT_ROWS, Row, T, filled, operations
from tests.examples import by_turns

from freezeframe.runs.job_root import make_job_root
from freezeframe.runs.kept_jobs import KeptJob
from freezeframe.runs.request import parse_run_request, request_tenant
from freezeframe.service.access.sessions import Person
from freezeframe.store.blobs.kept_inputs import open_inputs
from freezeframe.store.model.directory import job_roots_folder
from freezeframe.store.tenant import open_job

pytestmark = pytest.mark.long

CANARY = "canary-0c2f9be1a7d44e55b1"
VICTIM = unicodedata.normalize("NFC", "acmé")
ABSENT = "nobody"
SPELLINGS = [
    quote(VICTIM),
    quote(VICTIM.upper()),
    quote(unicodedata.normalize("NFD", VICTIM)),
    quote(VICTIM) + "%20",
    quote(VICTIM) + "%00",
    quote(VICTIM) + ".",
    quote(quote(VICTIM)),
    "".join(f"%{byte:02x}" for byte in VICTIM.encode()),
    "..%2f" + quote(VICTIM),
    "%2e%2e%2f" + quote(VICTIM),
    "globex%2f..%2f" + quote(VICTIM),
    "globex%5c..%5c" + quote(VICTIM),
]
UNKNOWN = ["no key", "a wrong secret", "no key at all in it", "a revoked key", "an expired key"]
STRANGERS = [
    "another tenant's key",
    "another environment's key",
    "that id elsewhere",
    "another tenant's person",
]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: str
    body: bytes
    pairs: tuple = ()


class Line:
    """One connection that sends exactly the bytes of a path that it is given."""

    def __init__(self, url):
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)

    def ask(self, method, target, headers, body=None):
        self._connection.request(method.upper(), target.replace(" ", "%20"), body, headers)
        answer = self._connection.getresponse()
        return Answer(answer.status, str(answer.headers), answer.read(), tuple(answer.headers.items()))

    def close(self):
        self._connection.close()


@pytest.fixture(scope="module")
def world(serve, tmp_path_factory):
    """A server with a tenant that has everything, and strangers to it."""
    scripts = tmp_path_factory.mktemp("scripts")
    (scripts / "etl.py").write_text("print('ran')\n")
    served = serve(service_requests_per_second=0, service_scripts_dir=scripts)
    found = World(served)
    yield found
    found.line.close()


_NOBODY: dict[str, str] = {}


class World:
    def __init__(self, served):
        self.served = served
        self.line = Line(served.url)
        self.admin = {"x-api-key": served.key()}
        self.names = self.prepare(VICTIM, CANARY)
        self.own_names = self.prepare("globex", "own")
        keys = served.service.keys
        revoked = keys.create(scopes=["admin"])
        keys.revoke(revoked.id)
        expired = keys.create(scopes=["admin"], days=1e-9)
        token = served.service.sessions.begin(Person("oidc-eve", "eve", "admin", tenants=("globex",)))
        known = keys.create(scopes=["admin"]).id
        elsewhere = {"environments": ["staging"], "tenants": [VICTIM]}
        self.headers = {
            "no key": {},
            "a wrong secret": {"x-api-key": f"{known}.wrong"},
            "no key at all in it": {"authorization": "Bearer \xff'; --"},
            "a revoked key": {"x-api-key": revoked.key},
            "an expired key": {"authorization": f"Bearer {expired.key}"},
            "another tenant's key": {"x-api-key": served.key(tenants=["globex"], environments=["dev"])},
            "another environment's key": {"x-api-key": served.key(environments=["staging"])},
            "that id elsewhere": {"x-api-key": served.key(**elsewhere)},
            "another tenant's person": {"cookie": f"freezeframe_session={token}", "origin": served.url},
        }

    def prepare(self, tenant, content):
        """A tenant with a stream, files, a tag, a job and blobs, all with ``content`` in them."""
        place = self.served.tenant(tenant)
        rows = f"Id,City\n{content},Bern\n".encode()
        with self.served.client() as api:
            hotglue = f"/tenant/dev/{tenant}/snapshots?file="
            api.put(f"{place}/files/a.txt", content=content.encode()).raise_for_status()
            self.served.service.stores.environment("dev").tenant(tenant).stream("Account").update(
                pa.table({"Id": [content], "City": ["Basel"]}), "Id"
            )
            api.put(f"{hotglue}Account.snapshot.csv", content=rows).raise_for_status()
            delivery = self.served.service.stores.environment("dev").tenant(tenant).delivery("shop")
            delivery.reject("Account", delivery.pending("Account").assign(_error=content))
            config = {"hotglue_metadata": {"metadata": {"a": content}}}
            api.put(f"/tenant/dev/{tenant}/config", json=config).raise_for_status()
            api.put(f"{place}/tags/{content}", json={"version": 0}).raise_for_status()
            job = api.post(f"{place}/jobs", json={"script": "etl.py", "message": content}).json()["job_id"]
            self.end(job, content)
            groups = f"{place.partition('/tenants')[0]}/job-groups"
            order = {"script": "etl.py", "hold": True, "tenants": [tenant]}
            held = api.post(groups, json=order).json()["group"]
            self.hold(held)
            timed = {"name": "nightly", "script": "etl.py", "cron": "@daily", "message": content}
            api.post(f"{place}/schedules", json=timed).raise_for_status()
            blob = api.post(f"{place}/blobs", content=content.encode()).json()["id"]
            batched = api.post(f"{place}/blobs", content=b"").json()["id"]
            api.put(f"{place}/files/deep/b.txt", content=content.encode()).raise_for_status()
        self.keep(tenant)
        return {
            "stream": "Account",
            "target": "shop",
            "path": "a.txt",
            "tag": content,
            "key": content,
            "job_id": job,
            "held_id": held,
            "group": held,
            "schedule": "nightly",
            "blob_id": blob,
            "batched_id": batched,
        }

    def keep(self, tenant_id):
        """What a run does: the input of a job that failed is kept."""
        tenant = self.served.service.stores.environment("dev").tenant(tenant_id)
        inputs = open_inputs(tenant.context.storage, tenant.context.settings, 0)
        job = KeptJob("kept", tenant_id, "dev", "etl.py", {}, {}, tenant.version, {}, (), "failed")
        inputs.record(inputs.folder(1), "kept", job.to_json())

    def end(self, job_id, content):
        """What a worker does: the job has ended, and has left an executed notebook."""
        queue = self.served.service.jobs._queue
        while (claimed := queue.claim("worker")).job_id != job_id:
            queue.finish(claimed, "failed", "{}")
        request, settings = parse_run_request(claimed.request), self.served.service.settings
        storage = request_tenant(request, settings).context.storage
        notebook = make_job_root(job_roots_folder(storage, settings), request).path / "etl.ipynb"
        notebook.write_text(content)
        queue.finish(claimed, "succeeded", json.dumps({"notebook": str(notebook)}))

    def hold(self, job_id):
        """What a worker does: the job is held, with a file that it has staged."""
        queue = self.served.service.jobs._queue
        claimed = queue.claim("worker")
        assert claimed.job_id == job_id
        tenant = request_tenant(parse_run_request(claimed.request), self.served.service.settings)
        with open_job(replace(tenant.context, review=lambda effects, _: effects), job_id) as job:
            job.files.write_text("held.txt", job_id)
        queue.finish(claimed, "held", json.dumps({"dry_run": job.dry_run.to_json()}))

    def ask(self, operation, row, headers, tenant, **names):
        """Ask for an operation on a tenant, under that spelling of its name."""
        method, path = operation
        known = {"unique": uuid.uuid4().hex[:8], "key_id": "0" * 18, **_NOBODY, **names}
        known |= {name: filled(text, **known) for name, text in row.fill.items()}
        target = filled(path + row.query, environment="dev", env_id="dev", tenant=tenant, **known)
        body, sent = row.content, {**row.headers, **headers}
        if row.json is not None:
            body = filled(json.dumps(row.json), tenant=unquote(tenant), **known).encode()
            sent["content-type"] = "application/json"
        return self.line.ask(method, target, sent, body)

    def route(self, operation):
        """The name of an operation, as the document has it."""
        method, path = operation
        return self.served.app.openapi()["paths"][path][method]["operationId"]

    def left(self):
        """Every file of the tenant with its size and time, and how long its jobs and audit are."""
        store = self.served.service.stores.environment("dev")
        found = store.tenant(VICTIM).context.storage.list_below("")
        files = sorted((item.name, item.modified_ms, item.size) for item in found)
        with self.served.client() as api:
            place = f"/api/v1/environments/dev/tenants/{VICTIM}"
            audit = api.get(f"{place}/audit?limit=1").json()["entries"]
            jobs = api.get(f"{place}/jobs").json()["jobs"]
        uploads = sorted((self.served.uploads / store.folder(VICTIM)).glob("*/content"))
        return files, audit, jobs, [upload.stat().st_size for upload in uploads]


def _told(answer, name):
    """What an answer says, but for the name that was asked for and the request's own id."""
    if not answer.body:
        return answer.status, None
    document = json.loads(answer.body)
    document.pop("request_id", None)
    text = json.dumps(document, ensure_ascii=False)
    return answer.status, text.replace(name, "NAME")


def test_every_operation_has_its_row(world):
    """A new route is asked by strangers too, or this fails."""
    found = operations(world.served.app.openapi())
    assert TENANT_ROWS.keys() | OTHER_ROWS.keys() | OPEN_ROWS == found


@pytest.mark.sampled
def test_strangers_get_and_change_nothing(world):
    """A foreign tenant is answered like one that is not there, and stays as it was to the byte.

    Each operation is asked by one stranger under one other spelling, at night by all under all.
    """
    before = world.left()
    for number, (operation, row) in enumerate(TENANT_ROWS.items()):
        is_named = operation[1].endswith("{tag}")
        for who in by_turns(STRANGERS, number):
            headers = world.headers[who]
            absent = _told(world.ask(operation, row, headers, ABSENT, **world.names), ABSENT)
            foreign = world.ask(operation, row, headers, quote(VICTIM), **world.names)

            assert absent == _told(foreign, VICTIM), (operation, who)
            for spelling in by_turns(SPELLINGS, number):
                answer = world.ask(operation, row, headers, spelling, **world.names)
                shown = answer.body.replace(world.names["tag"].encode(), b"")

                assert 400 <= answer.status < 500, (operation, who, spelling, answer)
                assert CANARY not in answer.headers, (operation, who, spelling)
                assert is_named or CANARY.encode() not in shown, (operation, who, spelling)
    assert before == world.left()


@pytest.mark.sampled
def test_who_is_not_known_gets_401(world):
    """Without a valid key each operation says the same, whatever is asked for."""
    for number, (operation, row) in enumerate((TENANT_ROWS | OTHER_ROWS).items()):
        for who in by_turns(UNKNOWN, number):
            there = world.ask(operation, row, world.headers[who], quote(VICTIM), **world.names)
            absent = world.ask(operation, row, world.headers[who], ABSENT, **world.names)

            assert there.status == 401, (operation, who)
            assert _told(there, VICTIM) == _told(absent, ABSENT), (operation, who)


def test_an_operation_needs_the_scopes_that_its_document_names(world):
    """Without one of them each is refused; with them alone each read succeeds, and no change is forbidden."""
    names = world.prepare("scoped", "mine")
    document = world.served.app.openapi()["paths"]
    keys = {
        scope: world.served.key(*[item for item in SCOPES if item != scope]) for scope in (*SCOPES, "admin")
    }
    rows = TENANT_ROWS | OTHER_ROWS
    # Reads come first, the deletion of the tenant last.
    for operation in sorted(rows, key=lambda item: (item[0] != "get", item == ("delete", T))):
        scopes = document[operation[1]][operation[0]]["x-scopes"]
        for scope in scopes:
            refused = world.ask(operation, rows[operation], {"x-api-key": keys[scope]}, "scoped", **names)
            assert refused.status == 403, (operation, scope, refused)
        own = {"x-api-key": world.served.key(*scopes)}
        answer = world.ask(operation, rows[operation], own, "scoped", **names)
        assert answer.status != 403, (operation, answer)
        assert operation[0] != "get" or operation in OTHER_ROWS or answer.status in rows[operation].status


def test_who_may_only_write_reads_nothing(world):
    """No answer to a change tells what the tenant holds to a key without `snapshots:read`."""
    scopes = ("snapshots:write", "snapshots:delete", "jobs:run")
    writer = {"x-api-key": world.served.key(*scopes)}
    names: dict[str, str] = {}
    for operation, row in TENANT_ROWS.items():
        if row.scope not in scopes:
            continue
        if not names:
            tenant, secret = f"own-{uuid.uuid4().hex[:8]}", f"secret-{uuid.uuid4().hex}"
            names = {**world.prepare(tenant, secret), "tag": "another"}
        answer = world.ask(operation, row, writer, tenant, **names)

        assert secret.encode() not in answer.body, (operation, answer)
        assert answer.status < 500, (operation, answer)
        if operation[0] == "delete" or operation[1].endswith(("-moves", "-deletions", "/restorations")):
            names = {}  # it takes away what other operations are about


def test_lists_hold_only_what_is_the_callers(world):
    """What concerns many tenants shows a bound key its own, and keys nothing at all."""
    for operation, row in OTHER_ROWS.items():
        answer = world.ask(operation, row, world.headers["another tenant's key"], "globex")

        assert VICTIM.encode() not in answer.body, operation
        assert CANARY.encode() not in answer.body, operation
        assert row.scope != "admin" or answer.status == 403, operation


def test_a_foreign_name_anywhere_else_is_no_name(world):
    """In the query, in headers that proxies use and in the body the victim's name leads nowhere."""
    before = world.left()
    key = world.served.key(*[item for item in SCOPES if item != "snapshots:delete"], tenants=["globex"])
    query = f"tenant={quote(VICTIM)}&tenant_id={quote(VICTIM)}&environment=staging&env_id=staging"
    names = {**world.own_names, "tag": CANARY}
    for operation, row in TENANT_ROWS.items():
        address = filled(operation[1], environment="dev", env_id="dev", tenant=quote(VICTIM))
        headers = {
            "x-api-key": key,
            "x-tenant": quote(VICTIM),
            "x-forwarded-prefix": f"/tenant/dev/{quote(VICTIM)}",
            "x-original-url": address,
            "x-http-method-override": "DELETE",
        }
        request = replace(row, query=f"{row.query}{'&' if row.query else '?'}{query}")
        if isinstance(row.json, dict):
            request = replace(request, json={**row.json, "tenant": VICTIM, "environment": "dev"})
        answer = world.ask(operation, request, headers, "globex", **names)

        assert 500 > answer.status, (operation, answer)
        assert CANARY.encode() not in answer.body.replace(world.names["tag"].encode(), b""), operation
    assert before == world.left()


@pytest.mark.parametrize("target", [VICTIM, "nobody-at-all"])
def test_a_foreign_tenant_is_no_target(world, target):
    """Made or cloned into, a tenant of somebody else is refused like one that nobody has."""
    headers = world.headers["another tenant's key"]
    tenants = "/api/v1/environments/{environment}/tenants"
    made = [
        world.ask(("post", tenants), Row("", json={"tenant": target}), headers, "globex"),
        world.ask(("post", f"{T}/clone"), Row("", json={"tenant": target}), headers, "globex"),
    ]

    assert [answer.status for answer in made] == [403, 403]
    assert len({_told(answer, target) for answer in made}) == 1


def test_what_a_client_was_given_for_one_tenant_is_refused_for_another(world):
    """Cursors, tags of versions and idempotency keys of the victim, sent for globex by who may see both."""
    key = {**world.admin, "idempotency-key": "the-same-key"}
    for name in ("b.txt", "c.txt"):
        world.ask(("put", f"{T}/files/{name}"), Row("", content=CANARY.encode()), world.admin, quote(VICTIM))
    lists = [
        f"{T}/files?limit=1",
        f"{T}/history?limit=1",
        f"{T}/audit?limit=1",
        f"{T}/file-history?path=a.txt",
    ]
    for path in lists:
        page = json.loads(world.ask(("get", path), Row(""), world.admin, quote(VICTIM)).body)
        if page.get("next_cursor") is None:
            continue
        request = Row("", f"&cursor={page['next_cursor']}")
        assert world.ask(("get", path), request, world.admin, "globex").status == 422, path
    etag = world.line.ask(
        "GET", filled(f"{T}/files/b.txt", environment="dev", tenant=quote(VICTIM)), world.admin
    )
    match = {**world.admin, "if-match": next(v for k, v in etag.pairs if k.lower() == "etag")}
    put = world.ask(("put", f"{T}/files/a.txt"), Row("", content=b"x"), match, "globex")
    folder = ("post", f"{T}/folders")
    first = world.ask(folder, Row("", json={"path": CANARY}), key, quote(VICTIM))
    other = world.ask(folder, Row("", json={"path": "own"}), key, "globex")
    stranger = {**world.headers["another tenant's key"], "idempotency-key": "the-same-key"}
    foreign = world.ask(folder, Row("", json={"path": "theirs"}), stranger, "globex")

    assert put.status == 412
    assert (first.status, other.status) == (201, 201), other
    assert foreign.status == 201
    assert CANARY.encode() not in other.body + foreign.body


def test_another_tenants_version_tag_cursor_and_blob_are_worth_nothing(world):
    """Names that belong to one tenant lead nowhere in another, for who may do all in both."""
    row = TENANT_ROWS["get", f"{T}/jobs/{{job_id}}"]
    job = world.ask(("get", f"{T}/jobs/{{job_id}}"), row, world.admin, "globex", **world.names)
    gone = ("delete", f"{T}/blobs/{{blob_id}}")
    blob = world.ask(gone, TENANT_ROWS[gone], world.admin, "globex", **world.names)

    assert (job.status, blob.status) == (404, 404)
