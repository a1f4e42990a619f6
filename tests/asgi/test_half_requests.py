"""Requests that are not what HTTP asks for: without a host, with two, half sent, or with a shortened path."""

import asyncio
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest
import uvicorn

from freezeframe.asgi.middleware.body_deadline import BodyDeadline
from freezeframe.cli.service.request_deadline import ImpatientProtocol
from freezeframe.errors import UnreadableRequest


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


class Hasty(ImpatientProtocol):
    """Waits a moment for heads."""

    head_seconds = 0.1


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a", b"whole first"])
def test_a_half_sent_head_ends_the_connection(sent):
    """Whoever sends nothing, or half a head, first or after a whole request, is closed."""

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def tried():
        config = uvicorn.Config(application, port=0, log_level="critical", lifespan="off", http=Hasty)
        server = uvicorn.Server(config)
        with config.bind_socket() as place:
            serving = asyncio.create_task(server.serve([place]))
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
            reader, writer = await asyncio.open_connection(*place.getsockname())
            if sent == b"whole first":
                writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert b"204" in await reader.readline()
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"GET / HT")
            else:
                writer.write(sent)
            async with asyncio.timeout(30):
                rest = await reader.read()  # to its end, which the server makes
            writer.close()
            server.should_exit = True
            await serving
        return rest

    assert asyncio.run(tried()) == b""


def test_a_body_that_stops_is_refused():
    """Nothing of it for some time is an error; behind the body the client's farewell may be waited for."""

    async def tried(*messages):
        waiting, taken = list(messages), []

        async def receive():
            return waiting.pop(0) if waiting else await asyncio.sleep(0.3, {"type": "http.disconnect"})

        async def application(scope, receive, send):
            taken.extend([await receive() for _ in range(3)])

        await BodyDeadline(application, 0.05)({"type": "http"}, receive, None)
        return [one["type"] for one in taken]

    part = {"type": "http.request", "body": b"x", "more_body": True}
    with pytest.raises(UnreadableRequest):
        asyncio.run(tried(part))
    assert asyncio.run(tried(part, {"type": "http.request", "body": b"y"})) == [
        "http.request",
        "http.request",
        "http.disconnect",
    ]
