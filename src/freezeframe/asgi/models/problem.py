"""The answer to a request that could not be carried out."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from freezeframe.asgi.models.base import ResponseModel, example


class Problem(ResponseModel):
    """A problem document (RFC 9457); `type` and `code` are stable and listed in the reference of errors."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=example(
            type="urn:freezeframe:error:STREAM_NOT_FOUND",
            title="There is no stream 'Acount'.",
            status=404,
            detail="Check the name.",
            code="STREAM_NOT_FOUND",
            cause="",
            remedy="Check the name.",
            request_id="4f1c",
        ),
    )

    type: str
    title: str
    status: int
    detail: str
    code: str
    cause: str
    remedy: str
    request_id: str
    errors: list[dict[str, Any]] | None = None
