"""HTTP connections with a deadline for a request's head; the server's own time-out is for idle ones."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 20.0


class ImpatientProtocol(HttpToolsProtocol):
    """Closes a connection whose request head has not arrived by its deadline."""

    head_seconds = HEAD_SECONDS
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        """See ``asyncio.Protocol``; who connects and sends nothing is as late."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """See ``HttpToolsProtocol``: the first byte of a request."""
        self._wait_for_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """See ``HttpToolsProtocol``."""
        self._stop_waiting()
        super().on_headers_complete()

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
