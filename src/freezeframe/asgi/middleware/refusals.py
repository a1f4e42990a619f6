"""Refuses from memory what limits have just refused, to those who ask again and again.

A refusal by a limit costs nearly what an answer costs: who asks is looked up, names are resolved, jobs or
bytes are counted. Who ignores refusals is answered before all of that, so that others get the time. Nothing
is let in that a limit would refuse, and nobody is refused for what another has asked.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.asgi.middleware.request_guard import request_id
from freezeframe.asgi.problems import problem_response
from freezeframe.errors import RateLimited
from freezeframe.observation import note

REFUSALS_MAX = 10
SECONDS = 1.0
_STATUSES = frozenset({413, 429})
_CALLERS_MAX = 1_000
_OPERATIONS_MAX = 1_000
_CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"cookie"})


@dataclass(slots=True)
class _Caller:
    """The newest refusals of one credential, and until when an operation of it is not looked at again."""

    principal: str
    newest: deque[float] = field(default_factory=lambda: deque(maxlen=REFUSALS_MAX))
    until: dict[tuple[str, str], tuple[float, Any]] = field(default_factory=dict)

    def insists(self, now: float) -> bool:
        return len(self.newest) == REFUSALS_MAX and self.newest[0] > now - SECONDS


class Refusals:
    """Middleware with the refusals of this worker, by credential and by method and path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._callers: OrderedDict[bytes, _Caller] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        who = _credential(scope) if scope["type"] == "http" else b""
        if not who:
            await self._app(scope, receive, send)
            return
        operation = (scope["method"], scope["path"])
        known = self._callers.get(who)
        if known is not None and known.insists(now := time.monotonic()):
            until, route = known.until.get(operation, (0.0, None))
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

    def _remember(self, who: bytes, operation: tuple[str, str], scope: Scope) -> None:
        principal = scope.get("state", {}).get("principal")
        if principal is None:
            return  # refused before it was known who asks
        now = time.monotonic()
        known = self._callers.setdefault(who, _Caller(f"{principal.kind}:{principal.id}"))
        self._callers.move_to_end(who)
        if len(self._callers) > _CALLERS_MAX:
            self._callers.popitem(last=False)
        if len(known.until) >= _OPERATIONS_MAX:
            known.until = {one: kept for one, kept in known.until.items() if kept[0] > now}
        known.newest.append(now)
        if len(known.until) < _OPERATIONS_MAX:
            known.until[operation] = (now + SECONDS, scope.get("route"))


def _credential(scope: Scope) -> bytes:
    """A digest of what the request proves its caller with; empty without any."""
    found = [value for name, value in scope["headers"] if name in _CREDENTIALS]
    return hashlib.blake2b(b"\n".join(found), digest_size=16).digest() if found else b""


def _refusal() -> RateLimited:
    return RateLimited(
        f"This was refused a moment ago, and {REFUSALS_MAX} requests or more within a second.",
        cause="What a limit has refused is not looked at again within a second for who asks on at that rate.",
        remedy="Ask again in a second, or when the refusals before said.",
        retry_after_seconds=1,
    )
