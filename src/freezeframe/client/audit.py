"""The service's operations on audit.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import TENANT, Connection, path_of
from freezeframe.client.types import (
    AuditPage,
    AuditProof,
)


class AuditOperations:
    """Operations on audit; see ``Client``."""

    _connection: Connection

    def list_audit(
        self,
        environment: str,
        tenant: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        action: str | None = None,
        subject: str | None = None,
    ) -> AuditPage:
        """List who did what to a tenant, the newest first."""
        place = path_of(TENANT + "/audit", environment, tenant)
        query = {"limit": limit, "cursor": cursor, "action": action, "subject": subject}
        return cast("AuditPage", self._connection.json("GET", place, query=query))

    def prove_audit(self, environment: str, tenant: str) -> AuditProof:
        """Go through a tenant's whole chain and say whether any entry was changed or taken out."""
        place = path_of(TENANT + "/audit/proof", environment, tenant)
        return cast("AuditProof", self._connection.json("GET", place))
