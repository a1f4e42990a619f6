"""Context of a tenant's changes: its storage, log, engine and settings, and the guard of its store."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freezeframe.engine.protocol import TableEngine
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.model.update_options import NO_REQUEST, RequestContext
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState

if TYPE_CHECKING:
    from freezeframe.store.transaction.dry_run import Rehearse
    from freezeframe.store.transaction.transaction import Transaction

Check = Callable[[TenantState], None]
"""Raises if a transaction may not be committed after this state."""
CommitCheck = Callable[[TenantState, "Transaction"], None]
"""Raises if the changes of a transaction may not be committed after this state."""


class TenantGuard:
    """Hooks of every job against the deletion of its tenant: at its start, around its commit, at its end.

    Here they do nothing: this is the guard of a tenant outside of a store, which nothing deletes.
    ``folder`` is the tenant's folder in its store.
    """

    folder = ""

    def require_writable(self) -> None:
        """Refuse a read-only tenant; raises ``InvalidOption``."""

    def require_open(self) -> None:
        """Refuse a deleted tenant; raises ``TenantNotFound``."""

    def remove_orphans(self) -> None:
        """Delete files written into a deleted tenant; never raises."""


NO_GUARD = TenantGuard()


@dataclass(frozen=True, slots=True)
class TenantContext:
    """One tenant with the storage, engine and settings for its changes."""

    storage: Storage
    log: TenantLog
    engine: TableEngine
    settings: Settings
    guard: TenantGuard = NO_GUARD
    tenant_id: str = ""
    """Its id in a store; empty for a folder that is no store's."""
    request_context: RequestContext = NO_REQUEST
    checks: tuple[CommitCheck, ...] = ()
    """Checks that each commit has to pass: conditions and limits of a request."""
    after_commit: Callable[[TenantContext, int, str, Collection[str]], None] = lambda *_: None
    """Called after each commit with its version, its kind and the streams that changed; it does not fail."""
    rehearse: Rehearse | None = None
    """Called in place of a commit, of a dry run."""
