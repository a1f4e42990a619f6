"""Findings in a tenant's log: stale, unusual changes, schema drift.

Only the tenant log's newest 100 versions are read, each once; rows never are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Literal

from freezeframe.errors import VersionNotFound
from freezeframe.log.format.actions import Metadata, parse_line
from freezeframe.service.access.access import CONFIGURATION_SUFFIX
from freezeframe.service.base.cursors import VersionedCache
from freezeframe.service.overview.overview import Overview, Overviews
from freezeframe.service.rows.row_differences import ColumnChanges
from freezeframe.store import Tenant
from freezeframe.store.schema.columns import type_names
from freezeframe.store.tenant_log.entry import StreamChange
from freezeframe.store.tenant_log.history import HistoryEntry
from freezeframe.store.tenant_log.roll_forward import change_content, table_snapshot
from freezeframe.store.tenant_log.state import TenantState

_KEPT_MAX = 5_000
_ONE_SYNC = timedelta(minutes=10)
_GAPS_MIN = 3
_TIMES_USUAL = 3
_DELETED_MIN, _DELETED_SHARE = 10, 0.25
_GROWN_MIN, _GROWN_SHARE = 100, 1.0


@dataclass(frozen=True, slots=True)
class StaleTenant:
    """A tenant whose last sync is longer ago than usual; ``usual_seconds`` are between two of its syncs."""

    last_sync: datetime
    usual_seconds: float


@dataclass(frozen=True, slots=True)
class UnusualChange:
    """A version that deleted or inserted far more rows of a stream than its other versions did."""

    stream: str
    version: int
    timestamp: datetime
    kind: Literal["deletion", "growth"]
    rows: int
    rows_before: int


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """A version that changed the columns of a stream."""

    stream: str
    version: int
    timestamp: datetime
    columns: ColumnChanges


@dataclass(frozen=True, slots=True)
class Findings:
    """All of a tenant, with its overview; changes are those since a moment, the newest first."""

    overview: Overview
    stale: StaleTenant | None
    unusual: tuple[UnusualChange, ...]
    drift: tuple[SchemaDrift, ...]
    unsealed: tuple[str, ...]


class TenantFindings:
    """Findings of one service's tenants; schema drift is kept until the tenant changes."""

    def __init__(self, overviews: Overviews) -> None:
        self._overviews = overviews
        # With the version up to which the log was read.
        self._kept: VersionedCache[tuple[int, tuple[SchemaDrift, ...]]] = VersionedCache(_KEPT_MAX)

    def of(
        self, tenant: Tenant, since: datetime, now: datetime, last_success: datetime | None = None
    ) -> Findings:
        """The findings; ``last_success`` is the end of a job, which may have changed nothing."""
        state = tenant.context.log.current_state()
        recent = self._overviews.recent(tenant, state)
        overview = self._overviews.of(tenant)
        _, drift = self._kept.value(
            tenant.context.storage.root, state, lambda before: _all_drift(tenant, state, recent, before)
        )
        return Findings(
            overview,
            stale_tenant(recent, now, last_success),
            tuple(change for change in unusual_changes(overview, recent) if change.timestamp >= since),
            tuple(item for item in drift if item.timestamp >= since),
            tuple(
                path
                for path, held in state.files.items()
                if path.endswith(CONFIGURATION_SUFFIX) and not held.sealed
            ),
        )


def stale_tenant(
    recent: tuple[HistoryEntry, ...], now: datetime, last_success: datetime | None = None
) -> StaleTenant | None:
    """Whether the last sync is longer ago than twice the median of the gaps, and than each of them.

    A sync is a job that changed streams; what follows within ten minutes belongs to it. With fewer than
    three gaps nothing is usual yet.
    """
    syncs: list[datetime] = []
    for entry in recent:
        is_sync = entry.job_id is not None and entry.kind == "commit" and bool(entry.streams)
        if is_sync and (not syncs or syncs[-1] - entry.timestamp > _ONE_SYNC):
            syncs.append(entry.timestamp)
    gaps = [(later - earlier).total_seconds() for later, earlier in pairwise(syncs)]
    if len(gaps) < _GAPS_MIN:
        return None
    last, usual = max(syncs[0], last_success or syncs[0]), median(gaps)
    age = (now - last).total_seconds()
    return StaleTenant(last, usual) if age > max(2 * usual, *gaps) else None


