"""How many requests of one principal a worker carries out at once; further ones wait for their turn.

A worker has a fixed number of threads. Without this limit, one key's slow requests could hold all of them,
and everybody's quick ones would wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from freezeframe.errors import RateLimited
from freezeframe.service.identity.principal import Principal

_WAITING_TIMES = 10
_RETRY_SECONDS = 1


@dataclass(slots=True)
class _Line:
    """The requests of one principal: those that are carried out, and those that wait."""

    free: asyncio.Semaphore
    number: int = 0


class Turns:
    """The turns of one worker, for its one event loop; ``at_once`` of each principal, 0 is no limit."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lines: dict[tuple[str, str], _Line] = {}

    @asynccontextmanager
    async def turn(self, principal: Principal) -> AsyncIterator[None]:
        """A ``with`` block for one request; it is entered when fewer than ``at_once`` of the principal's are.

        Raises:
            RateLimited: ten times as many wait already.
        """
        if not self._at_once:
            yield
            return
        who = (principal.kind, principal.id)
        line = self._lines.setdefault(who, _Line(asyncio.Semaphore(self._at_once)))
        if line.number >= self._at_once * (1 + _WAITING_TIMES):
            raise self._refusal(principal)
        line.number += 1
        try:
            async with line.free:
                yield
        finally:
            line.number -= 1
            if not line.number:
                self._lines.pop(who, None)

    def _refusal(self, principal: Principal) -> RateLimited:
        return RateLimited(
            f"{self._at_once * _WAITING_TIMES} requests of this {principal.kind} wait already.",
            cause=f"A worker carries out {self._at_once} of one key or person at once"
            " (service_requests_at_once_per_principal).",
            remedy=f"Ask again in {_RETRY_SECONDS} second.",
            retry_after_seconds=_RETRY_SECONDS,
        )
