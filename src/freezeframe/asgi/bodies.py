"""Bodies of requests: streamed and checked against their digest, base64 or a form, and strict JSON."""

import base64
import binascii
import hashlib
import io
import json
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect

from freezeframe.asgi.caller import service_of
from freezeframe.asgi.problems import media_type
from freezeframe.errors import InvalidOption, TooLarge, UnreadableRequest
from freezeframe.identifiers import FilePath
from freezeframe.store.blobs.blob_store import distinct_members, refuse_constant

# Up to a megabyte of a raw body stays in memory, more is spooled to a temporary file outside of every
# tenant. A client that breaks off, sends less than it announced or something else than its digest says has
# changed nothing.

_IN_MEMORY_BYTES = 1024 * 1024
_DIGEST = re.compile(r"\s*sha-256\s*=\s*:([A-Za-z0-9+/=]*):\s*")
_HEX = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class ReceivedBody:
    """A body that came whole; ``content`` stands at its beginning and is closed after the answer."""

    content: IO[bytes]
    size: int
    sha256: str


async def received_body(request: Request) -> AsyncIterator[ReceivedBody]:
    """Yield the request's raw body, received whole and compared with its digest."""
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
    """Return the SHA-256 that the request announces, in hexadecimal; empty where it announces none."""
    header = request.headers.get("content-digest") or request.headers.get("repr-digest")
    if header is not None:
        ours = [item for item in header.split(",") if item.partition("=")[0].strip().lower() == "sha-256"]
        if not ours:
            return ""  # another algorithm, which may be ignored (RFC 9530)
        found = _DIGEST.fullmatch(ours[0])
        if found is None:
            raise _odd_digest(header)
        try:
            return base64.b64decode(found[1], validate=True).hex()
        except binascii.Error:
            raise _odd_digest(header) from None
    text = request.headers.get("x-content-sha256", "")
    if text and not _HEX.fullmatch(text):
        raise _odd_digest(text)
    return text.lower()


def announced_size(request: Request) -> int | None:
    """Return the Content-Length of a request; None without one."""
    text = request.headers.get("content-length")
    return None if text is None else int(text)  # RequestGuard refuses what is no number


