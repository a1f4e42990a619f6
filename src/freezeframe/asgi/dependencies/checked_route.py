"""Route class: strict JSON bodies, and changes carried out once for each idempotency key."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from freezeframe.asgi.authentication import authenticate, service_of
from freezeframe.asgi.bodies.strict_json import strict_json
from freezeframe.asgi.dependencies.caller import (
    Caller,
    count_replay,
    counted_principal,
    request_caller,
    request_tenant_caller,
)
from freezeframe.asgi.media_type import media_type
from freezeframe.errors import NotAuthenticated, TooLarge, TryAgain, UnreadableRequest
from freezeframe.service.base.idempotency import (
    RENEWED_EVERY_SECONDS,
    RequestIdentity,
    StoredResponse,
    StoredResponses,
    other_request,
)

JSON_BYTES_MAX = 1024 * 1024
# For callers not yet known: those who sign in.
ANONYMOUS_JSON_BYTES_MAX = 16 * 1024
IDEMPOTENCY_KEY_LENGTH_MAX = 200
_SENT_AGAIN = ("content-type", "location", "etag")
_KEYED_METHODS = frozenset({"POST", "PUT"})
_IDENTIFYING = (
    "content-type",
    "content-length",
    "content-digest",
    "if-match",
    "if-none-match",
    "upload-length",
    "upload-metadata",
)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CheckedRoute(APIRoute):
    """A route of the API; its handler sees a body that was read strictly."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _in_a_thread(endpoint), **options)

    def get_route_handler(self) -> Handler:
        """See ``APIRoute.get_route_handler``."""
        inner = super().get_route_handler()

        needs_caller = any(
            one.call in {request_caller, request_tenant_caller} for one in self.dependant.dependencies
        )

        async def handle(plain: Request) -> Response:
            request = _JsonRequest(plain.scope, plain.receive)
            body = await _json_body(request, needs_caller=needs_caller)
            key = request.headers.get("idempotency-key")
            if key is None or request.method not in _KEYED_METHODS:
                return await inner(request)
            return await _once(request, key, body, inner)

        return handle


class _JsonRequest(Request):
    """A request whose JSON body is read strictly, once, in a worker thread."""

    _value: Any = None
    _is_parsed = False

    async def body_within(self, bytes_max: int) -> bytes:
        """The body; one that is longer than ``bytes_max`` is refused before all of it is in memory."""
        found = bytearray()
        async for chunk in self.stream():
            found += chunk
            if len(found) > bytes_max:
                raise _too_large(bytes_max)
        self._body = bytes(found)
        return self._body

    async def json(self) -> Any:
        """See ``Request.json``."""
        if not self._is_parsed:
            self._value = await run_in_threadpool(strict_json, await self.body())
            self._is_parsed = True
        return self._value


def _in_a_thread(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """The endpoint as a coroutine that runs it in a thread.

    Of a plain function FastAPI checks the answer in a thread as well, though it is of the right type by then:
    a second change of threads, which costs more than most answers do.
    """
    if inspect.iscoroutinefunction(endpoint):
        return endpoint

    @functools.wraps(endpoint)
    async def run(**values: Any) -> Any:
        caller = values.get("caller")
        if not isinstance(caller, Caller):
            return await run_in_threadpool(endpoint, **values)
        async with caller.service.turns.turn(caller.principal):
            return await run_in_threadpool(endpoint, **values)

    return run


async def _json_body(request: _JsonRequest, *, needs_caller: bool) -> bytes:
    """The JSON body, checked to be readable; empty if the request has another body or none.

    Who asks is known, and the request counted, before any of it is read.
    """
    kind = media_type(request)
    if kind != "application/json" and not kind.endswith("+json"):
        return b""
    if needs_caller:
        await counted_principal(request)
    bytes_max = JSON_BYTES_MAX if needs_caller else ANONYMOUS_JSON_BYTES_MAX
    announced = request.headers.get("content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced[:18]) > bytes_max:
        raise _too_large(bytes_max)
    body = await request.body_within(bytes_max)
    if body:
        await request.json()
    return body


async def _once(request: Request, key: str, body: bytes, inner: Handler) -> Response:
    if not key.isprintable() or not 0 < len(key) <= IDEMPOTENCY_KEY_LENGTH_MAX:
        raise UnreadableRequest(
            "The Idempotency-Key cannot be one.",
            remedy=f"Send 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} printable letters, a UUID for example.",
        )
    answers = service_of(request).answers
    try:
        principal = await run_in_threadpool(authenticate, request)
    except NotAuthenticated:
        return await inner(request)  # which refuses it too, except for sign-in
    identity = RequestIdentity(f"{principal.kind}:{principal.id}", key, _fingerprint(request, body))
    kept = await run_in_threadpool(answers.begin, identity)
    if kept is not None:
        await count_replay(request)
        if kept.body_sha256 and kept.body_sha256 != await _body_sha256(request):
            raise other_request()
        return Response(kept.body, kept.status, {**kept.headers, "Idempotency-Replayed": "true"})
    request.state.identity = identity
    renewal = asyncio.create_task(_renew(answers, identity))
    try:
        answer = await inner(request)
    except BaseException:
        await run_in_threadpool(answers.forget, identity)
        raise
    finally:
        renewal.cancel()
    content = getattr(answer, "body", None)
    if "no-store" in answer.headers.get("cache-control", ""):
        await run_in_threadpool(answers.let_go, identity)
    elif isinstance(content, bytes):
        headers = {name: answer.headers[name] for name in _SENT_AGAIN if name in answer.headers}
        received = getattr(request.state, "body_sha256", "")
        done = StoredResponse(answer.status_code, headers, content, received)
        await run_in_threadpool(answers.finish, identity, done)
    else:
        await run_in_threadpool(answers.forget, identity)
    return answer


async def _body_sha256(request: Request) -> str:
    """The SHA-256 of a body that is read to be compared only; it is at most as long as the first one."""
    digest = hashlib.sha256()
    try:
        async for chunk in request.stream():
            digest.update(chunk)
    except ClientDisconnect:
        raise UnreadableRequest("The connection broke.", remedy="Send the request again.") from None
    return digest.hexdigest()


async def _renew(answers: StoredResponses, identity: RequestIdentity) -> None:
    """Renew the claim on the request while it is being answered; a dead worker no longer renews it."""
    while True:
        await asyncio.sleep(RENEWED_EVERY_SECONDS)
        with suppress(TryAgain):  # the next one may succeed
            await run_in_threadpool(answers.renew, identity)


def _fingerprint(request: Request, body: bytes) -> str:
    digest = hashlib.sha256()
    headers = [request.headers.get(name, "") for name in _IDENTIFYING]
    for part in (request.method, request.url.path, request.url.query, *headers):
        digest.update(len(part).to_bytes(8, "big") + part.encode(errors="replace"))
    digest.update(body)
    return digest.hexdigest()


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"A JSON body has at most {bytes_max:,} bytes here.", remedy="Send less, or send a file.")
