"""Limits the open streaming responses (logs, events) of a process, in all and for each principal."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from freezeframe.errors import RateLimited, TryAgain
from freezeframe.service.identity.principal import Principal

_RETRY_SECONDS = 30
# A buffering proxy would hold back the whole stream.
_UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class OpenStreams:
    """The event streams that this process is sending, by principal."""

    def __init__(self, streams_max: int, per_principal_max: int) -> None:
        self._streams_max = streams_max
        self._per_principal_max = per_principal_max
        self._lock = threading.Lock()
        self._open: Counter[tuple[str, str]] = Counter()

    def answer(self, principal: Principal, events: AsyncIterator[bytes]) -> StreamingResponse:
        """A response that sends the events; it counts as open until it has ended.

        Raises:
            RateLimited: the principal has as many open as it may.
            TryAgain: the process has.
        """
        who = (principal.kind, principal.id)
        with self._lock:
            if self._open[who] >= self._per_principal_max:
                raise RateLimited(
                    f"This {principal.kind} follows {self._open[who]} logs and streams of events already.",
                    cause="A process sends no more to one (service_streams_per_principal_max).",
                    remedy=f"End one of them, or ask again in {_RETRY_SECONDS} seconds.",
                    retry_after_seconds=_RETRY_SECONDS,
                )
            if self._open.total() >= self._streams_max:
                raise TryAgain(
                    "Too many follow the service's logs and events.",
                    cause=f"One process sends at most {self._streams_max} (service_streams_max).",
                    remedy=f"Ask again in {_RETRY_SECONDS} seconds, and read what is wanted meanwhile.",
                    retry_after_seconds=_RETRY_SECONDS,
                )
            self._open[who] += 1
        return _CountedStream(events, lambda: self._end(who))

    def _end(self, who: tuple[str, str]) -> None:
        with self._lock:
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]


class _CountedStream(StreamingResponse):
    """A stream of events that says when it has ended, however that came."""

    def __init__(self, events: AsyncIterator[bytes], on_end: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=_UNBUFFERED)
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ``StreamingResponse``."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()
