"""Refuses from memory what limits have just refused, to those who ask again and again.

A refusal by a limit costs nearly what an answer costs: who asks is looked up, names are resolved, jobs or
bytes are counted. Who ignores refusals is answered before all of that, so that others get the time. Nothing
is let in that a limit would refuse, and nobody is refused for what another has asked.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.asgi.middleware.request_guard import request_id
from freezeframe.asgi.problems import problem_response
from freezeframe.errors import RateLimited
from freezeframe.observation import note

REFUSALS_MAX = 10
SECONDS = 1.0
_STATUSES = frozenset({413, 429})
_CALLERS_MAX = 1_000
_REFUSED_MAX = 10_000


@dataclass(slots=True)
class _Caller:
    """The newest refusals of one credential."""

    principal: str
    newest: deque[float] = field(default_factory=lambda: deque(maxlen=REFUSALS_MAX))

    def insists(self, now: float) -> bool:
        return len(self.newest) == REFUSALS_MAX and self.newest[0] > now - SECONDS


class Refusals:
    """Middleware with the refusals of this worker, by credential and by method and path.

    ``credential_of`` tells what a request proves its caller with; an empty text: nothing.
    """

    def __init__(self, app: ASGIApp, credential_of: Callable[[Request], str]) -> None:
        self._app = app
        self._credential_of = credential_of
        self._callers: OrderedDict[bytes, _Caller] = OrderedDict()
        self._refused: OrderedDict[bytes, tuple[float, Any]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        credential = self._credential_of(Request(scope)) if scope["type"] == "http" else ""
        if not credential:
            await self._app(scope, receive, send)
            return
        who = _digest(credential.encode())
        operation = _digest(who, scope["method"].encode(), scope["path"].encode(errors="backslashreplace"))
        known = self._callers.get(who)
        if known is not None and known.insists(now := time.monotonic()):
            until, route = self._refused.get(operation, (0.0, None))
            if until > now:
                known.newest.append(now)
                scope["route"] = route
                note(principal=known.principal)
                await problem_response(_refusal(), request_id(scope))(scope, receive, send)
                return

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _STATUSES:
                self._remember(who, operation, scope)
            await send(message)

        await self._app(scope, receive, tell)

    def _remember(self, who: bytes, operation: bytes, scope: Scope) -> None:
        principal = scope.get("state", {}).get("principal")
        if principal is None:
            return  # refused before it was known who asks
        now = time.monotonic()
        known = self._callers.setdefault(who, _Caller(f"{principal.kind}:{principal.id}"))
        self._callers.move_to_end(who)
        known.newest.append(now)
        self._refused[operation] = (now + SECONDS, scope.get("route"))
        self._refused.move_to_end(operation)
        for kept, most in ((self._callers, _CALLERS_MAX), (self._refused, _REFUSED_MAX)):
            if len(kept) > most:
                kept.popitem(last=False)


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\n".join(parts), digest_size=16).digest()


def _refusal() -> RateLimited:
    return RateLimited(
        f"This was refused a moment ago, and {REFUSALS_MAX} requests or more within a second.",
        cause="What a limit has refused is not looked at again within a second for who asks on at that rate.",
        remedy="Ask again in a second, or when the refusals before said.",
        retry_after_seconds=1,
    )
