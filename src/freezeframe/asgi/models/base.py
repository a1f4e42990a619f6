"""Base of all models, and problems."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict

# The base of all models: unknown members are refused.


class ResponseModel(BaseModel):
    """Something that the service says."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def of(cls, found: object, **others: Any) -> Self:
        """A model from the attributes of ``found``; ``others`` are the fields that it lacks."""
        if not others:
            return cls.model_validate(found)
        names = cls.model_fields.keys() - others.keys()
        return cls.model_validate({name: getattr(found, name) for name in names} | others)


class RequestModel(BaseModel):
    """Something that the service is told; a member it does not know is refused, for it may be a slip."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def example(**members: Any) -> dict[str, Any]:
    """One example, as a model's configuration takes it."""
    return {"examples": [members]}


# The answer to a request that could not be carried out.


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
