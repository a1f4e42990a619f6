"""Every operation that changes a tenant keeps the request's conditions, also at the commit.

An operation of the OpenAPI document that writes is a case here, or is left out for a reason that is told.
"""

import json
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.asgi.operations import ROWS, TENANT_ROWS, H, T, filled, operations

CONFIG = "tenant-config.json"
CONDITIONS = {"if-match", "if-none-match"}
WRITING = {"put", "post", "patch", "delete"}


class Case:
    """How an operation is called, and what its conditions are about.

    ``adds``: it changes nothing that is there, so it needs no condition, and keeps one that is given.
    ``changes`` are what is other than in the operation's row.
    """

    def __init__(self, subject, *, adds=False, **changes):
        self.subject, self.adds, self.changes = subject, adds, changes


A, STREAM, TENANT, SETTINGS = "file", "stream", "tenant", "config"
STREAM_FILE = "?file=Account.snapshot.csv"
CASES = {
    ("put", f"{T}/files/{{path}}"): [Case(A)],
    ("delete", f"{T}/files/{{path}}"): [Case(A)],
    ("post", f"{T}/file-moves"): [Case(A)],
    ("post", f"{T}/file-returns"): [Case(A)],
    ("post", f"{T}/blobs"): [Case(A, query="?path=a.txt")],
    ("post", f"{T}/file-batches"): [Case("batch", json={"files": [{"blob": "{blob}", "path": "a.txt"}]})],
    ("post", f"{T}/file-deletions"): [Case(TENANT), Case(TENANT, json={"folders": ["deep"]})],
    ("post", f"{T}/folder-moves"): [Case(TENANT)],
    ("post", f"{T}/folders"): [Case(TENANT, adds=True)],
    ("post", f"{T}/restorations"): [Case(TENANT), Case(TENANT, json={"version": 0, "files": ["a.txt"]})],
    ("post", f"{T}/reversions"): [Case(TENANT)],
    ("post", f"{T}/streams/{{stream}}/restore"): [Case(STREAM)],
    ("post", f"{T}/streams/{{stream}}/row-restorations"): [
        Case(TENANT, json={"version": 0, "keys": [{"Id": "1"}]})
    ],
    ("post", f"{T}/streams/{{stream}}/erasures"): [Case(STREAM, json={"keys": [{"Id": "1"}]})],
    ("post", f"{T}/streams/{{stream}}/row-changes"): [
        Case(TENANT, json={"key": {"Id": "1"}, "values": {"City": "Chur"}})
    ],
    ("post", f"{T}/streams/{{stream}}/deliveries/{{target}}/retries"): [Case(TENANT)],
    ("post", f"{T}/streams/{{stream}}/import"): [Case(STREAM, query="?key=Id")],
    ("delete", f"{T}/streams/{{stream}}"): [Case(STREAM)],
    ("put", f"{T}/tags/{{tag}}"): [Case(TENANT, adds=True)],
    ("delete", f"{T}/tags/{{tag}}"): [Case(TENANT, adds=True)],
    ("put", f"{T}/policy"): [Case(TENANT, adds=True)],
    ("put", f"{H}/snapshots"): [
        Case(A, query="?file=a.txt"),
        Case(STREAM, query=STREAM_FILE, content=ROWS),
    ],
    ("delete", f"{H}/snapshots"): [Case(A), Case(STREAM, query=STREAM_FILE)],
    **{(method, f"{H}/config"): [Case(SETTINGS)] for method in ("put", "patch")},
    **{("put", f"{H}/{part}"): [Case(SETTINGS)] for part in ("mapping", "metadata")},
}
QUEUE = "it changes the queue; what a script writes is the operator's own code"
LEFT_OUT = {
    ("delete", T): "confirm says what is meant; nothing of the tenant is left that could be lost unseen",
    ("post", f"{T}/clone"): "it makes a tenant that was not there",
    ("post", "/api/v1/environments/{environment}/tenants"): "it makes a tenant that was not there",
    ("delete", f"{T}/blobs/{{blob_id}}"): "a staged blob is not part of the tenant",
    ("post", f"{T}/streams/{{stream}}/import-preview"): "it keeps nothing",
    ("post", f"{T}/jobs"): QUEUE,
    ("post", f"{T}/jobs/{{job_id}}/cancel"): QUEUE,
    ("post", f"{T}/jobs/{{job_id}}/publish"): "it rests on all that the job saw",
    ("post", f"{T}/jobs/{{job_id}}/discard"): QUEUE,
    ("post", f"{T}/jobs/{{job_id}}/repetitions"): QUEUE,
    ("post", f"{T}/jobs/{{job_id}}/dry-runs"): QUEUE,
    ("post", f"{T}/replays"): QUEUE,
    ("post", "/api/v1/environments/{environment}/job-groups"): QUEUE,
    (
        "post",
        "/api/v1/environments/{environment}/job-groups/{group}/publish",
    ): "each job rests on what it saw",
    ("post", "/api/v1/environments/{environment}/job-groups/{group}/discard"): QUEUE,
    ("post", "/api/v1/environments/{environment}/job-groups/{group}/cancel"): QUEUE,
    ("post", f"{T}/schedules"): QUEUE,
    ("patch", f"{T}/schedules/{{schedule}}"): QUEUE,
    ("delete", f"{T}/schedules/{{schedule}}"): QUEUE,
    ("post", f"{T}/schedules/{{schedule}}/runs"): QUEUE,
    ("post", "/api/v1/keys"): "it changes no tenant",
    ("post", "/api/v1/keys/{key_id}/rotate"): "it changes no tenant",
    ("delete", "/api/v1/keys/{key_id}"): "it changes no tenant",
    ("post", "/api/v1/session"): "it changes no tenant",
    ("delete", "/api/v1/session"): "it changes no tenant",
}


