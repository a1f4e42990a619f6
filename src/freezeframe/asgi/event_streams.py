"""Server-sent events: what changes in a store, who follows it, and the response that sends it.

One task of a process polls the store for all followers, once a second while anyone follows and some seconds
longer. It asks the queue for jobs that may have changed, and looks at the end of the log of each watched
tenant and of the registry. Each follower has a short queue; one that overflows is emptied, and the follower
is told to read everything again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter
from starlette.types import Receive, Scope, Send

from freezeframe.control.job import JobStatus
from freezeframe.control.queue import JobFeed
from freezeframe.errors import FixTheRequest, FreezeframeError, ReportDamage
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.access.access import Stores
from freezeframe.service.access.keys import Principal
from freezeframe.service.limits import OpenStreams

_ALL = 2**62


@dataclass(frozen=True, slots=True)
class JobEvent:
    """A job whose status changed."""

    environment: EnvironmentName
    tenant: TenantId
    job_id: str
    status: JobStatus

    def is_for(self, principal: Principal) -> bool:
        """Return whether the principal may see it."""
        return principal.may("jobs:read") and principal.sees(self.environment, self.tenant)


@dataclass(frozen=True, slots=True)
class VersionEvent:
    """A watched tenant that has a new version."""

    environment: EnvironmentName
    tenant: TenantId
    version: int

    def is_for(self, principal: Principal) -> bool:
        """Return whether the principal may see it."""
        return principal.may("snapshots:read") and principal.sees(self.environment, self.tenant)


@dataclass(frozen=True, slots=True)
class TenantsEvent:
    """An environment in which tenants were created or deleted."""

    environment: EnvironmentName
    names: frozenset[TenantId]

    def is_for(self, principal: Principal) -> bool:
        """Return whether the principal may see one of them."""
        return principal.may("tenants:read") and any(
            principal.sees(self.environment, name) for name in self.names
        )


Event = JobEvent | VersionEvent | TenantsEvent


class Watch:
    """Polls one store; for one thread at a time."""

    def __init__(self, stores: Stores, feed: JobFeed) -> None:
        self._stores = stores
        self._feed = feed
        self._versions: dict[tuple[EnvironmentName, TenantId], int | None] = {}
        self._names: dict[EnvironmentName, tuple[str, ...]] = {}

    def look(self, watched: Mapping[EnvironmentName, Collection[TenantId]]) -> list[Event]:
        """Events since the previous call: jobs of all tenants, and versions of the watched tenants.

        A tenant that was not watched before has no event; ``version`` returns its version from now on.
        """
        found: list[Event] = [
            JobEvent(EnvironmentName(item.environment), TenantId(item.tenant), item.job_id, item.status)
            for item in self._feed.look()
        ]
        versions, names = self._versions, self._names
        self._names = {item: self._stores.environment(item).tenants(limit=_ALL) for item in watched}
        self._versions = {
            (environment, tenant): self._version(environment, tenant)
            for environment, tenants in watched.items()
            for tenant in tenants
        }
        for place, version in self._versions.items():
            if version is not None and version != versions.get(place, version):
                found.append(VersionEvent(*place, version))
        for environment, now in self._names.items():
            if now != (before := names.get(environment, now)):
                found.append(TenantsEvent(environment, frozenset(map(TenantId, set(now) ^ set(before)))))
        return found

    def version(self, environment: EnvironmentName, tenant: TenantId) -> VersionEvent | None:
        """Return the version that the last look found; None if the tenant was not watched or is missing."""
        found = self._versions.get((environment, tenant))
        return None if found is None else VersionEvent(environment, tenant, found)

    def _version(self, environment: EnvironmentName, tenant: TenantId) -> int | None:
        try:
            return self._stores.environment(environment).tenant(tenant).version
        except (FixTheRequest, ReportDamage):
            return None  # missing or damaged, which is reported when it is opened


_LOOKED_EVERY_SECONDS = 1.0
_IDLE_LOOKS_MAX = 30
_WAITING_MAX = 200
_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Follower:
    """A follower of one environment's events; ``tenants`` are watched for new versions.

    ``unseen`` are the tenants whose version was not sent yet. An event of None means that events were lost.
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

    async def next_event(self, ending: asyncio.Future[bool], seconds: float) -> tuple[Event | None, ...]:
        """Return the next event; empty if none came within ``seconds``, or before ``ending`` was done."""
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
                    _logger.warning("Events cannot be read: %s", error, exc_info=not is_foreseen)
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
        """Return the newest versions of the tenants, for the follower to compare with what it read before.

        They come from the same look as the events. Read at another moment, a version that came between
        the two would be lost.
        """
        seen = [self._watch.version(follower.environment, tenant) for tenant in sorted(follower.unseen)]
        found = [item for item in seen if item is not None]
        follower.unseen.difference_update(item.tenant for item in found)
        return list(found)

    def _watched_tenants(self) -> dict[EnvironmentName, set[TenantId]]:
        watched: dict[EnvironmentName, set[TenantId]] = {}
        for follower in self._followers:
            watched.setdefault(follower.environment, set()).update(follower.tenants)
        return watched


# A buffering proxy would hold back the whole stream.
_UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def events_to_openapi(**messages: Any) -> dict[str, Any]:
    """Return the 200 of a stream: for each event the type whose JSON is the data, or None for plain text.

    OpenAPI 3.1 has no word for what a stream consists of: the schema is that of one message.
    """
    return {
        "description": "Server-sent events; the schema is that of one of them.",
        "content": {
            "text/event-stream": {"schema": {"oneOf": [_message(*each) for each in messages.items()]}}
        },
    }


def _message(event: str, data: Any) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string"}
    if data is not None:
        schema = TypeAdapter(data).json_schema()
        text |= {"contentMediaType": "application/json", "contentSchema": schema}
    return {
        "type": "object",
        "title": f"{event.capitalize()}Event",
        "properties": {"event": {"type": "string", "const": event}, "data": text, "id": {"type": "string"}},
        "required": ["event", "data"],
    }


def event_response(
    streams: OpenStreams, principal: Principal, events: AsyncIterator[bytes]
) -> StreamingResponse:
    """Return a response that sends the events; it counts as open until it has ended."""
    streams.begin(principal)
    return _CountedStream(events, lambda: streams.end(principal))


class _CountedStream(StreamingResponse):
    """A stream of events that calls ``on_end`` when it ends, for whatever reason."""

    def __init__(self, events: AsyncIterator[bytes], on_end: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=_UNBUFFERED)
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ``StreamingResponse``."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()
