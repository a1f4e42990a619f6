"""A tenant at a glance: its streams with their sizes and last changes, as lists of tenants show them.

Only logs are read: the tenant's, and each table's for its statistics. No row is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from freezeframe.identifiers import StreamName
from freezeframe.store import Tenant
from freezeframe.store.entries import Counts
from freezeframe.store.guard import stored_key
from freezeframe.store.history import HistoryEntry
from freezeframe.store.reading import live_row_count
from freezeframe.store.scope import listed_state
from freezeframe.store.state import TenantState
from freezeframe.store.tables import table_snapshot

_ENTRIES_MAX = 100
_DAY_SECONDS = 86_400


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

    name: str
    version: int
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


def overview(tenant: Tenant, version: int | None = None, days: int = 30) -> Overview:
    """What is told of a tenant at a version (default: now).

    Raises:
        VersionNotFound: there is no such version, or it is not kept any more.
        CorruptLog: a table lacks a version that the tenant log names.
    """
    if version is None and tenant.version < 0:
        return Overview(-1, None, (), 0, 0, None, (0,) * days)
    log = tenant.place.log
    state = listed_state(log, log.current_state(), version)
    recent = tuple(tenant.history(_ENTRIES_MAX, until=state.version))
    return Overview(
        version=state.version,
        timestamp=datetime.fromtimestamp(state.timestamp_ms / 1000, UTC),
        streams=tuple(_streams(tenant, state, recent)),
        files=len(state.files),
        file_bytes=sum(held.size for held in state.files.values()),
        last=recent[0] if recent else None,
        days=_days(recent, days),
    )


def _streams(
    tenant: Tenant, state: TenantState, recent: tuple[HistoryEntry, ...]
) -> Iterator[StreamOverview]:
    for name in sorted(state.streams):
        snapshot = table_snapshot(tenant.place.storage, state, StreamName(name))
        last = next((entry for entry in recent if name in entry.streams), None)
        yield StreamOverview(
            name=name,
            version=snapshot.version,
            key=stored_key(snapshot.metadata) or (),
            rows=live_row_count(snapshot),
            size_bytes=snapshot.size,
            last=None
            if last is None
            else LastChange(last.version, last.timestamp, last.job_id, last.streams[name]),
        )


def _days(recent: tuple[HistoryEntry, ...], days: int) -> tuple[int, ...]:
    """How many rows changed on each of the last days, as far back as the entries go."""
    today = int(datetime.now(UTC).timestamp()) // _DAY_SECONDS
    changed = [0] * days
    for entry in recent:
        age = today - int(entry.timestamp.timestamp()) // _DAY_SECONDS
        if 0 <= age < days:
            changed[-1 - age] += sum(
                counts.inserted + counts.updated + counts.deleted for counts in entry.streams.values()
            )
    return tuple(changed)
