"""What the service says and is told of health.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class Condition(TypedDict):
    """How the service is, and what is wrong with it; no name of a tenant or place is told."""

    status: Literal["ready", "degraded"]
    reasons: list[str]


class Health(TypedDict):
    """The service answers."""

    status: NotRequired[Literal["ok"]]
