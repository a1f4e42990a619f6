"""The base of all models: unknown members are refused."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict


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
