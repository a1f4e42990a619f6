"""Counts the bytes of request and response bodies for the tenant that the route resolves.

It is there only where a quota of bytes is set: without one no request pays for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freezeframe.asgi.middleware.request_guard import request_id
from freezeframe.asgi.problems import problem_response
from freezeframe.errors import RateLimited
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.limits.byte_quotas import ByteQuotas, Way

_SPENT_EVERY_BYTES = 4 * 1024 * 1024
_TRANSFER = "freezeframe.transfer"
_ERRORS_FROM = 400
_LENGTH = re.compile(rb"[0-9]{1,18}")


class Transfer:
    """Uncounted bytes of one request; the tenant is None until the route resolves it.

    What it announces is counted before it is moved: ``_reserved`` is what of that has not been moved.
    """

    def __init__(self, quotas: ByteQuotas, announced_bytes: int | None) -> None:
        self._quotas = quotas
        self._announced_bytes = announced_bytes
        self._waiting: dict[Way, int] = {"upload": 0, "download": 0}
        self._reserved: dict[Way, int] = {"upload": 0, "download": 0}
        self.tenant: tuple[EnvironmentName, TenantId] | None = None

    async def begin(self, environment: EnvironmentName, tenant: TenantId) -> None:
        """Set the tenant that the request's bytes count for.

        Raises:
            RateLimited: the tenant has used a quota up.
        """
        self._quotas.require_left(environment, tenant)
        self.tenant = environment, tenant
        await self.reserve("upload", self._announced_bytes or 0)

    async def reserve(self, way: Way, size: int) -> None:
        """Count announced bytes before they are moved; bytes that were moved already are a part of them.

        Raises:
            RateLimited: the tenant has used the quota up.
        """
        if self.tenant is None:
            return
        await self._count(way, size, reserves=True)
        moved, self._waiting[way] = self._waiting[way], 0
        self._reserved[way] = size
        await self.count_bytes(way, moved)

    async def count_bytes(self, way: Way, size: int) -> None:
        """Note moved bytes; from time to time those that were not announced are counted.

        Raises:
            RateLimited: the length of a body is not announced, and the quota was used up before these bytes.
        """
        covered = min(size, self._reserved[way])
        self._reserved[way] -= covered
        if way == "upload" and self._announced_bytes is None and self.tenant is not None:
            await self._count(way, size, reserves=True)
            return
        self._waiting[way] += size - covered
        if self._waiting[way] >= _SPENT_EVERY_BYTES:
            await self.spend()

    async def spend(self) -> None:
        """Count all moved bytes that are not counted yet."""
        for way, size in self._waiting.items():
            self._waiting[way] = 0
            await self._count(way, size, reserves=False)

    async def _count(self, way: Way, size: int, *, reserves: bool) -> None:
        if self.tenant is None:
            return
        if not self._quotas.spend_at_once(way, self.tenant, size, reserves=reserves):
            await run_in_threadpool(self._quotas.spend, way, self.tenant, size, reserves=reserves)


class ByteCounts:
    """Middleware that counts the bytes of request and response bodies."""

    def __init__(self, app: ASGIApp, quotas: ByteQuotas) -> None:
        self._app = app
        self._quotas = quotas

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        transfer = scope[_TRANSFER] = Transfer(self._quotas, announced_length(scope["headers"]))
        is_refused = False

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                await transfer.count_bytes("upload", len(message.get("body", b"")))
            return message

        async def sent(message: Message) -> None:
            nonlocal is_refused
            if is_refused:
                return
            # A completed change is answered in any case.
            is_start = message["type"] == "http.response.start"
            if is_start and scope["method"] == "GET" and message["status"] < _ERRORS_FROM:
                try:
                    await transfer.reserve("download", announced_length(message["headers"]) or 0)
                except RateLimited as error:
                    is_refused = True
                    await problem_response(error, request_id(scope))(scope, receive, send)
                    return
            if message["type"] == "http.response.body":
                await transfer.count_bytes("download", len(message.get("body", b"")))
                if not message.get("more_body"):
                    # Before the caller sees the end, so that its next request is checked against all of it.
                    await transfer.spend()
            await send(message)

        try:
            await self._app(scope, received, sent)
        finally:
            await transfer.spend()


def announced_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The value of Content-Length; None without one. An invalid one is refused elsewhere."""
    found = next((value for name, value in headers if name.lower() == b"content-length"), None)
    return int(found) if found is not None and _LENGTH.fullmatch(found) else None


async def begin_transfer(request: Request, environment: EnvironmentName, tenant: TenantId) -> None:
    """Count the request's bytes for a tenant, if there is a quota of bytes.

    Raises:
        RateLimited: the tenant has used a quota up.
    """
    transfer: Transfer | None = request.scope.get(_TRANSFER)
    if transfer is not None:
        await transfer.begin(environment, tenant)