def unusual_changes(overview: Overview, recent: tuple[HistoryEntry, ...]) -> Iterator[UnusualChange]:
    """Versions that deleted a quarter of a stream's rows or doubled them, and three times as much as others.

    Restorations are meant, and the first load of a stream grows from nothing: neither is told.
    """
    for stream in overview.streams:
        rows = stream.rows
        changes: list[tuple[HistoryEntry, int]] = []
        for entry in recent:
            if counts := entry.streams.get(stream.stream):
                rows += counts.deleted - counts.inserted
                if rows <= 0:
                    break  # the first version, or another writer's change, which has no counts
                changes.append((entry, rows))
        for entry, before in changes:
            counts = entry.streams[stream.stream]
            others = [one.streams[stream.stream] for one, _ in changes if one is not entry]
            wanted: tuple[tuple[Literal["deletion", "growth"], int, int, float], ...] = (
                (
                    "deletion",
                    counts.deleted,
                    max((other.deleted for other in others), default=0),
                    _DELETED_SHARE,
                ),
                (
                    "growth",
                    counts.inserted,
                    max((other.inserted for other in others), default=0),
                    _GROWN_SHARE,
                ),
            )
            for kind, changed, usual, share in wanted:
                least = max(_DELETED_MIN if kind == "deletion" else _GROWN_MIN, share * before)
                if entry.kind == "commit" and changed >= least and changed > _TIMES_USUAL * usual:
                    yield UnusualChange(stream.stream, entry.version, entry.timestamp, kind, changed, before)


def _all_drift(
    tenant: Tenant,
    state: TenantState,
    recent: tuple[HistoryEntry, ...],
    before: tuple[int, tuple[SchemaDrift, ...]] | None,
) -> tuple[int, tuple[SchemaDrift, ...]]:
    """Earlier findings that are still listed, and the new ones."""
    seen, known = before or (-1, ())
    entries = {entry.version: entry for entry in recent}
    new = {version: entry for version, entry in entries.items() if entry.streams and version > seen}
    found = [*_drift(tenant, state, new), *(item for item in known if item.version in entries)]
    return state.version, tuple(sorted(found, key=lambda item: -item.version))


def _drift(tenant: Tenant, state: TenantState, entries: Mapping[int, HistoryEntry]) -> Iterator[SchemaDrift]:
    """Those of the versions (the newest first) that changed columns."""
    storage = tenant.context.storage
    # Per stream, the change whose columns are known while earlier ones are not yet read.
    open_ones: dict[str, tuple[HistoryEntry, StreamChange, Mapping[str, str]]] = {}
    for version, entry in tenant.context.log.entries_down(state, entries):
        for change in entry.streams:
            content = change_content(storage, change) if change.lands else ""
            metadata = _metadata(content)
            if metadata is None:
                continue
            name, columns = str(change.stream), type_names(metadata.schema)
            if later := open_ones.get(name):
                yield from _compare_columns(*later, columns)
            open_ones[name] = (entries[version], change, columns)
    for first, change, after in open_ones.values():
        if change.table_version and str(change.stream) in state.streams:
            try:
                before = table_snapshot(storage, state, change.stream, change.table_version - 1)
            except VersionNotFound:
                continue  # cleaned away
            yield from _compare_columns(first, change, after, type_names(before.schema))


def _metadata(content: str) -> Metadata | None:
    if '"metaData"' not in content:
        return None
    actions = (parse_line(line) for line in content.split("\n") if line.startswith('{"metaData"'))
    return next((action for action in actions if isinstance(action, Metadata)), None)


def _compare_columns(
    entry: HistoryEntry, change: StreamChange, columns: Mapping[str, str], before: Mapping[str, str]
) -> Iterator[SchemaDrift]:
    changes = ColumnChanges.between(before, columns)
    if changes != ColumnChanges():
        yield SchemaDrift(str(change.stream), entry.version, entry.timestamp, changes)
