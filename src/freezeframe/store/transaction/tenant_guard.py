"""Guard against commits to a tenant that was deleted meanwhile."""

from __future__ import annotations

from typing import Protocol


class TenantGuard(Protocol):
    """Hooks of every job: at its beginning, around its commit point, and after its abandonment."""

    def require_writable(self) -> None:
        """Refuse a read-only tenant; raises ``InvalidOption``."""

    def require_open(self) -> None:
        """Refuse a deleted tenant; raises ``TenantNotFound``."""

    def remove_orphans(self) -> None:
        """Delete files written into a deleted tenant; never raises."""


class NoGuard:
    """The guard of a tenant outside of a store: nothing deletes it."""

    def require_writable(self) -> None:
        """See ``TenantGuard.require_writable``."""

    def require_open(self) -> None:
        """See ``TenantGuard.require_open``."""

    def remove_orphans(self) -> None:
        """See ``TenantGuard.remove_orphans``."""


NO_GUARD = NoGuard()
