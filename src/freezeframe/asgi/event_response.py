"""The response that sends a log or events for as long as somebody follows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter
from starlette.types import Receive, Scope, Send

from freezeframe.service.identity.principal import Principal
from freezeframe.service.limits.requests import OpenStreams

# A buffering proxy would hold back the whole stream.
_UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def events_to_openapi(**messages: Any) -> dict[str, Any]:
    """The 200 of a stream: its messages by event; a type whose JSON is the data, or None for plain text.

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
    """A response that sends the events; it counts as open until it has ended."""
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
