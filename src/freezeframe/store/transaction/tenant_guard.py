"""What keeps a job from committing to a tenant that was deleted meanwhile, and from leaving files there."""

from __future__ import annotations

from typing import Protocol


class TenantGuard(Protocol):
    """Asked by every job when it begins, before and after its commit point, and when it is given up."""

    def require_writable(self) -> None:
        """Refuse a tenant that may only be read from here; raises ``InvalidOption``."""

    def require_open(self) -> None:
        """Refuse a tenant that is there no more; raises ``TenantNotFound``."""

    def remove_orphans(self) -> None:
        """Remove what was written into a tenant that is there no more; never raises."""


class NoGuard:
    """Of a tenant that is a directory of its own: nobody deletes it but by hand."""

    def require_writable(self) -> None:
        """See ``TenantGuard.require_writable``."""

    def require_open(self) -> None:
        """See ``TenantGuard.require_open``."""

    def remove_orphans(self) -> None:
        """See ``TenantGuard.remove_orphans``."""


NO_GUARD = NoGuard()
