"""Requests that are no requests: each is answered with a problem, changes nothing and shows no trace."""

import http.client
import json
from contextlib import closing

import pytest

TENANTS = "/api/v1/environments/dev/tenants"
BAD_JSON = {
    "nested a hundred thousand deep": b"[" * 100_000,
    "nested a little too deep": b'{"tenant":' * 65 + b"1" + b"}" * 65,
    "a member twice": b'{"tenant": "a", "tenant": "b"}',
    "no UTF-8": b'{"tenant": "\xff"}',
    "half a character": b'{"tenant": "\\ud800"}',
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
    assert "application/problem+json" == answer.headers["content-type"]
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    assert "Traceback" not in answer.text
    assert served.root not in answer.text
    assert before == api.get(TENANTS).json()


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

        assert (413, 413) == (announced.status_code, unannounced.status_code)
        assert 404 == api.get(f"{acme}/files/a").status_code
        assert 413 == api.put(f"{acme}/files/a", content=b"x" * 1_000_000).status_code


def test_a_body_that_is_announced_as_too_long_changes_nothing(served, acme):
    """Whatever the operation: 413 as a problem, with the request's id, before anything is done."""
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"))
    with served.client() as api, closing(connection):
        api.put(f"{acme}/files/a", content=b"x").raise_for_status()
        headers = {"x-api-key": served.key(), "x-request-id": "r1", "content-length": str(10**12)}
        connection.request("DELETE", f"{acme}/files/a", headers=headers)
        answer = connection.getresponse()
        problem = json.loads(answer.read())

        assert (413, "application/problem+json", "r1") == (
            answer.status,
            answer.headers["content-type"],
            answer.headers["x-request-id"],
        )
        assert "TOO_LARGE" == problem["code"]
        assert 200 == api.get(f"{acme}/files/a").status_code


def test_the_wrong_method_says_which_are_right(api, acme):
    """405 is a problem with an Allow header."""
    answer = api.put(f"{acme}/history")

    assert (405, "METHOD_NOT_ALLOWED") == (answer.status_code, answer.json()["code"])
    assert answer.headers["allow"]


def test_the_callers_request_id_is_kept_if_it_can_be_one(api):
    """A client's own id comes back; what could break a log does not."""
    assert "abc-1" == api.get(TENANTS, headers={"x-request-id": "abc-1"}).headers["x-request-id"]
    assert "a b" != api.get(TENANTS, headers={"x-request-id": "a b"}).headers["x-request-id"]
