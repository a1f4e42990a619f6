"""Rows and bytes of a tenant after each version, computed from its logs.

The oldest version that is told is looked at as a whole; from there every entry of the tenant log says
what it added and took away. Only an entry that does not say so (a table taken over, a long commit) has
its table looked at again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from freezeframe.clock import moment
from freezeframe.identifiers import StreamName
from freezeframe.log.scan import rows
from freezeframe.store import Tenant
from freezeframe.store.tenant_log.entry import StreamChange
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.tenant_log.table_lookup import table_snapshot
from freezeframe.store.transaction.transaction import TenantPlace


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """A version of the tenant, and what it held: rows and bytes of all streams, bytes of all files."""

    version: int
    timestamp: datetime
    rows: int
    stream_bytes: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class _Size:
    """Rows and bytes of one stream."""

    rows: int
    bytes: int


def growth(tenant: Tenant, limit: int) -> tuple[GrowthPoint, ...]:
    """The newest ``limit`` versions that are kept, the oldest first, without those that only a tag keeps.

    Raises:
        CorruptLog: a log is damaged.
    """
    place = tenant.place
    newest = place.log.current_state()
    if newest.version < 0:
        return ()
    first = max(newest.floor, newest.version - limit + 1, 0)
    state = place.log.state_at(first)
    sizes = {name: _size(place, state, name) for name in state.streams}
    points = [_point(state, sizes)]
    for version in range(first + 1, newest.version + 1):
        entry = place.log.entry(version)
        state = state.after(version, entry)
        for change in entry.streams:
            name = str(change.stream)
            if name in state.streams:
                sizes[name] = _after(sizes.get(name), change) or _size(place, state, name)
        sizes = {name: size for name, size in sizes.items() if name in state.streams}
        points.append(_point(state, sizes))
    return tuple(points)


def _point(state: TenantState, sizes: dict[str, _Size]) -> GrowthPoint:
    return GrowthPoint(
        state.version,
        moment(state.timestamp_ms),
        sum(size.rows for size in sizes.values()),
        sum(size.bytes for size in sizes.values()),
        sum(file.size for file in state.files.values()),
    )


def _after(size: _Size | None, change: StreamChange) -> _Size | None:
    """The stream's size after a change; None where the entry lacks it."""
    if change.is_external or not change.content:
        return None
    counts, known = change.counts, size or _Size(0, 0)
    total = known.bytes
    for line in change.content.splitlines():
        action = json.loads(line)
        if action.get("commitInfo", {}).get("operation") == "RESTORE":
            return None  # it counts the rows of files that come and go, deleted ones among them
        if "add" in action:
            total += action["add"]["size"]
        elif "remove" in action:
            if not isinstance(action["remove"].get("size"), int):
                return None
            total -= action["remove"]["size"]
    found = _Size(known.rows + counts.inserted - counts.deleted, total)
    # A stream that comes back after it was dropped begins with what its table still held.
    return found if size is not None or min(found.rows, found.bytes) >= 0 else None


def _size(place: TenantPlace, state: TenantState, name: str) -> _Size:
    snapshot = table_snapshot(place.storage, state, StreamName(name))
    return _Size(rows.count(snapshot), snapshot.size)
