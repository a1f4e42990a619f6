"""What all models share: a body has no members but those that are named."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """Something that the service says."""

    model_config = ConfigDict(frozen=True)


class Order(BaseModel):
    """Something that the service is told; a member it does not know is refused, for it may be a slip."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def example(**members: Any) -> dict[str, Any]:
    """One example, as a model's configuration takes it."""
    return {"examples": [members]}
