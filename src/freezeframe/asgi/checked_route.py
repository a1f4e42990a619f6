"""Routes whose JSON bodies are read strictly, and whose POSTs are carried out once by idempotency key."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from freezeframe.asgi.authentication import authenticated, service_of
from freezeframe.asgi.strict_json import strict_json
from freezeframe.errors import TooLarge, TryAgain, UnreadableRequest
from freezeframe.service.idempotency import RENEWED_EVERY_SECONDS, KeptAnswer, KeptAnswers, RequestIdentity

JSON_BYTES_MAX = 1024 * 1024
IDEMPOTENCY_KEY_LENGTH_MAX = 200
_SENT_AGAIN = ("content-type", "location", "etag")
_IDENTIFYING = ("content-type", "content-length", "content-digest", "if-match", "if-none-match")

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CheckedRoute(APIRoute):
    """A route of the API; its handler sees a body that was read strictly."""

    def get_route_handler(self) -> Handler:
        """See ``APIRoute.get_route_handler``."""
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            body = await _json_body(request)
            key = request.headers.get("idempotency-key")
            if request.method != "POST" or key is None:
                return await inner(request)
            return await _once(request, key, body, inner)

        return handle


async def _json_body(request: Request) -> bytes:
    """The JSON body, proved to be readable; empty where the request has another body or none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        return b""
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > JSON_BYTES_MAX:
        raise _too_large()
    body = await request.body()
    if len(body) > JSON_BYTES_MAX:
        raise _too_large()
    if body:
        strict_json(body)
    return body


async def _once(request: Request, key: str, body: bytes, inner: Handler) -> Response:
    if not key.isprintable() or not 0 < len(key) <= IDEMPOTENCY_KEY_LENGTH_MAX:
        raise UnreadableRequest(
            "The Idempotency-Key cannot be one.",
            remedy=f"Send 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} printable letters, a UUID for example.",
        )
    answers = service_of(request).answers
    principal = await run_in_threadpool(authenticated, request)
    identity = RequestIdentity(f"{principal.kind}:{principal.id}", key, _fingerprint(request, body))
    kept = await run_in_threadpool(answers.begin, identity)
    if kept is not None:
        return Response(kept.body, kept.status, {**kept.headers, "Idempotency-Replayed": "true"})
    renewal = asyncio.create_task(_renewed(answers, identity))
    try:
        answer = await inner(request)
    except BaseException:
        await run_in_threadpool(answers.forget, identity)
        raise
    finally:
        renewal.cancel()
    content = getattr(answer, "body", None)
    if isinstance(content, bytes):
        headers = {name: answer.headers[name] for name in _SENT_AGAIN if name in answer.headers}
        await run_in_threadpool(answers.finish, identity, KeptAnswer(answer.status_code, headers, content))
    else:
        await run_in_threadpool(answers.forget, identity)
    return answer


async def _renewed(answers: KeptAnswers, identity: RequestIdentity) -> None:
    """Say again and again that the request is being answered; who dies says it no more."""
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


def _too_large() -> TooLarge:
    return TooLarge(f"A JSON body has at most {JSON_BYTES_MAX:,} bytes.", remedy="Send less, or send a file.")