def require_digest(request: Request, found: str) -> None:
    """Refuse a body whose SHA-256 is not the announced one (``UnreadableRequest``)."""
    announced = announced_digest(request)
    if announced and announced != found:
        raise UnreadableRequest(
            "The body does not match its digest.",
            cause=f"Its SHA-256 is {found}, not {announced}.",
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
    """Return the refusal of a body that is shorter than announced, or whose connection broke."""
    expected = "" if announced is None else f" of {announced:,}"
    return UnreadableRequest(
        f"The body ended after {size:,}{expected} bytes.",
        cause="The connection broke, or Content-Length is wrong.",
        remedy="Send it again; nothing was changed.",
    )


def _odd_digest(text: str) -> UnreadableRequest:
    return UnreadableRequest(
        f"{text!r} is not a digest.",
        remedy="Send Content-Digest: sha-256=:<base64>: or x-content-sha256: <64 hexadecimal digits>.",
    )


Received = Annotated[ReceivedBody, Depends(received_body)]


# The work is proportional to the body's length, whatever the body holds.

DEPTH_MAX = 64


def strict_json(content: bytes) -> Any:
    """Return the value in a body."""
    try:
        value = json.loads(
            content.decode(), object_pairs_hook=distinct_members, parse_constant=refuse_constant
        )
    except UnicodeDecodeError:
        raise _unreadable("It is not UTF-8.") from None
    except json.JSONDecodeError as error:
        # Only the place, never the content: the body may hold a secret.
        raise _unreadable(f"It cannot be parsed at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise _unreadable(f"{error}.") from None
    _require_shallow_text(value)
    return value


def _require_shallow_text(value: Any) -> None:
    """Refuse deep nesting and lone surrogates; each value is visited once, level by level."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        if any(_is_broken(item) for item in level if isinstance(item, str)):
            raise _unreadable("A text contains a lone surrogate (half of a UTF-16 character).")
        parts = [item for item in level if isinstance(item, list | dict)]
        if not parts:
            return
        level = [inner for part in parts for inner in part]
        level += [inner for part in parts if isinstance(part, dict) for inner in part.values()]
    raise _too_deep()


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _too_deep() -> UnreadableRequest:
    return _unreadable(f"It is nested more than {DEPTH_MAX} deep.")


def _unreadable(cause: str) -> UnreadableRequest:
    return UnreadableRequest(
        "The body cannot be read as JSON.", cause=cause, remedy="Send one JSON value in UTF-8."
    )


_FIELD = "file"
_FORM_FIELDS_MAX = 20


@dataclass(frozen=True, slots=True)
class NamedBody:
    """A file's name and its bytes, from their beginning."""

    name: FilePath
    content: IO[bytes]
    size: int


async def named_body(
    request: Request,
    file: Annotated[str | None, Query(max_length=800, description="The file's name.")] = None,
) -> AsyncIterator[NamedBody]:
    """Yield the file in an upload's body, which may have any of three forms."""
    kind = media_type(request)
    if kind == "application/json":
        found = await _from_json(request, file)
        yield found
    elif kind == "multipart/form-data":
        async with _from_form(request, file) as found:
            yield found
    else:
        name = _require_path(file)
        async for body in received_body(request):
            yield NamedBody(name, body.content, body.size)


async def json_object(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body."""
    value = await run_in_threadpool(strict_json, await request.body())
    if not isinstance(value, dict):
        raise UnreadableRequest("The body is not a JSON object.", remedy="Send an object.")
    return value


async def _from_json(request: Request, name: str | None) -> NamedBody:
    value = await json_object(request)
    text = value.get("content")
    if not isinstance(text, str) or set(value) - {"file", "content"}:
        raise UnreadableRequest(
            "The body holds no file.",
            cause="It has no text member content, or one that is neither file nor content.",
            remedy='Send {"file": NAME, "content": BASE64}, or the raw bytes.',
        )
    try:
        content = await run_in_threadpool(base64.b64decode, text, validate=True)
    except (binascii.Error, ValueError):
        raise UnreadableRequest(
            "The member content is not base64.",
            cause="It contains characters that are not base64, or its length is wrong.",
            remedy="Encode the file's bytes in base64.",
        ) from None
    _require_size(request, len(content))
    chosen = _require_path(name if name is not None else value.get("file"))
    return NamedBody(chosen, io.BytesIO(content), len(content))


@asynccontextmanager
async def _from_form(request: Request, name: str | None) -> AsyncIterator[NamedBody]:
    try:
        async with request.form(max_files=1, max_fields=_FORM_FIELDS_MAX) as form:
            upload = form.get(_FIELD)
            if not isinstance(upload, UploadFile):
                raise UnreadableRequest("The form holds no file.", remedy=f"Send it in the field {_FIELD!r}.")
            _require_size(request, upload.size or 0)
            chosen = _require_path(name if name is not None else upload.filename)
            yield NamedBody(chosen, upload.file, upload.size or 0)
    except MultiPartException as error:
        raise UnreadableRequest(
            "The form cannot be read.", cause=error.message, remedy="Send it as multipart/form-data."
        ) from None


def _require_path(name: Any) -> FilePath:
    if not isinstance(name, str) or not name:
        raise InvalidOption(
            "The file's name is missing.",
            cause="Neither the query nor the body names it.",
            remedy="Pass it as ?file=NAME.",
        )
    return FilePath(name)


def _require_size(request: Request, size: int) -> None:
    bytes_max = service_of(request).settings.service_body_bytes_max
    if size > bytes_max:
        raise TooLarge(
            f"A file has at most {bytes_max:,} bytes here.",
            cause="That is the service's limit (service_body_bytes_max).",
            remedy="Stage it: POST …/blobs, then name it.",
        )


Named = Annotated[NamedBody, Depends(named_body)]
JsonObject = Annotated[dict[str, Any], Depends(json_object)]