@pytest.fixture(scope="module")
def strict(serve):
    """A server that takes changes of what is there with a condition only."""
    return serve(service_requests_per_second=0, service_requires_conditions=True)


class Prepared:
    """A tenant with files and a stream of two versions each, and how it is asked."""

    def __init__(self, served, api):
        name = f"own-{uuid.uuid4().hex[:8]}"
        self.api, self.place, self.name = api, served.tenant(name), name
        self.tenant = served.service.stores.environment("dev").tenant(name)
        for city in ("Bern", "Basel"):
            with self.tenant.job() as job:
                job.stream("Account").update(pa.table({"Id": ["1"], "City": [city]}), "Id")
                for path in ("a.txt", "deep/b.txt", CONFIG):
                    job.files.write_json(path, {"city": city})
        delivery = self.tenant.delivery("shop")
        delivery.reject("Account", delivery.pending("Account").assign(_error="too long"))
        self.tenant.tag("kept", 0)
        self.blob = api.post(f"{self.place}/blobs", content=b"new").json()["id"]

    def tag(self, subject):
        """The entity tag that the API gives of a case's subject."""
        if subject == TENANT:
            return self.api.get(self.place).headers["etag"]
        path = {STREAM: "streams/Account", SETTINGS: f"files/{CONFIG}"}.get(subject, "files/a.txt")
        return self.api.get(f"{self.place}/{path}").headers["etag"]

    def ask(self, operation, case, **headers):
        """The status of the case's request under conditions."""
        method, path = operation
        row = replace(TENANT_ROWS[operation], **case.changes)
        names = {"stream": "Account", "target": "shop", "path": "a.txt", "blob": self.blob}
        names |= {"tag": "kept", "environment": "dev", "env_id": "dev", "tenant": self.name}
        body = row.json
        if case.subject == "batch":
            inside = {name.replace("-", "_"): value for name, value in headers.items()}
            body, headers = {"files": [{**body["files"][0], **inside}]}, {}
        content, sent = row.content, {**row.headers, **headers}
        if body is not None:
            content, sent = filled(json.dumps(body), **names), {**sent, "content-type": "application/json"}
        return self.api.request(
            method.upper(), filled(path + row.query, **names), content=content, headers=sent
        )


def test_each_operation_that_writes_keeps_conditions_or_says_why_not(strict):
    """A new one without its case fails here."""
    document = strict.app.openapi()
    writing = {
        operation for operation in operations(document) if operation[0] not in {"get", "head", "options"}
    }

    assert writing == CASES.keys() | LEFT_OUT.keys()
    assert not CASES.keys() & LEFT_OUT.keys()


@pytest.mark.parametrize(
    ("operation", "case"),
    [(operation, case) for operation, cases in CASES.items() for case in cases],
    ids=lambda item: " ".join(item) if isinstance(item, tuple) else item.subject,
)
def test_conditions_count(strict, operation, case):
    """None is 428 where something that is there changes, a stale one is 412, the right one is kept."""
    with strict.client() as api:
        prepared = Prepared(strict, api)
        tag, before = prepared.tag(case.subject), prepared.tenant.version
        refused = [{"if-match": '"0-stale"'}, *([] if case.adds else [{}, {"if-none-match": '"x"'}])]
        answers = [prepared.ask(operation, case, **item) for item in refused]
        seen = prepared.tenant.version
        right = prepared.ask(operation, case, **{"if-match": tag})

    assert [answer.status_code for answer in answers] == [412] + ([] if case.adds else [428, 428])
    assert seen == before
    assert right.is_success, right.text


def test_a_dry_run_needs_no_condition_and_keeps_one(strict):
    """It changes nothing, so it is no change without a condition."""
    with strict.client() as api:
        place = f"{Prepared(strict, api).place}/streams/Account/erasures"
        body = {"keys": [{"Id": "1"}], "dry_run": True}
        answers = [api.post(place, json=body, headers=headers) for headers in ({}, {"if-match": '"0-stale"'})]

    assert [200, 412] == [answer.status_code for answer in answers]


