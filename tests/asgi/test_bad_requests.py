"""Requests that are no requests: each is answered with a problem, changes nothing and shows no trace."""

import asyncio
import http.client
import json
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from fastapi import Request
from tests.script.bombs import arrow_text, arrow_zeros, json_names, parquet_numbers, parquet_text

from freezeframe.asgi.problems import media_type

TENANTS = "/api/v1/environments/dev/tenants"
BAD_JSON = {
    "nested a hundred thousand deep": b"[" * 100_000,
    "nested a little too deep": b'{"tenant":' * 65 + b"1" + b"}" * 65,
    "a member twice": b'{"tenant": "a", "tenant": "b"}',
    "no UTF-8": b'{"tenant": "\xff"}',
    "half a character": b'{"tenant": "\\ud800"}',
    "half a character in a list": b'{"tenant": ["\\ud800"]}',
    "half a character in a name": b'{"\\ud800": 1}',
    "NaN": b'{"tenant": NaN}',
    "cut off": b'{"tenant": "a"',
    "nothing": b"",
    "another type": b'{"tenant": 7}',
    "a list": b"[]",
    "a member too many": b'{"tenant": "a", "admin": true}',
    "a megabyte and more": b'{"tenant": "' + b"a" * 1_100_000 + b'"}',
    "traversal": b'{"tenant": "../a"}',
    "a name of ours": b'{"tenant": "_freezeframe"}',
    "a control character": b'{"tenant": "a\\u0000b"}',
}


@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON)
def test_a_bad_body_is_a_problem(served, api, body):
    """4xx with problem+json and a request id, nothing made, no stack trace."""
    before = api.get(TENANTS).json()
    answer = api.post(TENANTS, content=body, headers={"content-type": "application/json"})

    assert answer.status_code in {400, 413, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    assert "Traceback" not in answer.text
    assert served.root not in answer.text
    assert before == api.get(TENANTS).json()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", TENANTS),
        ("POST", f"{TENANTS}/acme/jobs"),
        ("POST", f"{TENANTS}/acme/streams/S/import"),
        ("PUT", "/tenant/dev/acme/snapshots?file=a"),
        ("PATCH", "/tenant/dev/acme/config"),
    ],
)
def test_a_body_of_nobody_is_not_read(served, method, path):
    """Who asks is known before the body is: without a key it is 401, whatever was sent."""
    with served.client("") as nobody:
        answer = nobody.request(method, path, content=b"{", headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (401, "NOT_AUTHENTICATED")


def test_who_signs_in_sends_little(served):
    """A body that is read before anybody is known has at most 16 KiB."""
    body = b'{"key": "a.' + b"a" * 16_384 + b'"}'
    headers = {"content-type": "application/json", "origin": served.url}
    with served.client("") as nobody:
        assert nobody.post("/api/v1/session", content=body, headers=headers).status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", TENANTS, b'{"tenant": "acme"}'),
        ("PUT", "/tenant/dev/acme/snapshots?file=a", b'{"content": "YQ=="}'),
        ("PATCH", "/tenant/dev/acme/config", b'{"a": 1}'),
    ],
)
def test_bodies_are_parsed_once_and_off_the_event_loop(api, monkeypatch, method, path, body):
    """While a body is parsed, the event loop answers others."""
    threads, loads = [], json.loads

    def noted(content, **options):
        if content in {body, body.decode()}:
            threads.append(asyncio._get_running_loop() is not None)
        return loads(content, **options)

    monkeypatch.setattr(json, "loads", noted)
    api.request(method, path, content=body, headers={"content-type": "application/json"}).raise_for_status()

    assert threads == [False]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"{TENANTS}/%ff", 400),
        (f"{TENANTS}?prefix=%ff", 400),
        (f"{TENANTS}/a%00b", 400),
        (f"{TENANTS}?limit=many", 422),
        (f"{TENANTS}?cursor=AAAA", 422),
        ("/api/v1/../../etc/passwd", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        (f"{TENANTS}/acme/files/%2e%2e%2f%2e%2e%2fx", (404, 422)),
        (f"{TENANTS}/acme/files/..%5cx", (404, 422)),
        ("/nowhere", 404),
    ],
)
def test_a_bad_path_is_a_problem(served, target, status):
    """Whatever the path's encoding, it leads nowhere."""
    with closing(http.client.HTTPConnection(served.url.removeprefix("http://"))) as connection:
        connection.request("GET", target, headers={"x-api-key": served.key()})
        answer = connection.getresponse()
        problem = json.loads(answer.read())

    assert answer.status in (status if isinstance(status, tuple) else (status,))
    assert problem["type"].startswith("urn:freezeframe:error:")


