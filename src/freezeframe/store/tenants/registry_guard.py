"""Prevents commits to a deleted tenant of a store, and files left in its folder."""

from __future__ import annotations

from contextlib import suppress

from freezeframe.errors import FreezeframeError, TenantNotFound
from freezeframe.storage import Storage
from freezeframe.store.tenants.deletion import remove_tree
from freezeframe.store.tenants.registry import Registry


class RegistryGuard:
    """Guard of a store's tenant, which exists while the registry has its folder."""

    def __init__(self, registry: Registry, folder: str, place: Storage) -> None:
        self._registry = registry
        self._folder = folder
        self._place = place

    def require_writable(self) -> None:
        """See ``TenantGuard.require_writable``."""

    def require_open(self) -> None:
        """See ``TenantGuard.require_open``.

        Raises:
            TenantNotFound: it was deleted.
            StorageUnavailable: the registry could not be read.
        """
        if not self._registry.knows(self._folder):
            raise TenantNotFound(
                "The tenant was deleted while the job was under way.",
                cause="The store's registry no longer names its folder.",
                remedy="Nothing of the job was kept; make the tenant again, then run it once more.",
            )

    def remove_orphans(self) -> None:
        """See ``TenantGuard.remove_orphans``; ``Store.sweep`` retries failures."""
        with suppress(FreezeframeError):
            try:
                self.require_open()
            except TenantNotFound:
                remove_tree(self._place)
