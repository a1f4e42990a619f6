"""The outermost middleware: request id, limits of the raw request, and metrics.

Plain ASGI, because a wrapper for each answer would cost more than many answers do.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.asgi.middleware.measurements import Measurements
from freezeframe.asgi.problems import problem_response
from freezeframe.errors import FreezeframeError, TooLarge, UnreadableRequest
from freezeframe.observation import Operation, log_context, observe

HEADER_BYTES_MAX = 32 * 1024
# The audit has room for 60 letters, 17 of them ours.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,43}")
_access_log = logging.getLogger("freezeframe.access")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class RequestGuard:
    """Assigns a request id, refuses malformed requests, and measures response times."""

    def __init__(self, app: ASGIApp, measurements: Measurements, body_bytes_max: int) -> None:
        self._app = app
        self._measurements = measurements
        self._body_bytes_max = body_bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = scope["request_id"] = request_id(scope)
        with log_context(request=known), observe("request") as operation:
            await self._answer(scope, receive, send, operation)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, operation: Operation) -> None:
        known = request_id(scope)
        started, status = time.perf_counter(), 500

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [(b"x-request-id", known.encode()), *_SECURITY_HEADERS]
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        try:
            status_of_headers = None
            refusal = _headers_refusal(scope)
            if refusal is not None:
                status_of_headers = 431
            else:
                refusal = _refusal(scope, self._body_bytes_max)
            if refusal is not None:
                answer = problem_response(refusal, known, status=status_of_headers)
                await answer(scope, receive, tell)
            else:
                await self._app(scope, receive, tell)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            operation.subject, operation.outcome = f"{scope['method']} {route}", str(status)
            seconds = time.perf_counter() - started
            self._measurements.count_response(scope["method"], route, status, seconds)
            if _access_log.isEnabledFor(logging.INFO):
                _access_log.info(
                    "%s %s %d", scope["method"], scope["path"], status, extra=_log_fields(scope, seconds)
                )


def _log_fields(scope: Scope, seconds: float) -> dict[str, Any]:
    """The fields of a request's log line, without its query, whose conditions hold values of rows."""
    client = scope.get("client") or ("",)
    return {"milliseconds": round(seconds * 1000, 1), "client": client[0]}


def request_id(scope: MutableMapping[str, Any]) -> str:
    """The request's id: the one that it has already, or a new one.

    An id of the client's own, if it can be one, is its beginning. What follows is ours, so that nobody has
    the audit tell of two requests as if they were one.
    """
    known = scope.get("request_id")
    if isinstance(known, str):
        return known
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    text = given.decode("latin-1")
    return f"{text}.{uuid.uuid4().hex[:16]}" if _REQUEST_ID.fullmatch(text) else uuid.uuid4().hex


def _headers_refusal(scope: MutableMapping[str, Any]) -> FreezeframeError | None:
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size > HEADER_BYTES_MAX:
        return TooLarge(
            f"The headers have {size:,} bytes; {HEADER_BYTES_MAX:,} is the most.",
            cause="Names and values of all headers count, cookies too.",
            remedy="Send fewer or shorter headers.",
        )
    return None


def _refusal(scope: MutableMapping[str, Any], body_bytes_max: int) -> FreezeframeError | None:
    hosts = sum(name == b"host" for name, _ in scope["headers"])
    if hosts > 1 or (not hosts and scope.get("http_version") != "1.0"):
        return UnreadableRequest(
            f"The request has {hosts or 'no'} Host headers.",
            cause="It must be sent to one host (RFC 9112, 3.2).",
            remedy="Send one.",
        )
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    if any(not _LENGTH.fullmatch(value) for value in lengths):
        return UnreadableRequest("Content-Length is not a number.", remedy="Send the length in bytes.")
    # A staged blob has its own limit; everything else is checked before any work.
    is_blob = scope["method"] == "POST" and scope["path"].endswith("/blobs")
    if not is_blob and any(int(value) > body_bytes_max for value in lengths):
        return TooLarge(
            "The body is too large.",
            cause="Its Content-Length is more than the service takes at once.",
            remedy="Send less, or stage it: POST …/blobs.",
        )
    raw_path = scope.get("raw_path") or scope["path"].encode()
    for what, raw in (("path", raw_path), ("query", scope.get("query_string", b""))):
        try:
            text = unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            return UnreadableRequest(
                f"The {what} is not UTF-8.",
                cause="Decoded from percent signs it holds bytes that are not text.",
                remedy="Encode names in UTF-8, then in percent signs.",
            )
        if "\0" in text:
            return UnreadableRequest(
                f"The {what} holds a NUL.", cause="No name of anything here has one.", remedy="Leave it out."
            )
    return None
