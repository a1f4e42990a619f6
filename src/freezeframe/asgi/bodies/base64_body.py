"""The body of a hotglue-compatible upload: raw bytes, a multipart field, or base64 in JSON."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException

from freezeframe.asgi.authentication import service_of
from freezeframe.asgi.bodies.received_body import received_body
from freezeframe.asgi.bodies.strict_json import strict_json
from freezeframe.asgi.media_type import media_type
from freezeframe.errors import InvalidOption, TooLarge, UnreadableRequest
from freezeframe.identifiers import FilePath

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
    """The file in an upload's body, which may have any of three forms.

    Raises:
        InvalidOption: no name is given.
        UnreadableRequest: the body is not what it says it is.
        TooLarge: it is larger than the service takes.
    """
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
    """The JSON object in the body.

    Raises:
        UnreadableRequest: it is none.
    """
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
            cause="It has letters, or an end, that base64 does not have.",
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