CSV = {"content-type": "text/csv"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
PARQUET = {"content-type": "application/vnd.apache.parquet"}
# Method, path below a tenant with a file and a stream, what is sent, status, and what the answer says.
WRONG_USES = [
    ("GET", "/streams/S/rows?wher=Id = 1", {}, 422, "where"),  # codespell:ignore wher
    ("GET", "/files/a?verson=0", {}, 422, "version"),  # codespell:ignore verson
    ("GET", "/history?limit=1&limt=1", {}, 422, "limt"),  # codespell:ignore limt
    ("GET", "/streams/S/rows?" + "&".join(["where=Id = 1"] * 1001), {}, 422, "too many parameters"),
    ("GET", "/streams/S/rows?where=Nope = 1", {}, 422, "The columns are Id"),
    ("GET", "/streams/S/rows?tenant_version=99", {}, 404, "no version 99"),
    ("GET", "/streams/S/rows?version=0&tenant_version=0", {}, 422, "Give one of them"),
    ("GET", "/streams/S/rows?cursor=AAAA", {}, 422, "another list"),
    ("GET", "/streams/S/rows?version=0&stream_version=0", {}, 422, ""),
    ("GET", f"/streams/S/rows?tenant_version={2**60}", {}, 422, "tenant_version"),
    ("GET", "/streams/S/rows?where=Id = 'yesterday'", {}, 422, "Id"),
    ("GET", "/streams/S/rows?columns=Nowhere", {}, 422, "Nowhere"),
    ("GET", "/streams/S/rows?limit=0", {}, 422, "limit"),
    ("GET", "/streams/S/rows?as_of=yesterday", {}, 422, "as_of"),
    ("GET", "/diff?before=0&after=77", {}, 404, "no version 77"),
    ("GET", "/files/a", {"headers": {"range": "bytes=9-"}}, 416, "1 bytes"),
    ("GET", "/jobs/none", {}, 404, "list of its jobs"),
    ("GET", "/streams/None", {}, 404, "streams are: S"),
    ("GET", "/bundle?file=a&stream=None", {}, 404, "streams of that version are: S"),
    ("PUT", "/files/a", {"content": b"y", "headers": {"if-match": "abc"}}, 400, "in quotes"),
    ("DELETE", "/tags/none", {}, 404, "none of that name"),
    ("POST", "/restorations", {"content": b'{"version": 0}', "headers": FORM}, 422, "application/json"),
    ("POST", "/restorations", {"json": {"version": 99}}, 404, "no version 99"),
    ("POST", "/restorations", {"json": {"version": 10**30}}, 422, "body.version"),
    ("POST", "/streams/S/import?key=Id", {"content": b"PAR1", "headers": PARQUET}, 422, "Parquet"),
    ("POST", "/streams/S/import?key=Id", {"content": b"", "headers": PARQUET}, 422, "Parquet"),
    (
        "POST",
        "/streams/S/import-preview?key=Id",
        {"content": b"", "headers": CSV},
        422,
        "'rows.csv' is empty",
    ),
    ("PUT", "/policy", {"json": {"keep_versions": 2**53 + 1}}, 422, "body.keep_versions"),
]


@pytest.fixture(scope="module")
def used(served):
    """The path of a tenant with a file and a stream."""
    place = served.tenant("used")
    with served.client() as api:
        api.put(f"{place}/files/a", content=b"x").raise_for_status()
        api.put("/tenant/dev/used/snapshots?file=S.snapshot.csv", content=b"Id\n1\n").raise_for_status()
    return place


@pytest.mark.parametrize(("method", "path", "sent", "status", "says"), WRONG_USES)
def test_a_wrong_use_is_told_with_its_remedy(served, api, used, method, path, sent, status, says):
    """Problem, cause and remedy are all there, and no place on the machine; nothing is changed."""
    answer = api.request(method, used + path, **sent)
    problem = answer.json()

    assert (status, "application/problem+json") == (answer.status_code, answer.headers["content-type"])
    assert all(problem[name] for name in ("title", "cause", "remedy"))
    assert says in answer.text
    assert "/tmp" not in answer.text
    assert (api.get(used).json()["version"], api.get(f"{used}/jobs").json()["jobs"]) == (1, [])


def test_a_bad_snapshot_file_is_told_by_its_name(api, used):
    """What a client of hotglue sends is named as it named it, not as it lay on the disk."""
    answer = api.put("/tenant/dev/used/snapshots?file=S.snapshot.csv", content=b"")

    assert (answer.status_code, answer.json()["title"]) == (422, "'S.snapshot.csv' is empty.")


def test_huge_headers_are_refused(api):
    """More than 32 KiB of headers is 431, or more than the server reads at all."""
    assert api.get(TENANTS, headers={"x-more": "a" * 33_000}).status_code in {400, 431}


def test_a_body_over_the_limit_is_refused(serve):
    """A file larger than service_body_bytes_max is 413, announced or not, and is not there."""
    served = serve(service_body_bytes_max=2048)
    acme = served.tenant("acme")
    with served.client() as api:
        announced = api.put(f"{acme}/files/a", content=b"x" * 2049)
        unannounced = api.put(f"{acme}/files/a", content=iter([b"x" * 1500] * 2))

        assert (announced.status_code, unannounced.status_code) == (413, 413)
        assert api.get(f"{acme}/files/a").status_code == 404
        assert api.put(f"{acme}/files/a", content=b"x" * 1_000_000).status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "size"),
    [
        ("DELETE", "files/a", 10**12),
        ("PATCH", "files/a", 10**12),
        ("POST", "blobs", 10**17),
        ("POST", "nothing/blobs", 10**12),
    ],
)
def test_a_body_that_is_announced_as_too_long_changes_nothing(served, acme, method, path, size):
    """Whatever the operation: 413 as a problem, with the request's id, before anything is done."""
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"))
    with served.client() as api, closing(connection):
        api.put(f"{acme}/files/a", content=b"x").raise_for_status()
        headers = {"x-api-key": served.key(), "x-request-id": "r1", "content-length": str(size)}
        connection.request(method, f"{acme}/{path}", headers=headers)
        answer = connection.getresponse()
        problem = json.loads(answer.read())

        assert (
            answer.status,
            answer.headers["content-type"],
            answer.headers["x-request-id"].partition(".")[0],
        ) == (413, "application/problem+json", "r1")
        assert problem["code"] == "TOO_LARGE"
        assert api.get(f"{acme}/files/a").status_code == 200


