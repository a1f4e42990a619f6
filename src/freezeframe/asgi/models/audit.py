"""The audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from freezeframe.asgi.models.base import ResponseModel


class AuditEntry(ResponseModel):
    """One thing that was done; `hash` is of all the rest, with the hash of the entry before."""

    number: int
    moment: datetime
    principal: str
    action: str
    subject: str
    request_id: str
    details: dict[str, Any]
    hash: str


class AuditPage(ResponseModel):
    """Entries, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditProof(ResponseModel):
    """Whether the audit is whole."""

    is_whole: bool
    broken_at: int | None = Field(description="The first entry that is not as it was written.")
    reason: str = Field(description="What is wrong with it; empty where the audit is whole.")
    entries: int = Field(description="How many entries were looked at.")
    logged: int = Field(description="How many lines of the log were compared; the service compares none.")
    head_number: int | None = Field(description="The newest entry; null where there is none.")
    head_hash: str
