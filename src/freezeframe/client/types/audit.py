"""What the service says and is told of audit.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class AuditEntry(TypedDict):
    """One thing that was done; ``hash`` is of all the rest, with the hash of the entry before."""

    number: int
    moment: str
    principal: str
    action: str
    subject: str
    request_id: str
    details: dict[str, Any]
    previous_hash: str
    hash: str


class AuditPage(TypedDict):
    """Entries, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditProof(TypedDict):
    """Whether the chain is whole."""

    is_whole: bool
    broken_at: int | None
    reason: str
    entries: int
    heads: int
    head_number: int | None
    head_hash: str


class Problem(TypedDict):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    cause: str
    remedy: str
    request_id: str
    errors: NotRequired[list[dict[str, Any]] | None]
