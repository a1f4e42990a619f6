"""The response that sends a log or events for as long as somebody follows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from freezeframe.service.identity.principal import Principal
from freezeframe.service.limits.requests import OpenStreams

# A buffering proxy would hold back the whole stream.
_UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def event_response(
    streams: OpenStreams, principal: Principal, events: AsyncIterator[bytes]
) -> StreamingResponse:
    """A response that sends the events; it counts as open until it has ended.

    Raises:
        RateLimited, TryAgain: as ``OpenStreams.begin``.
    """
    streams.begin(principal)
    return _CountedStream(events, lambda: streams.end(principal))


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
