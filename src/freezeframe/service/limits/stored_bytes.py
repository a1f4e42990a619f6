"""Storage quota of a tenant: its newest version and what waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.errors import TooLarge
from freezeframe.identifiers import StreamName
from freezeframe.service.base.cursors import VersionedCache
from freezeframe.service.jobs.staged_blobs import StagedBlobs
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import map_concurrently
from freezeframe.store import Tenant
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.transaction import Transaction

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

    def check_commit(self, state: TenantState, transaction: Transaction) -> None:
        """Refuse a commit that adds bytes to a tenant which then has more than it may.

        It is a check of every commit of the service; what others committed meanwhile is in ``state``.
        """
        if self._bytes_max and (added := transaction.added_bytes(state)) > 0:
            self._require(self._held(transaction.context.storage, state) + added)

    def require_room(self, tenant: Tenant, size: int, *replaced: str) -> None:
        """Refuse ``size`` more bytes before they are sent, less the bytes of the files that they replace."""
        if self._bytes_max:
            known = tenant.context.log.current_state().files
            freed = sum(known[path].size for path in replaced if path in known)
            self._require(self.held(tenant) - freed + size)

    def require_room_for_waiting(self, tenant: Tenant, folder: str) -> None:
        """Refuse what waits already for the tenant: staged blobs, inputs of imports.

        What blobs will replace is subtracted. To be asked when the new one waits too: two that come at once
        see each other.
        """
        if self._bytes_max:
            waiting = self._blobs.waiting(folder)
            self.require_room(tenant, sum(size for _, size in waiting), *{path for path, _ in waiting})

    def _require(self, size: int) -> None:
        if size > self._bytes_max:
            raise TooLarge(
                f"The tenant would hold {size:,} bytes.",
                cause=f"{self._bytes_max:,} are the most that one may (service_tenant_stored_bytes_max).",
                remedy="Remove files or rows that are not needed, or have the limit raised.",
                code="TENANT_FULL",
            )

    def held(self, tenant: Tenant) -> int:
        """The bytes of the tenant's newest version; of what has not changed since nothing is read."""
        return self._held(tenant.context.storage, tenant.context.log.current_state())

    def _held(self, storage: Storage, state: TenantState) -> int:
        return self._kept.value(storage.root, state, lambda before: _count(storage, state, before)).total


def _count(storage: Storage, state: TenantState, before: _Held | None) -> _Held:
    """The bytes of the newest version; of a stream that has not changed nothing is read."""
    known = {} if before is None else before.streams
    held = {name: known.get(name, (-1, 0)) for name in state.streams}
    changed = [name for name, version in state.streams.items() if held[name][0] != version]

    def size(name: str) -> int:
        return table_snapshot(storage, state, StreamName(name)).size

    sizes = map_concurrently(size, changed, _READERS_MAX)
    held |= {name: (state.streams[name], found) for name, found in zip(changed, sizes, strict=True)}
    return _Held(sum(file.size for file in state.files.values()), held)
