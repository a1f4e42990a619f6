"""Deadline for request bodies: one that stops arriving is ended and its resources are released."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.errors import UnreadableRequest

SILENT_SECONDS = 30.0


class BodyDeadline:
    """Ends a request whose body has stopped arriving before it was complete."""

    def __init__(self, app: ASGIApp, silent_seconds: float = SILENT_SECONDS) -> None:
        self._app = app
        self._silent_seconds = silent_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_whole = scope["type"] != "http"

        async def received() -> Message:
            nonlocal is_whole
            # After the body only the disconnect message follows, which may be waited for.
            seconds = None if is_whole else self._silent_seconds
            try:
                async with asyncio.timeout(seconds):
                    message = await receive()
            except TimeoutError:
                raise UnreadableRequest(
                    "The body stopped before its end.",
                    cause=f"Nothing of it came for {self._silent_seconds:g} seconds.",
                    remedy="Send it again.",
                ) from None
            is_whole = is_whole or not message.get("more_body", False)
            return message

        await self._app(scope, received, send)
