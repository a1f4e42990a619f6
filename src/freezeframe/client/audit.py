"""The service's operations on audit.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Literal, cast

from freezeframe.client.connection import TENANT, Connection, path_of
from freezeframe.client.types import (
    AuditPage,
    AuditProof,
)


class AuditOperations:
    """Operations on audit; see ``Client``."""

    _connection: Connection

    def list_service_audit(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        action: str | None = None,
        subject: str | None = None,
        principal: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> AuditPage:
        """List what concerns no one tenant: keys, people, sign-ins and refused ones, deleted tenants."""
        place = path_of("/api/v1/audit")
        query = {
            "limit": limit,
            "cursor": cursor,
            "action": action,
            "subject": subject,
            "principal": principal,
            "since": since,
            "until": until,
        }
        return cast("AuditPage", self._connection.json("GET", place, query=query))

    def export_service_audit(
        self,
        *,
        format_: Literal["jsonl", "csv"] | None = None,
        action: str | None = None,
        subject: str | None = None,
        principal: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> bytes:
        """Export what concerns no one tenant, the oldest first."""
        place = path_of("/api/v1/audit/export")
        query = {
            "format": format_,
            "action": action,
            "subject": subject,
            "principal": principal,
            "since": since,
            "until": until,
        }
        return self._connection.content("GET", place, query=query)

    def prove_service_audit(self) -> AuditProof:
        """Say whether any entry of the service's own audit was changed or taken out.

        Only the sink (`audit_sink`) can show that its newest entries were cut off: `freezeframe audit
        verify`.
        """
        place = path_of("/api/v1/audit/proof")
        return cast("AuditProof", self._connection.json("GET", place))

    def list_audit(
        self,
        environment: str,
        tenant: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        action: str | None = None,
        subject: str | None = None,
        principal: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> AuditPage:
        """List who did what to a tenant, the newest first."""
        place = path_of(TENANT + "/audit", environment, tenant)
        query = {
            "limit": limit,
            "cursor": cursor,
            "action": action,
            "subject": subject,
            "principal": principal,
            "since": since,
            "until": until,
        }
        return cast("AuditPage", self._connection.json("GET", place, query=query))

    def export_audit(
        self,
        environment: str,
        tenant: str,
        *,
        format_: Literal["jsonl", "csv"] | None = None,
        action: str | None = None,
        subject: str | None = None,
        principal: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> bytes:
        """Export who did what to a tenant, the oldest first."""
        place = path_of(TENANT + "/audit/export", environment, tenant)
        query = {
            "format": format_,
            "action": action,
            "subject": subject,
            "principal": principal,
            "since": since,
            "until": until,
        }
        return self._connection.content("GET", place, query=query)

    def prove_audit(self, environment: str, tenant: str) -> AuditProof:
        """Say whether any entry of a tenant's audit was changed, taken out or cut off.

        The whole chain is compared with itself, and with the heads that the tenant's versions hold.
        """
        place = path_of(TENANT + "/audit/proof", environment, tenant)
        return cast("AuditProof", self._connection.json("GET", place))
