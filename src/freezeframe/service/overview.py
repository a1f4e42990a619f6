"""Overviews of tenants: streams, sizes, last changes, and what an operator should look at.

Only logs are read, never rows: the tenant log's newest 100 versions, and each table's log. Results are cached
until the tenant changes; then only the new entries are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil
from statistics import median
from typing import Annotated, Literal

from pydantic import Field

from freezeframe.clock import moment
from freezeframe.errors import VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log.format.actions import Metadata, parse_line
from freezeframe.service.access.access import CONFIGURATION_SUFFIX
from freezeframe.service.stored_bytes import VersionedCache
from freezeframe.store import Tenant
from freezeframe.store.diff.tenant_diff import ColumnChanges
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import stored_key, type_names
from freezeframe.store.table.reader import live_row_count
from freezeframe.store.tenant_log.entry import StreamChange
from freezeframe.store.tenant_log.history import HistoryEntry
from freezeframe.store.tenant_log.roll_forward import change_content, table_snapshot
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.conditions import tenant_tag
from freezeframe.store.transaction.scope import listed_state

_ENTRIES_MAX = 100
_DAY_SECONDS = 86_400
_DAYS = 30
_KEPT_MAX = 5_000


@dataclass(frozen=True, slots=True)
class LastChange:
    """A stream's last change, and the version of the tenant that it made."""

    version: int
    timestamp: datetime
    job_id: str | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class StreamOverview:
    """A stream at one version of the tenant."""

    stream: str
    stream_version: Annotated[int, Field(description="The stream's own version.")]
    key: tuple[str, ...]
    rows: int
    size_bytes: int
    last: Annotated[LastChange | None, Field(description="Null: further back than is looked.")]


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
    etag: str | None = None


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
        """Return the overview of a tenant at a version (default: now)."""
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
        """Return the newest 100 versions of a tenant whose newest state is ``state``, the newest first."""
        return () if state.version < 0 else self._seen(tenant, state).recent

    def _seen(self, tenant: Tenant, newest: TenantState) -> _Seen:
        return self._kept.value(tenant.context.log, newest, lambda before: _summarize(tenant, newest, before))


def _summarize(tenant: Tenant, state: TenantState, before: _Seen | None) -> _Seen:
    recent, today = _recent(tenant, state, before), _today()
    return _Seen(_overview(tenant, state, recent, today), today, recent)


def _recent(tenant: Tenant, state: TenantState, before: _Seen | None) -> tuple[HistoryEntry, ...]:
    """Return the newest entries; those that were seen before stay as they are, for entries never change."""
    known = () if before is None else before.recent
    if not known:
        return _without_paths(tenant.history(_ENTRIES_MAX, until=state.version))
    new = tenant.history(min(_ENTRIES_MAX, state.version - known[0].version), until=state.version)
    fresh = [item for item in new if item.version > known[0].version]
    return _without_paths([*fresh, *(item for item in known if state.is_listed(item.version))])[:_ENTRIES_MAX]


def _without_paths(entries: Iterable[HistoryEntry]) -> tuple[HistoryEntry, ...]:
    """Return the entries without the files, of which there may be thousands, of all but the newest."""
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
        etag=tenant_tag(state),
    )


def _streams(
    tenant: Tenant, state: TenantState, recent: tuple[HistoryEntry, ...]
) -> Iterator[StreamOverview]:
    for name in sorted(state.streams):
        snapshot = table_snapshot(tenant.context.log, state, StreamName(name))
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
    """Return the number of changed rows on each of the last days, as far back as the entries go."""
    changed = [0] * _DAYS
    for entry in recent:
        age = today - int(entry.timestamp.timestamp()) // _DAY_SECONDS
        if 0 <= age < _DAYS:
            changed[-1 - age] += sum(
                counts.inserted + counts.updated + counts.deleted for counts in entry.streams.values()
            )
    return tuple(changed)


_ONE_SYNC = timedelta(minutes=10)
_GAPS_MIN = 3
_TIMES_USUAL = 3
_USUAL_SHARE = 0.9
_DELETED_SHARE = 0.25
_GROWN_MIN, _GROWN_SHARE = 100, 1.0


@dataclass(frozen=True, slots=True)
class StaleTenant:
    """A tenant whose last sync is longer ago than twice the median gap, and than nine of ten gaps."""

    last_sync: datetime
    usual_seconds: Annotated[float, Field(description="The median time between two syncs.")]


@dataclass(frozen=True, slots=True)
class UnusualChange:
    """A version that deleted a quarter of a stream's rows or doubled them, unlike the versions around it."""

    stream: str
    version: int
    timestamp: datetime
    kind: Literal["deletion", "growth"]
    rows: Annotated[int, Field(description="Deleted or inserted.")]
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
    """The findings in a tenant, with its overview; changes are those since a moment, newest first.

    ``rows_by_day`` are the rows of all streams at the end of each day (UTC), now's last.
    """

    overview: Overview
    rows_by_day: tuple[int, ...]
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
        """Return the findings; ``last_success`` is the end of a job, which may have changed nothing."""
        state = tenant.context.log.current_state()
        recent = self._overviews.recent(tenant, state)
        overview = self._overviews.of(tenant)
        _, drift = self._kept.value(
            tenant.context.log, state, lambda before: _all_drift(tenant, state, recent, before)
        )
        return Findings(
            overview,
            rows_by_day(overview, recent, now),
            stale_tenant(recent, now, last_success),
            tuple(change for change in unusual_changes(overview, recent) if change.timestamp >= since),
            tuple(item for item in drift if item.timestamp >= since),
            tuple(
                path
                for path, held in state.files.items()
                if path.endswith(CONFIGURATION_SUFFIX) and not held.sealed
            ),
        )