def test_the_callers_request_id_is_kept_if_it_can_be_one(api):
    """A client's own id comes back with another end each time; what could break a log does not."""
    body = [api.get(TENANTS, headers={"x-request-id": "abc-1"}).headers["x-request-id"] for _ in range(2)]
    assert (len(set(body)), {item.rpartition(".")[0] for item in body}) == (2, {"abc-1"})
    for odd in ("a b", "x" * 44):
        assert odd not in api.get(TENANTS, headers={"x-request-id": odd}).headers["x-request-id"]


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (b"text/csv", "text/csv"),
        (b"Application/JSON ; charset=utf-8", "application/json"),
        (b"; charset=utf-8", ""),
        (None, ""),
    ],
)
def test_the_media_type_is_told_without_what_is_beside_it(header, told):
    """Parameters, spaces and capitals do not count; no header is not a media type."""
    headers = [] if header is None else [(b"content-type", header)]
    assert told == media_type(Request({"type": "http", "headers": headers}))


def reply(url, request):
    """What a server answers to these bytes."""
    with closing(socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), 30)) as line:
        line.sendall(request)
        return line.recv(65536)


@pytest.mark.parametrize(
    ("version", "hosts", "status"),
    [("1.1", 1, 200), ("1.1", 2, 400), ("1.1", 0, 400), ("1.0", 0, 200), ("1.0", 2, 400)],
)
def test_a_request_is_for_one_host(served, version, hosts, status):
    """Two hosts, or none, are refused; HTTP/1.0 knew none."""
    lines = [f"GET /health/live HTTP/{version}", *["Host: a.example"] * hosts, "Connection: close", "", ""]
    answer = reply(served.url, "\r\n".join(lines).encode())
    assert f" {status} ".encode() in answer.partition(b"\r\n")[0]


def test_a_shortened_path_deletes_no_tenant(served, api, acme):
    """`…/files/..` is the tenant's own path to many clients; without its id nothing is deleted."""
    tenant = acme.rpartition("/")[2]
    api.put(f"{acme}/files/a", content=b"x").raise_for_status()
    for place in (f"{acme}/files/..", f"{acme}/streams/..", f"{acme}/tags/.."):
        assert api.delete(place).status_code in {404, 405, 422}
        assert api.delete(f"{place}?message=tidy").status_code in {404, 405, 422}
    assert api.delete(acme).status_code == 422
    assert api.delete(acme, params={"confirm": "another"}).status_code == 422
    assert api.get(f"{acme}/files/a").status_code == 200
    assert api.delete(acme, params={"confirm": tenant}).status_code == 200
    assert api.get(acme).status_code == 404


TYPES = {
    parquet_text: "application/vnd.apache.parquet",
    parquet_numbers: "application/vnd.apache.parquet",
    arrow_zeros: "application/vnd.apache.arrow.stream",
    arrow_text: "application/vnd.apache.arrow.stream",
    json_names: "application/x-ndjson",
}
SAID_BEFORE = {parquet_numbers, arrow_zeros, arrow_text}


@pytest.mark.parametrize("make", TYPES, ids=lambda item: item.__name__)
def test_a_body_that_unpacks_to_a_lot_is_refused(api, acme, tmp_path, make):
    """The preview, the import where the file says so itself, and the replaced stream; the limit is named."""
    make(tmp_path / "a")
    body, headers = (tmp_path / "a").read_bytes(), {"content-type": TYPES[make]}
    answers = [api.post(f"{acme}/streams/S/import-preview?key=Id", content=body, headers=headers)]
    if make in SAID_BEFORE:
        answers.append(api.post(f"{acme}/streams/S/import?key=Id", content=body, headers=headers))
    if "parquet" in make.__name__:
        tenant = acme.rpartition("/")[2]
        answers.append(api.put(f"/tenant/dev/{tenant}/snapshots?file=S.snapshot.parquet", content=body))

    for answer in answers:
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (413, "UNPACKS_TOO_LARGE")
        assert problem["limit"] in problem["cause"]
        assert isinstance(problem["limit_value"], int | float)
        assert "/tmp" not in answer.text
    assert api.get(acme).json()["version"] == -1
    assert api.get(f"{acme}/jobs").json()["jobs"] == []
