"""A stream as seen by a scope: tenant, open job, or past version."""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.identifiers import StreamName
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.updates.update_place import UpdatePlace


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """A stream's name, and the scope of its reads and changes."""

    name: StreamName
    scope: TenantScope

    @property
    def update_place(self) -> UpdatePlace:
        """The stream for an update outside of a job."""
        return UpdatePlace(self.name, self.scope.storage, self.scope.engine, self.scope.settings)
