"""Rows and bytes of a tenant over its versions."""

from __future__ import annotations

from datetime import datetime

from freezeframe.asgi.models.base import Answer


class GrowthPoint(Answer):
    """A version of the tenant, and what it held."""

    version: int
    timestamp: datetime
    rows: int
    stream_bytes: int
    file_bytes: int


class Growth(Answer):
    """The newest versions that are kept, the oldest first."""

    points: list[GrowthPoint]
