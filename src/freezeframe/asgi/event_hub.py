"""Event hub: one task polls a store for all followers in this process.

It looks once a second, while somebody follows and for a little longer: a page that is left for another one
lets go and takes hold again. Each follower has a short queue; one that does not
take its events is told to read everything anew, so that nobody holds up the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi.concurrency import run_in_threadpool

from freezeframe.errors import FreezeframeError
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.identity.principal import Principal
from freezeframe.service.overview.watch import Event, Watch

_LOOKED_EVERY_SECONDS = 1.0
_IDLE_LOOKS_MAX = 30
_WAITING_MAX = 200
_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Follower:
    """A follower of one environment's events; ``tenants`` are watched for new versions.

    ``unseen`` are those whose version it was not told yet. An event of None means that some were lost.
    """

    principal: Principal
    environment: EnvironmentName
    tenants: frozenset[TenantId]
    waiting: asyncio.Queue[Event | None] = field(default_factory=lambda: asyncio.Queue(_WAITING_MAX))
    unseen: set[TenantId] = field(init=False)

    def __post_init__(self) -> None:
        self.unseen = set(self.tenants)

    def tell(self, event: Event) -> None:
        """Queue an event, if the follower may see it."""
        if event.environment != self.environment or not event.is_for(self.principal):
            return
        if self.waiting.full():
            while not self.waiting.empty():
                self.waiting.get_nowait()
            self.waiting.put_nowait(None)
        else:
            self.waiting.put_nowait(event)

    async def next_told(self, ending: asyncio.Future[bool], seconds: float) -> tuple[Event | None, ...]:
        """The next event; empty if none came within ``seconds``, or before ``ending`` was done."""
        taking = asyncio.ensure_future(self.waiting.get())
        try:
            either: set[asyncio.Future[Any]] = {taking, ending}
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return (taking.result(),) if taking.done() else ()
        finally:
            taking.cancel()  # also if the page went away meanwhile, because nothing else would cancel it

    def lose(self) -> None:
        """Tell the follower that events were lost, so that it reads everything again."""
        if not self.waiting.full():
            self.waiting.put_nowait(None)


class EventHub:
    """The followers of one process; for its one event loop."""

    def __init__(self, watch: Watch, look_seconds: float = _LOOKED_EVERY_SECONDS) -> None:
        self._watch, self._look_seconds = watch, look_seconds
        self._followers: set[Follower] = set()
        self._task: asyncio.Task[None] | None = None
        self._has_looked = asyncio.Event()

    @asynccontextmanager
    async def follow(self, follower: Follower) -> AsyncIterator[None]:
        """Deliver all further events to the follower until the block ends."""
        self._followers.add(follower)
        try:
            if self._task is None or self._task.done():
                self._has_looked.clear()
                self._task = asyncio.create_task(self._look())
            await self._has_looked.wait()
            yield
        finally:
            self._followers.discard(follower)

    async def _look(self) -> None:
        is_blind, idle = False, 0
        while idle < _IDLE_LOOKS_MAX:
            idle = 0 if self._followers else idle + 1
            try:
                events = await run_in_threadpool(self._watch.look, self._watched_tenants())
            except Exception as error:
                if not is_blind:
                    is_foreseen = isinstance(error, FreezeframeError)
                    _logger.warning("Events cannot be told: %s", error, exc_info=not is_foreseen)
                is_blind = True
            else:
                for follower in tuple(self._followers):
                    # Events during the outage are lost, so followers must read everything again.
                    if is_blind:
                        follower.lose()
                    for event in dict.fromkeys((*events, *self._greeting(follower))):
                        follower.tell(event)
                is_blind = False
            self._has_looked.set()
            await asyncio.sleep(self._look_seconds)

    def _greeting(self, follower: Follower) -> list[Event]:
        """The newest versions of the follower's tenants, which it compares with what it read before.

        It is what a look has found that watches them. Read at another moment, a version that came between
        the two would be told to nobody.
        """
        seen = [self._watch.version(follower.environment, tenant) for tenant in sorted(follower.unseen)]
        found = [item for item in seen if item is not None]
        follower.unseen.difference_update(item.tenant for item in found)
        return list(found)

    def _watched_tenants(self) -> dict[EnvironmentName, set[TenantId]]:
        wanted: dict[EnvironmentName, set[TenantId]] = {}
        for follower in self._followers:
            wanted.setdefault(follower.environment, set()).update(follower.tenants)
        return wanted