def rows_by_day(overview: Overview, recent: tuple[HistoryEntry, ...], now: datetime) -> tuple[int, ...]:
    """Return the rows at the end of each of the last 30 days and of the day before them, now's last.

    They follow from the rows of now and the counts of the newest 100 versions; days of which those
    versions say nothing are left out.
    """
    rows, found, entries = sum(stream.rows for stream in overview.streams), [], list(recent)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    is_whole = len(recent) < _ENTRIES_MAX
    for _ in range(_DAYS + 1):
        found.append(max(rows, 0))
        while entries and entries[0].timestamp >= day:
            counts = entries.pop(0).streams.values()
            rows -= sum(item.inserted - item.deleted for item in counts)
        if not entries and not is_whole:
            break
        day -= timedelta(days=1)
    return tuple(reversed(found))


def stale_tenant(
    recent: tuple[HistoryEntry, ...], now: datetime, last_success: datetime | None = None
) -> StaleTenant | None:
    """Return whether the last sync is longer ago than twice the median of the gaps, and than nine of ten.

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
    # Weekends are long gaps, and often; a pause that was there once is none to wait for again.
    long = sorted(gaps)[ceil(_USUAL_SHARE * len(gaps)) - 1]
    return StaleTenant(last, usual) if age > max(2 * usual, long) else None


def unusual_changes(overview: Overview, recent: tuple[HistoryEntry, ...]) -> Iterator[UnusualChange]:
    """Yield versions that deleted a quarter of a stream's rows or doubled them, and thrice what others did.

    Restorations are intended, and the first load of a stream grows from nothing: neither is listed.
    """
    for stream in overview.streams:
        changes = list(stream_changes(stream, recent))
        for entry, before in changes:
            counts = entry.streams[stream.stream]
            others = [other.streams[stream.stream] for other, _ in changes if other is not entry]
            for kind, changed in unusual_kinds(counts, before, others) if entry.kind == "commit" else ():
                yield UnusualChange(stream.stream, entry.version, entry.timestamp, kind, changed, before)


def stream_changes(
    stream: StreamOverview, recent: tuple[HistoryEntry, ...]
) -> Iterator[tuple[HistoryEntry, int]]:
    """Yield the versions that changed a stream, newest first, with its rows before; not its first load."""
    rows = stream.rows
    for entry in recent:
        if counts := entry.streams.get(stream.stream):
            rows += counts.deleted - counts.inserted
            if rows <= 0:
                return  # the first version, or another writer's change, which has no counts
            yield entry, rows


def unusual_kinds(
    counts: Counts, rows_before: int, others: Sequence[Counts]
) -> Iterator[tuple[Literal["deletion", "growth"], int]]:
    """Yield what is unusual about a change of so many rows, with the deleted or inserted rows.

    ``others`` are the stream's other changes.
    """
    deleted = max((other.deleted for other in others), default=0)
    if counts.deleted >= max(_DELETED_SHARE * rows_before, _TIMES_USUAL * deleted + 1):
        yield "deletion", counts.deleted
    inserted = max((other.inserted for other in others), default=0)
    if counts.inserted >= max(_GROWN_MIN, _GROWN_SHARE * rows_before, _TIMES_USUAL * inserted + 1):
        yield "growth", counts.inserted


def _all_drift(
    tenant: Tenant,
    state: TenantState,
    recent: tuple[HistoryEntry, ...],
    before: tuple[int, tuple[SchemaDrift, ...]] | None,
) -> tuple[int, tuple[SchemaDrift, ...]]:
    """Return earlier findings that are still listed, and the new ones."""
    seen, known = before or (-1, ())
    entries = {entry.version: entry for entry in recent}
    new = {version: entry for version, entry in entries.items() if entry.streams and version > seen}
    found = [*_drift(tenant, state, new), *(item for item in known if item.version in entries)]
    return state.version, tuple(sorted(found, key=lambda item: -item.version))


def _drift(tenant: Tenant, state: TenantState, entries: Mapping[int, HistoryEntry]) -> Iterator[SchemaDrift]:
    """Yield those of the versions (the newest first) that changed columns."""
    log = tenant.context.log
    # Per stream, the change whose columns are known while earlier ones are not yet read.
    open_ones: dict[str, tuple[HistoryEntry, StreamChange, Mapping[str, str]]] = {}
    for version, entry in log.entries_down(state, entries):
        for change in entry.streams:
            content = change_content(log, change) if change.lands else ""
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
                before = table_snapshot(log, state, change.stream, change.table_version - 1)
            except VersionNotFound:
                continue  # cleaned away
            yield from _compare_columns(first, change, after, type_names(before.delta_schema))


def _metadata(content: str) -> Metadata | None:
    if '"metaData"' not in content:
        return None
    actions = (parse_line(line) for line in content.split("\n") if line.startswith('{"metaData"'))
    return next((action for action in actions if isinstance(action, Metadata)), None)


def _compare_columns(
    entry: HistoryEntry, change: StreamChange, columns: Mapping[str, str], before: Mapping[str, str]
) -> Iterator[SchemaDrift]:
    changes = ColumnChanges.between(before, columns)
    if changes.added or changes.dropped or changes.retyped:
        yield SchemaDrift(str(change.stream), entry.version, entry.timestamp, changes)
