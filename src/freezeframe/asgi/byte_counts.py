"""Counts the bytes of bodies on their way in and out, for the tenant that a route finds out about.

It is there only where a quota of bytes is set: without one no request pays for it.
"""

from __future__ import annotations

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.service.byte_quotas import ByteQuotas, Way

_SPENT_EVERY_BYTES = 4 * 1024 * 1024
_TRANSFER = "freezeframe.transfer"


class Transfer:
    """What one request has moved and nobody has counted yet; the tenant is None until it is known."""

    def __init__(self, quotas: ByteQuotas) -> None:
        self._quotas = quotas
        self._waiting: dict[Way, int] = {"upload": 0, "download": 0}
        self.tenant: tuple[str, str] | None = None

    def begin(self, environment: str, tenant: str) -> None:
        """Say whose request it is.

        Raises:
            RateLimited: the tenant has used a quota up.
        """
        self._quotas.require_left(environment, tenant)
        self.tenant = environment, tenant

    async def moved(self, way: Way, size: int) -> None:
        """Note that bytes were moved; now and then they are counted."""
        self._waiting[way] += size
        if self._waiting[way] >= _SPENT_EVERY_BYTES:
            await self.spend()

    async def spend(self) -> None:
        """Count all that was moved."""
        if self.tenant is None:
            return
        for way, size in self._waiting.items():
            if not self._quotas.spend_at_once(way, size, *self.tenant):
                await run_in_threadpool(self._quotas.spend, way, size, *self.tenant)
            self._waiting[way] = 0


class ByteCounts:
    """Has every request's bodies counted."""

    def __init__(self, app: ASGIApp, quotas: ByteQuotas) -> None:
        self._app = app
        self._quotas = quotas

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        transfer = scope[_TRANSFER] = Transfer(self._quotas)

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                await transfer.moved("upload", len(message.get("body", b"")))
            return message

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.body":
                await transfer.moved("download", len(message.get("body", b"")))
                if not message.get("more_body"):
                    # Before the caller knows of the end: whoever asks next is measured by all of it.
                    await transfer.spend()
            await send(message)

        try:
            await self._app(scope, received, sent)
        finally:
            await transfer.spend()


def begin_transfer(request: Request, environment: str, tenant: str) -> None:
    """Have the request's bytes counted for a tenant, where bytes are counted.

    Raises:
        RateLimited: the tenant has used a quota up.
    """
    transfer: Transfer | None = request.scope.get(_TRANSFER)
    if transfer is not None:
        transfer.begin(environment, tenant)
