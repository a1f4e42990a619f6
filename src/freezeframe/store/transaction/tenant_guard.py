"""Guard against commits to a tenant that was deleted meanwhile."""

from __future__ import annotations

from typing import Protocol


class TenantGuard(Protocol):
    """Called by every job at its beginning, around its commit point, and when it is abandoned."""

    def require_writable(self) -> None:
        """Refuse a tenant that may only be read from here; raises ``InvalidOption``."""

    def require_open(self) -> None:
        """Refuse a tenant that is there no more; raises ``TenantNotFound``."""

    def remove_orphans(self) -> None:
        """Remove what was written into a tenant that is there no more; never raises."""


class NoGuard:
    """The guard of a tenant outside of a store: nothing deletes it."""

    def require_writable(self) -> None:
        """See ``TenantGuard.require_writable``."""

    def require_open(self) -> None:
        """See ``TenantGuard.require_open``."""

    def remove_orphans(self) -> None:
        """See ``TenantGuard.remove_orphans``."""


NO_GUARD = NoGuard()
