"""Raw request bodies: received whole and checked before the operation begins.

Up to a megabyte stays in memory, more is spooled to a temporary file outside of every tenant. A client
that breaks off, sends less than it announced or something else than its digest says has changed nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import IO, Annotated

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from freezeframe.asgi.authentication import service_of
from freezeframe.errors import TooLarge, UnreadableRequest

_IN_MEMORY_BYTES = 1024 * 1024
_DIGEST = re.compile(r"\s*sha-256\s*=\s*:([A-Za-z0-9+/=]*):\s*")
_LENGTH = re.compile(r"[0-9]{1,18}")
_HEX = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class ReceivedBody:
    """A body that came whole; ``content`` stands at its beginning and is closed after the answer."""

    content: IO[bytes]
    size: int
    sha256: str


async def received_body(request: Request) -> AsyncIterator[ReceivedBody]:
    """The request's raw body, received whole and compared with its digest.

    Raises:
        TooLarge: it is larger than ``service_body_bytes_max``.
        UnreadableRequest: it is shorter than announced, or its SHA-256 is another one.
    """
    bytes_max = service_of(request).settings.service_body_bytes_max
    announced = announced_size(request)
    if announced is not None and announced > bytes_max:
        raise _too_large(bytes_max)
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as content:
        digest, size = hashlib.sha256(), 0
        try:
            async for chunk in request.stream():
                size += len(chunk)
                if size > bytes_max:
                    raise _too_large(bytes_max)
                digest.update(chunk)
                content.write(chunk)
        except ClientDisconnect:
            raise truncated_body(size, announced) from None
        if announced is not None and size != announced:
            raise truncated_body(size, announced)
        require_digest(request, digest.hexdigest())
        content.seek(0)
        yield ReceivedBody(content, size, digest.hexdigest())


def announced_digest(request: Request) -> str:
    """The SHA-256 that the request announces, in hexadecimal; empty where it announces none.

    Raises:
        UnreadableRequest: it announces something that cannot be one.
    """
    header = request.headers.get("content-digest") or request.headers.get("repr-digest")
    if header is not None:
        found = next(filter(None, map(_DIGEST.fullmatch, header.split(","))), None)
        if found is None:
            return ""  # another algorithm, which may be ignored (RFC 9530)
        try:
            return base64.b64decode(found[1], validate=True).hex()
        except binascii.Error:
            raise _odd_digest(header) from None
    text = request.headers.get("x-content-sha256", "")
    if text and not _HEX.fullmatch(text):
        raise _odd_digest(text)
    return text.lower()


def announced_size(request: Request) -> int | None:
    """The Content-Length of a request; None without one.

    Raises:
        UnreadableRequest: it is not a number.
    """
    text = request.headers.get("content-length")
    if text is None:
        return None
    if not _LENGTH.fullmatch(text):
        raise UnreadableRequest("Content-Length is not a number.", remedy="Send the length in bytes.")
    return int(text)


def require_digest(request: Request, found: str) -> None:
    """Refuse a body whose SHA-256 is not the announced one (``UnreadableRequest``)."""
    wanted = announced_digest(request)
    if wanted and wanted != found:
        raise UnreadableRequest(
            "The body is not the announced one.",
            cause=f"Its SHA-256 is {found}, not {wanted}.",
            remedy="Send it again; nothing was changed.",
        )


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(
        f"A body has at most {bytes_max:,} bytes.",
        cause="That is the service's limit (service_body_bytes_max).",
        remedy="Stage it: POST …/blobs, then name it.",
        bytes_max=bytes_max,
    )


def truncated_body(size: int, announced: int | None) -> UnreadableRequest:
    """The refusal of a body that is shorter than announced, or whose connection broke."""
    told = "" if announced is None else f" of {announced:,}"
    return UnreadableRequest(
        f"The body ended after {size:,}{told} bytes.",
        cause="The connection broke, or Content-Length is wrong.",
        remedy="Send it again; nothing was changed.",
    )


def _odd_digest(text: str) -> UnreadableRequest:
    return UnreadableRequest(
        f"{text!r} is not a digest.",
        remedy="Send Content-Digest: sha-256=:<base64>: or x-content-sha256: <64 hexadecimal digits>.",
    )


Received = Annotated[ReceivedBody, Depends(received_body)]
