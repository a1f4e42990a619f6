"""One stream as a scope sees it: a tenant, an open job, or a moment of the past."""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.identifiers import StreamName
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.updates.update_place import UpdatePlace


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """One stream as some scope sees it."""

    name: StreamName
    scope: TenantScope

    @property
    def update_place(self) -> UpdatePlace:
        """The stream as an update outside of a job sees it."""
        return UpdatePlace(self.name, self.scope.storage, self.scope.engine, self.scope.settings)
