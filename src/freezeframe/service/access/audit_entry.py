"""An entry of the audit, the chain that it belongs to, and the keys that sign it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from freezeframe.service.base.secret import ServiceSecret
from freezeframe.service.base.timestamps import rfc3339

FIRST = "0" * 64
SEAL = "audit.seal"
TRIM = "audit.trim"


@dataclass(frozen=True, slots=True)
class AuditPlace:
    """Owner of a chain: a tenant of an environment, or the service where both are empty."""

    environment: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class AuditKeys:
    """The keys of a service's entries, derived from its secrets; ``current`` signs new entries."""

    current: str
    by_id: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def of(cls, secret: ServiceSecret) -> AuditKeys:
        """The key that is derived from the service's secret."""
        key = secret.sign(b"freezeframe audit", b"")
        name = hmac.digest(key, b"id", "sha256").hex()[:16]
        return cls(name, {name: key})

    def hash(self, record: Mapping[str, Any]) -> str | None:
        """The hash that a record must have; None where the service does not hold the key that it names.

        A record without a key is from before entries were signed: its hash is plain SHA-256.
        """
        told = dict(record)
        if not told["signing_key"]:
            del told["signing_key"]
        text = json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        if "signing_key" not in told:
            return hashlib.sha256(text).hexdigest()
        key = self.by_id.get(told["signing_key"])
        return None if key is None else hmac.digest(key, text, "sha256").hex()


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done. ``hash`` covers all other fields, ``previous_hash`` is of the entry before.

    ``signing_key`` is the id of the key that ``hash`` was made with; empty in entries from before keys.
    """

    environment: str
    tenant: str
    number: int
    moment_ms: int
    principal: str
    action: str
    subject: str
    request_id: str
    details: str
    previous_hash: str
    signing_key: str
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
            "previous_hash": self.previous_hash,
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
class Head:
    """Number and hash of a chain's entry, anchored outside: in a tenant version or a sink."""

    number: int
    hash: str
    origin: str


def heads_of_deletions(entries: Sequence[AuditEntry]) -> dict[AuditPlace, list[Head]]:
    """The heads of deleted tenants' chains, which the service's own chain holds."""
    found: dict[AuditPlace, list[Head]] = {}
    for entry in entries:
        told = json.loads(entry.details).get("audit") if entry.action == "tenant.delete" else None
        if told is not None:
            place = AuditPlace(told["environment"], told["chain"])
            origin = f"the service's entry {entry.number}"
            found.setdefault(place, []).append(Head(told["number"], told["hash"], origin))
    return found
