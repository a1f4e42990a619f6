"""An entry of the audit, what it is about, and how entries are filtered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from freezeframe.service.base.timestamps import rfc3339


@dataclass(frozen=True, slots=True)
class AuditPlace:
    """What an entry is about: a tenant of an environment, or the service where both are empty."""

    environment: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done; ``hash`` is made of all other fields and of the hash of the entry before."""

    number: int
    environment: str
    tenant: str
    moment_ms: int
    principal: str
    action: str
    subject: str
    request_id: str
    details: str
    hash: str

    def to_record(self) -> dict[str, Any]:
        """All fields but the hash, by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "hash"}

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON: the time is RFC 3339, the details are an object."""
        return {
            "number": self.number,
            "moment": rfc3339(self.moment_ms),
            "principal": self.principal,
            "action": self.action,
            "subject": self.subject,
            "request_id": self.request_id,
            "details": json.loads(self.details),
            "hash": self.hash,
        }


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter of entries: each given field must match.

    ``principal`` is any part of who asked (``key:0a1b``, a name); moments are milliseconds since 1970,
    ``until_ms`` is not included.
    """

    action: str | None = None
    subject: str | None = None
    principal: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AuditProof:
    """Result of a verification; ``broken_at`` is the first entry that differs, with the reason.

    ``entries`` is how many were looked at, ``logged`` how many lines of the log were compared;
    ``head_number`` and ``head_hash`` are of the newest entry, None and empty where there is none.
    """

    broken_at: int | None
    reason: str
    entries: int
    logged: int
    head_number: int | None
    head_hash: str

    @property
    def is_whole(self) -> bool:
        """Whether every entry is there as it was written, up to the newest that the log knows."""
        return self.broken_at is None
