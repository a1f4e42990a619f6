"""Bodies that are announced as too long are refused with a problem, as all else is.

The framework looks at Content-Length itself, outside of everything, and answers in plain text.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.asgi.problems import problem_response
from freezeframe.asgi.request_guard import request_id
from freezeframe.errors import TooLarge

_PLAIN = (b"content-type", b"text/plain; charset=utf-8")
_STATUS = 413


class AnnouncedLength:
    """Stands around the framework's own limit, and gives its refusal our form."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_replaced = False

        async def tell(message: Message) -> None:
            nonlocal is_replaced
            is_start = message["type"] == "http.response.start"
            if is_start and message["status"] == _STATUS and _PLAIN in message["headers"]:
                is_replaced = True
                error = TooLarge(
                    "The body is too large.",
                    cause="Its Content-Length is more than the service takes at once.",
                    remedy="Send less, or use a resumable upload.",
                )
                known = request_id(scope)
                answer = problem_response(error, known)
                answer.headers["x-request-id"] = known
                await answer(scope, receive, send)
            elif not is_replaced:
                await send(message)

        await self._app(scope, receive, tell)
