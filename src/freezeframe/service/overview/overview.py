"""Overview of an environment and its sizes."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from freezeframe.clock import moment
from freezeframe.errors import FreezeframeError, ReportDamage, TenantNotFound
from freezeframe.identifiers import EnvironmentName, StreamName, TenantId
from freezeframe.service.access.access import Stores
from freezeframe.service.base.cursors import VersionedCache
from freezeframe.service.limits.stored_bytes import StoredBytes
from freezeframe.store import Tenant
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.table.reader import live_row_count
from freezeframe.store.tenant_log.history import HistoryEntry
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.view import listed_state

# Overview of a tenant: its streams with sizes and last changes.
#
# Only logs are read: the tenant's, and each table's for its statistics. No row is. What was found is kept
# until the tenant changes, and of a tenant that has changed only the new entries are read.

_ENTRIES_MAX = 100
_DAY_SECONDS = 86_400
_DAYS = 30
_KEPT_MAX = 5_000


@dataclass(frozen=True, slots=True)
class LastChange:
    """What a stream's last change was, and which version of the tenant it made."""

    version: int
    timestamp: datetime
    job_id: str | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class StreamOverview:
    """A stream at one version of the tenant; ``last`` None: it is further back than is looked."""

    stream: str
    stream_version: int
    key: tuple[str, ...]
    rows: int
    size_bytes: int
    last: LastChange | None


@dataclass(frozen=True, slots=True)
class Overview:
    """A tenant at one version; ``days`` are the changes of rows of the last days, today's last."""

    version: int
    timestamp: datetime | None
    streams: tuple[StreamOverview, ...]
    files: int
    file_bytes: int
    last: HistoryEntry | None
    days: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """An overview of now, the day that it counts to, and what the next one can be made of."""

    shown: Overview
    today: int
    recent: tuple[HistoryEntry, ...]


class Overviews:
    """Overviews of one service's tenants."""

    def __init__(self) -> None:
        self._kept: VersionedCache[_Seen] = VersionedCache(_KEPT_MAX)

    def of(self, tenant: Tenant, version: int | None = None) -> Overview:
        """The overview of a tenant at a version (default: now)."""
        newest = tenant.context.log.current_state()
        if newest.version < 0 and version is None:
            return Overview(-1, None, (), 0, 0, None, (0,) * _DAYS)
        if version is not None and version != newest.version:
            state = listed_state(tenant.context.log, newest, version)
            return _overview(tenant, state, tuple(tenant.history(_ENTRIES_MAX, until=version)), _today())
        seen = self._seen(tenant, newest)
        if seen.today != _today():
            return _overview(tenant, newest, seen.recent, _today())
        return seen.shown

    def recent(self, tenant: Tenant, state: TenantState) -> tuple[HistoryEntry, ...]:
        """The newest 100 versions of a tenant whose newest state is ``state``, the newest first."""
        return () if state.version < 0 else self._seen(tenant, state).recent

    def _seen(self, tenant: Tenant, newest: TenantState) -> _Seen:
        name = tenant.context.storage.root
        return self._kept.value(name, newest, lambda before: _summarize(tenant, newest, before))


def _summarize(tenant: Tenant, state: TenantState, before: _Seen | None) -> _Seen:
    recent, today = _recent(tenant, state, before), _today()
    return _Seen(_overview(tenant, state, recent, today), today, recent)


def _recent(tenant: Tenant, state: TenantState, before: _Seen | None) -> tuple[HistoryEntry, ...]:
    """The newest entries; those that were seen before stay as they are, for entries never change."""
    known = () if before is None else before.recent
    if not known:
        return _without_paths(tenant.history(_ENTRIES_MAX, until=state.version))
    new = tenant.history(min(_ENTRIES_MAX, state.version - known[0].version), until=state.version)
    fresh = [item for item in new if item.version > known[0].version]
    return _without_paths([*fresh, *(item for item in known if state.is_listed(item.version))])[:_ENTRIES_MAX]


def _without_paths(entries: Iterable[HistoryEntry]) -> tuple[HistoryEntry, ...]:
    """The entries without the files, of which there may be thousands, of all but the newest."""
    return tuple(
        entry if not place else replace(entry, files_written=(), files_deleted=())
        for place, entry in enumerate(entries)
    )


def _overview(tenant: Tenant, state: TenantState, recent: tuple[HistoryEntry, ...], today: int) -> Overview:
    return Overview(
        version=state.version,
        timestamp=moment(state.timestamp_ms),
        streams=tuple(_streams(tenant, state, recent)),
        files=len(state.files),
        file_bytes=sum(held.size for held in state.files.values()),
        last=recent[0] if recent else None,
        days=_days(recent, today),
    )


def _streams(
    tenant: Tenant, state: TenantState, recent: tuple[HistoryEntry, ...]
) -> Iterator[StreamOverview]:
    for name in sorted(state.streams):
        snapshot = table_snapshot(tenant.context.storage, state, StreamName(name))
        last = next((entry for entry in recent if name in entry.streams), None)
        yield StreamOverview(
            stream=name,
            stream_version=snapshot.version,
            key=stored_key(snapshot.metadata) or (),
            rows=live_row_count(snapshot),
            size_bytes=snapshot.size,
            last=None
            if last is None
            else LastChange(last.version, last.timestamp, last.job_id, last.streams[name]),
        )


def _today() -> int:
    return int(datetime.now(UTC).timestamp()) // _DAY_SECONDS


def _days(recent: tuple[HistoryEntry, ...], today: int) -> tuple[int, ...]:
    """The number of changed rows on each of the last days, as far back as the entries go."""
    changed = [0] * _DAYS
    for entry in recent:
        age = today - int(entry.timestamp.timestamp()) // _DAY_SECONDS
        if 0 <= age < _DAYS:
            changed[-1 - age] += sum(
                counts.inserted + counts.updated + counts.deleted for counts in entry.streams.values()
            )
    return tuple(changed)


# How many tenants each environment has and what they hold: numbers that name no tenant.

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
        """Each environment; of a tenant that has not changed nothing is read."""
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
