"""Around all routes: request ids, limits of the raw request, metrics, and the end of the process.

Plain ASGI, because a wrapper for each response would cost more than many responses do.
"""

import asyncio
import http
import logging
import re
import signal
import threading
import time
import uuid
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any
from urllib.parse import unquote_to_bytes

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.asgi.problems import problem_response
from freezeframe.control.job import JobStatus
from freezeframe.errors import FreezeframeError, TooLarge, UnreadableRequest
from freezeframe.observation import Operation, log_context, observe
from freezeframe.service.stored_bytes import EnvironmentSize

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Measurements:
    """Counters and histograms: requests by route and status, commits by outcome, the queue.

    With several workers ``directory`` is where prometheus-client keeps what they count together.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter(
            "freezeframe_requests", "Requests that were answered.", labels, registry=self._registry
        )
        self._seconds = Histogram(
            "freezeframe_request_seconds",
            "How long answers took.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._jobs = self._gauge("freezeframe_jobs", "Jobs in the queue.", "status")
        waiting = "How long the job that has waited longest could have been running."
        self._waiting = self._gauge("freezeframe_queue_age_seconds", waiting)
        self._tenants = self._gauge(
            "freezeframe_tenants", "Tenants by what they hold at most.", "environment"
        )
        stored = "Bytes of the newest versions of these tenants."
        self._stored = self._gauge("freezeframe_stored_bytes", stored, "environment")
        self._commits = Histogram(
            "freezeframe_commit_seconds",
            "How long commits of the service took, by what came of them.",
            ["outcome"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._retries = Counter(
            "freezeframe_commit_retries",
            "Tries that commits repeated, because another one was quicker.",
            registry=self._registry,
        )

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry, multiprocess_mode="mostrecent")

    def observe(self, operation: Operation) -> None:
        """Count an operation that has ended."""
        if operation.name == "commit":
            self._commits.labels(operation.outcome).observe(operation.seconds)
            self._retries.inc(operation.retries)

    def count_response(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def queue(self, counts: Mapping[JobStatus, int], waiting_seconds: float) -> None:
        """Set the number of jobs by status and the age of the oldest queued one."""
        for status, count in counts.items():
            self._jobs.labels(status).set(count)
        self._waiting.set(waiting_seconds)

    def stored(self, environments: Sequence[EnvironmentSize]) -> None:
        """Set the number of tenants and their bytes by environment."""
        for environment in environments:
            self._tenants.labels(environment.environment).set(environment.tenants)
            self._stored.labels(environment.environment).set(environment.bytes)

    def text(self) -> bytes:
        """Return all numbers, in Prometheus's text format."""
        if self._directory is None:
            return generate_latest(self._registry)
        joined = CollectorRegistry()
        MultiProcessCollector(joined, self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(joined)


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Closing:
    """Whether a signal has announced the end of this process; for its one event loop."""

    def __init__(self) -> None:
        self._announced: asyncio.Event | None = None

    async def wait(self, seconds: float) -> bool:
        """Wait for ``seconds`` or until the end is announced, and return whether it is."""
        announced = self._event()
        with suppress(TimeoutError):
            await asyncio.wait_for(announced.wait(), seconds)
        return announced.is_set()

    def _event(self) -> asyncio.Event:
        if self._announced is None:
            self._announced = asyncio.Event()
            # Python lets only the main thread take signals; a server in another one gets none anyway.
            if threading.current_thread() is threading.main_thread():
                for number in _SIGNALS:
                    self._listen(number, asyncio.get_running_loop())
        return self._announced

    def _listen(self, number: signal.Signals, loop: asyncio.AbstractEventLoop) -> None:
        before = signal.getsignal(number)
        announced = self._announced
        assert announced is not None  # noqa: S101 - set by _event

        def tell(number: int, frame: FrameType | None) -> None:
            with suppress(RuntimeError):  # the event loop is closed: no one is left to notify
                loop.call_soon_threadsafe(announced.set)
            if callable(before):
                before(number, frame)

        signal.signal(number, tell)


HEADER_BYTES_MAX = 32 * 1024
_TOO_LARGE = 413
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
        started, status, is_replaced = time.perf_counter(), 500, False

        async def tell(message: Message) -> None:
            nonlocal status, is_replaced
            if is_replaced:
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                if status == _TOO_LARGE and _is_text(message):
                    # The framework's own limit of a body does not answer with a problem.
                    await problem_response(_body_refusal(), known)(scope, receive, tell)
                    is_replaced = True
                    return
                headers = [(b"x-request-id", known.encode()), *_SECURITY_HEADERS]
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        channel: tuple[Scope, Receive, Send] = (scope, receive, tell)
        if scope["method"] == "HEAD":
            channel = _as_get(*channel)
        try:
            refusal = _headers_refusal(scope) or _refusal(scope, self._body_bytes_max)
            app: ASGIApp = (
                self._app if refusal is None else problem_response(refusal[0], known, status=refusal[1])
            )
            await app(*channel)
        finally:
            route = getattr(channel[0].get("route"), "path", "none")
            operation.subject, operation.outcome = f"{scope['method']} {route}", str(status)
            seconds = time.perf_counter() - started
            self._measurements.count_response(scope["method"], route, status, seconds)
            if _access_log.isEnabledFor(logging.INFO):
                _access_log.info(
                    "%s %s %d", scope["method"], scope["path"], status, extra=_log_fields(scope, seconds)
                )


def _as_get(scope: Scope, receive: Receive, send: Send) -> tuple[Scope, Receive, Send]:
    """Return the GET whose headers answer a HEAD; once they are sent, its client is gone for it.

    So nobody writes the body of a large file, or a stream of events, that is not asked for.
    """
    is_read, is_answered = False, asyncio.Event()

    async def listen() -> Message:
        nonlocal is_read
        if is_read:
            await is_answered.wait()
            return {"type": "http.disconnect"}
        message = await receive()
        is_read = not message.get("more_body", False)
        return message

    async def send_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            is_answered.set()

    # From 2.4 on a stream learns of its end by an error of `send`, not by a message.
    asgi = {**scope["asgi"], "spec_version": "2.3"}
    return {**scope, "method": "GET", "asgi": asgi}, listen, send_headers


def _log_fields(scope: Scope, seconds: float) -> dict[str, Any]:
    """Return the fields of a request's log line, without its query, whose conditions hold values of rows."""
    client = scope.get("client") or ("",)
    return {"milliseconds": round(seconds * 1000, 1), "client": client[0]}


def request_id(scope: MutableMapping[str, Any]) -> str:
    """Return the id that the request has, or a new one.

    An id of the client's own, if it can be one, is its beginning. What follows is ours, so that nobody has
    the audit tell of two requests as if they were one.
    """
    known = scope.get("request_id")
    if isinstance(known, str):
        return known
    sent = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    text = sent.decode("latin-1")
    return f"{text}.{uuid.uuid4().hex[:16]}" if _REQUEST_ID.fullmatch(text) else uuid.uuid4().hex


_Refusal = tuple[FreezeframeError, int | None]
"""An error, and its status where that is not the one of its class."""


def _headers_refusal(scope: MutableMapping[str, Any]) -> _Refusal | None:
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size > HEADER_BYTES_MAX:
        error = TooLarge(
            f"The headers have {size:,} bytes; {HEADER_BYTES_MAX:,} is the most.",
            cause="Names and values of all headers count, cookies too.",
            remedy="Send fewer or shorter headers.",
        )
        return error, http.HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    encodings = [value for name, value in scope["headers"] if name == b"content-encoding"]
    if any(value.strip().lower() not in {b"", b"identity"} for value in encodings):
        packed = UnreadableRequest(
            "The body is compressed, and the service does not unpack it.",
            cause=f"Content-Encoding is {encodings[0].decode('latin-1')[:40]!r}; packed bytes would be kept.",
            remedy="Send the body as it is, without Content-Encoding. A .csv.gz is a file like any other.",
            code="UNSUPPORTED_ENCODING",
        )
        return packed, http.HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return None


def _is_text(start: Message) -> bool:
    kind: bytes = dict(start.get("headers", ())).get(b"content-type", b"")
    return kind.startswith(b"text/plain")


def _body_refusal() -> TooLarge:
    return TooLarge(
        "The body is too large.",
        cause="Its Content-Length is more than the service takes at once.",
        remedy="Send less, or stage it: POST …/blobs.",
    )


def _refusal(scope: MutableMapping[str, Any], body_bytes_max: int) -> _Refusal | None:
    error = _request_error(scope, body_bytes_max)
    return None if error is None else (error, None)


def _request_error(scope: MutableMapping[str, Any], body_bytes_max: int) -> FreezeframeError | None:
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
        return _body_refusal()
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
                f"The {what} holds a NUL.", cause="Names cannot contain one.", remedy="Leave it out."
            )
    return None