def test_a_deletion_is_not_undone_over_what_came_since(strict):
    """With If-None-Match: * what somebody wrote there meanwhile stays, and the answer says who and when."""
    with strict.client() as api, strict.client(strict.key("snapshots:write", name="maria")) as maria:
        prepared = Prepared(strict, api)
        deletion = {"paths": ["a.txt", CONFIG]}
        gone = api.post(f"{prepared.place}/file-deletions", json=deletion, headers={"if-match": "*"}).json()
        maria.put(f"{prepared.place}/files/a.txt", content=b"hers").raise_for_status()
        order = {"version": gone["tenant_version"] - 1, "files": gone["paths"], "streams": []}
        undo = {"headers": {"if-none-match": "*"}}
        refused = [
            api.post(f"{prepared.place}/restorations", json=order, **undo),
            api.post(f"{prepared.place}/file-returns", json={"path": "a.txt", "version": 0}, **undo),
        ]
        kept = api.get(f"{prepared.place}/files/a.txt").content
        order["files"] = [CONFIG]
        back = api.post(f"{prepared.place}/restorations", json=order, **undo)

    assert [item.status_code for item in refused] == [412, 412]
    assert [item.json()["cause"][:23] for item in refused] == ["key maria changed it at"] * 2
    assert kept == b"hers"
    assert (back.status_code, back.json()["files_written"]) == (200, [CONFIG])


def test_a_repeated_request_is_answered_although_its_condition_is_over(strict):
    """The first answer was lost; the version that it made is what the condition no longer holds for."""
    with strict.client() as api:
        prepared = Prepared(strict, api)
        headers = {"if-match": prepared.tag(TENANT), "idempotency-key": uuid.uuid4().hex}
        order = {"path": "deep", "target": "deeper"}
        first = api.post(f"{prepared.place}/folder-moves", json=order, headers=headers)
        again = api.post(f"{prepared.place}/folder-moves", json=order, headers=headers)

    assert (first.status_code, again.status_code) == (200, 200)
    assert prepared.tenant.files.exists("deeper/b.txt")


@pytest.fixture
def stream(api, acme):
    """The path of a stream with two versions."""
    place = f"/tenant/dev/{acme.rpartition('/')[2]}/snapshots?file=Account.snapshot.csv"
    for rows in (ROWS, ROWS + b"8,Thun\n"):
        api.put(place, content=rows).raise_for_status()
    return f"{acme}/streams/Account"


def test_a_stream_is_restored_only_as_it_was_seen(api, stream):
    """The tag is the stream's: of a version before it is 412, of the newest the change is made."""
    seen = api.get(stream).headers["etag"]
    statuses = [
        api.post(f"{stream}/restore", json={"version": 0}, headers={name: tag}).status_code
        for name, tag in (("if-match", '"0"'), ("if-none-match", "*"), ("if-match", seen), ("if-match", seen))
    ]

    assert statuses == [412, 412, 200, 412]


def test_a_tag_is_of_nothing_that_was_made_anew(served, api, acme):
    """A tenant deleted and made again counts its versions anew: it is shown, and kept from old conditions."""
    name = acme.rpartition("/")[2]
    place = f"/tenant/dev/{name}/snapshots?file=Account.snapshot.csv"
    api.put(place, content=ROWS).raise_for_status()
    old = api.get(f"{acme}/streams/Account").headers["etag"]
    whole = {"if-match": api.get(acme).headers["etag"]}
    api.delete(acme, params={"confirm": name}).raise_for_status()
    served.tenant(name)
    api.put(place, content=ROWS + b"8,Thun\n").raise_for_status()

    shown = api.get(f"{acme}/streams/Account", headers={"if-none-match": old})
    dropped = api.delete(f"{acme}/streams/Account", headers={"if-match": old})
    restored = api.post(f"{acme}/restorations", json={"version": 0}, headers=whole)
    assert (200, 412, 412) == (shown.status_code, dropped.status_code, restored.status_code)
    assert api.get(acme).headers["etag"] == api.get(f"{acme}/overview").json()["etag"]


def test_a_condition_of_a_blob_needs_the_files_path(api, acme):
    """Without the path there is nothing to compare; a blob under a path is compared before it is sent."""
    api.put(f"{acme}/files/a.txt", content=b"a").raise_for_status()
    place = f"{acme}/blobs"
    none, never = {"if-none-match": "*"}, {"if-match": '"never"'}
    bare = [api.post(place, content=b"x", headers=item) for item in (none, never)]
    named = [api.post(f"{place}?path=a.txt", content=b"x", headers=item) for item in (none, never)]

    assert [item.status_code for item in bare] == [422, 422]
    assert [item.status_code for item in named] == [412, 412]


def test_a_condition_that_an_operation_does_not_know_is_refused(served, api, acme):
    """It would be ignored, and the change made: 422 before anything else is looked at."""
    known, refused = set(), set()
    for path, found in served.app.openapi()["paths"].items():
        for method in WRITING & set(found):
            headers = {item["name"] for item in found[method].get("parameters", ()) if item["in"] == "header"}
            if headers >= CONDITIONS:
                known.add(path)
                continue
            names = {part[1:-1]: "nothing" for part in path.split("/") if part.startswith("{")}
            for name in CONDITIONS:
                answer = api.request(method, filled(path, **names), headers={name: '"0"'})
                assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST"), (method, path)
                assert name in answer.json()["title"]
            refused.add(path)

    assert len(known) > 10
    assert len(refused) > 10
