"""Storage quota of a tenant: its newest version and what waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freezeframe.errors import TooLarge
from freezeframe.identifiers import StreamName
from freezeframe.service.base.versioned_cache import VersionedCache
from freezeframe.service.jobs.staged_blobs import StagedBlobs
from freezeframe.storage.concurrency import map_concurrently
from freezeframe.store import Tenant
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.tenant_log.table_lookup import table_snapshot

_KEPT_MAX = 20_000
_READERS_MAX = 16


@dataclass(frozen=True, slots=True)
class _Held:
    """The bytes of a tenant: its files, and by stream the version of its table and what that holds."""

    files: int
    streams: dict[str, tuple[int, int]]

    @property
    def total(self) -> int:
        return self.files + sum(size for _, size in self.streams.values())


class StoredBytes:
    """The limit of one service for each tenant; 0 is none, and then changes are not counted."""

    def __init__(self, blobs: StagedBlobs, bytes_max: int) -> None:
        self._kept: VersionedCache[_Held] = VersionedCache(_KEPT_MAX)
        self._blobs = blobs
        self._bytes_max = bytes_max

    def limit_tenant(self, tenant: Tenant, size: int, *replaced: str) -> Tenant:
        """The tenant for a change that adds ``size`` bytes; those of replaced files are subtracted.

        What others commit meanwhile is counted as well: the tenant's commit looks again, at the state that
        it follows.

        Raises:
            TooLarge: the tenant would have more than it may.
        """
        if not self._bytes_max:
            return tenant
        self._require_room(tenant, size, replaced)
        return tenant.with_check(lambda _: self._require_room(tenant, size, replaced))

    def require_room_for_waiting(self, tenant: Tenant, folder: str) -> None:
        """Refuse what waits already for the tenant: staged blobs, inputs of imports.

        What blobs will replace is subtracted. To be asked when the new one waits too: two that come at once
        see each other.

        Raises:
            TooLarge: the tenant would have more than it may.
        """
        if self._bytes_max:
            waiting = self._blobs.waiting(folder)
            self._require_room(tenant, sum(size for _, size in waiting), {path for path, _ in waiting})

    def _require_room(self, tenant: Tenant, size: int, replaced: Iterable[str]) -> None:
        held = self.held(tenant)
        held -= sum(tenant.files.entry(path).size for path in replaced if path and tenant.files.exists(path))
        if held + size > self._bytes_max:
            raise TooLarge(
                f"The tenant would hold {held + size:,} bytes.",
                cause=f"{self._bytes_max:,} are the most that one may (service_tenant_stored_bytes_max).",
                remedy="Remove files or rows that are not needed, or have the limit raised.",
                code="TENANT_FULL",
            )

    def held(self, tenant: Tenant) -> int:
        """The bytes of the tenant's newest version; of what has not changed since nothing is read.

        Raises:
            CorruptLog: a log is damaged.
        """
        newest = tenant.place.log.current_state()
        name = tenant.place.storage.root
        return self._kept.value(name, newest, lambda before: _count(tenant, newest, before)).total


def _count(tenant: Tenant, state: TenantState, before: _Held | None) -> _Held:
    """The bytes of the newest version; of a stream that has not changed nothing is read."""
    known = {} if before is None else before.streams
    held = {name: known.get(name, (-1, 0)) for name in state.streams}
    changed = [name for name, version in state.streams.items() if held[name][0] != version]

    def size(name: str) -> int:
        return table_snapshot(tenant.place.storage, state, StreamName(name)).size

    sizes = map_concurrently(size, changed, _READERS_MAX)
    held |= {name: (state.streams[name], found) for name, found in zip(changed, sizes, strict=True)}
    return _Held(sum(file.size for file in state.files.values()), held)
