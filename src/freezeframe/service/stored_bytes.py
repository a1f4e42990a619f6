"""The bytes that tenants hold: the limit of each tenant, and sums by environment."""

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from freezeframe.errors import FreezeframeError, ReportDamage, TenantNotFound, TooLarge
from freezeframe.identifiers import EnvironmentName, StreamName, TenantId
from freezeframe.service.access.access import Stores
from freezeframe.service.staged_blobs import StagedBlobs
from freezeframe.storage.read_ahead import map_concurrently
from freezeframe.store import Tenant
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import Changes, TenantContext

_T = TypeVar("_T")


class VersionedCache(Generic[_T]):
    """LRU cache of at most ``most`` values; safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[TenantState, _T]] = OrderedDict()

    def value(self, log: TenantLog, state: TenantState, make: Callable[[_T | None], _T]) -> _T:
        """Return the cached value that ``make`` derives from a state of the log and the one before."""
        name = log.storage.root
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
        if found is not None and found[0] is state:
            return found[1]
        made = make(None if found is None or not _grew(log, found[0], state) else found[1])
        with self._lock:
            self._kept[name] = (state, made)
            self._kept.move_to_end(name)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def _grew(log: TenantLog, before: TenantState, state: TenantState) -> bool:
    """Return whether commits alone lie between: no erasure, no backup put back, no folder made anew."""
    return before.version <= state.version and before.erased == state.erased and log.has_passed(before)


_COUNTED_TENANTS_MAX = 20_000
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
        self._kept: VersionedCache[_Held] = VersionedCache(_COUNTED_TENANTS_MAX)
        self._blobs = blobs
        self._bytes_max = bytes_max

    def check_commit(self, state: TenantState, changes: Changes) -> None:
        """Refuse a commit that adds bytes to a tenant which then has more than it may.

        It is a check of every commit of the service; what others committed meanwhile is in ``state``.
        """
        if self._bytes_max and (added := changes.added_bytes(state)) > 0:
            self._require(self._held(changes.context, state) + added)

    def require_room(self, tenant: Tenant, size: int, *replaced: str) -> None:
        """Refuse ``size`` more bytes before they are sent, less the bytes of the files that they replace."""
        if self._bytes_max:
            known = tenant.context.log.current_state().files
            freed = sum(known[path].size for path in replaced if path in known)
            self._require(self.held(tenant) - freed + size)

    def require_room_for_waiting(self, tenant: Tenant, folder: str) -> None:
        """Refuse what waits already for the tenant: staged blobs, inputs of imports.

        What blobs will replace is subtracted. Call it when the new one waits as well, so that of two at once
        each is checked with the other.
        """
        if self._bytes_max:
            waiting = self._blobs.waiting(folder)
            self.require_room(tenant, sum(size for _, size in waiting), *{path for path, _ in waiting})

    def _require(self, size: int) -> None:
        if size > self._bytes_max:
            raise TooLarge(
                f"The tenant would hold {size:,} bytes.",
                cause=f"{self._bytes_max:,} is the limit (service_tenant_stored_bytes_max).",
                remedy="Delete files or rows, or ask the operator to raise the limit.",
                code="TENANT_FULL",
            )

    def held(self, tenant: Tenant) -> int:
        """Return the bytes of the tenant's newest version; of what has not changed since nothing is read."""
        return self._held(tenant.context, tenant.context.log.current_state())

    def _held(self, context: TenantContext, state: TenantState) -> int:
        return self._kept.value(context.log, state, lambda before: _count(context.log, state, before)).total


def _count(log: TenantLog, state: TenantState, before: _Held | None) -> _Held:
    """Return the bytes of the newest version; of a stream that has not changed nothing is read."""
    known = {} if before is None else before.streams
    held = {name: known.get(name, (-1, 0)) for name in state.streams}
    changed = [name for name, version in state.streams.items() if held[name][0] != version]

    def size(name: str) -> int:
        return table_snapshot(log, state, StreamName(name)).size

    sizes = map_concurrently(size, changed, _READERS_MAX)
    held |= {name: (state.streams[name], found) for name, found in zip(changed, sizes, strict=True)}
    return _Held(sum(file.size for file in state.files.values()), held)


_logger = logging.getLogger(__name__)

_PERIOD_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class EnvironmentSize:
    """The tenants of an environment, and the bytes that they hold together."""

    environment: str
    tenants: int
    bytes: int


class StoredSizes:
    """Counts the tenants of a store on a thread of its own, at most every five minutes."""

    def __init__(self, stores: Stores, stored_bytes: StoredBytes) -> None:
        self._stores = stores
        self._stored_bytes = stored_bytes
        self._begun = -math.inf
        self._looking = threading.Lock()

    def count_in_background(self, tell: Callable[[Sequence[EnvironmentSize]], None]) -> bool:
        """Begin to count, and call ``tell`` at the end; False if this process just did."""
        if not self._looking.acquire(blocking=False):
            return False
        if time.monotonic() < self._begun + _PERIOD_SECONDS:
            self._looking.release()
            return False
        self._begun = time.monotonic()

        def run() -> None:
            try:
                tell(self.count())
            except FreezeframeError as error:
                _logger.warning("The stored bytes were not counted: %s", error)
            finally:
                self._looking.release()

        threading.Thread(target=run, name="freezeframe-sizes", daemon=True).start()
        return True

    def count(self) -> list[EnvironmentSize]:
        """Return each environment; of a tenant that has not changed nothing is read."""
        found = []
        for environment in self._stores.environments():
            held = list(self._held(environment))
            found.append(EnvironmentSize(environment, len(held), sum(held)))
        return found

    def _held(self, environment: EnvironmentName) -> Iterator[int]:
        store = self._stores.environment(environment)
        for names in store.tenant_pages():
            for name in names:
                started = time.monotonic()
                try:
                    yield self._stored_bytes.held(store.tenant(TenantId(name)))
                except (TenantNotFound, ReportDamage) as error:
                    _logger.warning("The bytes of the tenant %s were not counted: %s", name, error)
                # Requests come first: half of the time is theirs alone.
                time.sleep(time.monotonic() - started)
