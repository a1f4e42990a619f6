"""Requests that go straight into the application, with exactly the bytes that they are given."""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import unquote


@dataclass
class Response:
    """An answer: its status, its headers by lower-case name, its bytes."""

    status: int = 0
    headers: dict = field(default_factory=dict)
    body: bytes = b""


class DirectApp:
    """An application that is asked in this process, one request after the other."""

    def __init__(self, app):
        self._app = app
        self._runner = asyncio.Runner()

    def close(self):
        self._runner.close()

    def ask(self, method, target, headers, body=b""):
        """``target`` is a request line's ASCII, ``headers`` pairs of bytes; a host is added if absent."""
        return self._runner.run(asyncio.wait_for(self._asked(method, target, headers, body), 60))

    async def _asked(self, method, target, headers, body):
        path, _, query = target.partition("?")
        named = [(name.lower(), value) for name, value in headers]
        if not any(name == b"host" for name, _ in named):
            named.insert(0, (b"host", b"127.0.0.1"))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method.upper(),
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("ascii"),
            "query_string": query.encode("ascii"),
            "root_path": "",
            "headers": named,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "state": {},
        }
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        response, ended = Response(), asyncio.Event()

        async def receive():
            if messages:
                return messages.pop()
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.start":
                response.status = message["status"]
                response.headers = {
                    name.decode().lower(): value.decode() for name, value in message["headers"]
                }
            elif message["type"] == "http.response.body":
                response.body += message.get("body", b"")
                if not message.get("more_body"):
                    ended.set()

        await self._app(scope, receive, send)
        return response
