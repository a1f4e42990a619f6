"""Requests that are not what HTTP asks for: without a host, with two, half sent, or with a shortened path."""

import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest


def told(url, request):
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
    answer = told(served.url, "\r\n".join(lines).encode())
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
