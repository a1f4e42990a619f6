"""Differences of rows between versions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import StreamNotFound
from freezeframe.service.base.json_values import json_value
from freezeframe.store import Tenant
from freezeframe.store.diff.row_diff import BEFORE, CHANGE_TYPE, changed_cells
from freezeframe.store.diff.row_diff_pages import ChangeCursor, Comparison, change_counts
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import stored_key, type_names
from freezeframe.store.versions.tenant_diff import StreamDifference

# Row differences as JSON: before, after, and the changed cells (pure).

RowFate = Literal["insert", "update", "delete"]


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row at both versions: ``before`` is empty for a new one, ``after`` for a deleted one."""

    fate: RowFate
    before: dict[str, Any]
    after: dict[str, Any]
    changed: tuple[str, ...]
    """Of an update: the columns whose values are not the same."""


def changed_rows(table: pa.Table) -> Iterator[ChangedRow]:
    """The rows of a table of changes (see ``Stream.changes``), in its order."""
    for record in shown_rows(table):
        fate = record.pop(CHANGE_TYPE)
        before = record.pop(BEFORE) or {}
        if fate == "delete":
            yield ChangedRow("delete", _plain_row(record), {}, ())
            continue
        if fate == "insert":
            yield ChangedRow("insert", {}, _plain_row(record), ())
            continue
        differing = tuple(name for name, value in record.items() if not _same(before.get(name), value))
        yield ChangedRow("update", _plain_row(before), _plain_row(record), differing)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other)


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json_value(value) for name, value in row.items()}


# Schema difference between two versions of a stream.


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """Columns by name with Delta's types: added, dropped, and of another type (the old one, the new one)."""

    added: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    retyped: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def between(cls, old: Mapping[str, str], new: Mapping[str, str]) -> ColumnChanges:
        """The difference between the columns of two versions."""
        return cls(
            {name: kind for name, kind in new.items() if name not in old},
            {name: kind for name, kind in old.items() if name not in new},
            {name: (kind, new[name]) for name, kind in old.items() if new.get(name, kind) != kind},
        )


# Row difference between two versions of the tenant, with each changed cell.


@dataclass(frozen=True, slots=True)
class DifferencePlace:
    """Where a page begins: between which versions of the tenant, after which change and how many of them.

    ``told`` is what the first page told of all changes.
    """

    before: int
    after: int
    place: ChangeCursor
    rows_before: int
    told: AllChanges

    def to_json(self) -> list[Any]:
        """The place as a cursor holds it."""
        return [self.before, self.after, self.place.to_json(), self.rows_before, self.told.to_json()]

    @classmethod
    def of_json(cls, record: Sequence[Any]) -> DifferencePlace:
        """The place that ``to_json`` gave."""
        before, after, place, rows_before, told = record
        return cls(before, after, ChangeCursor.of_json(place), rows_before, AllChanges.of_json(told))


@dataclass(frozen=True, slots=True)
class AllChanges:
    """Totals of a difference: counts (None: too many to count), and changed columns.

    ``changed`` says in how many updated rows each column changed, of all rows or of the first page's.
    """

    counts: Counts | None
    changed: dict[str, int]

    def to_json(self) -> list[Any]:
        """The cursor's content; the first page determines the columns."""
        return [None if self.counts is None else self.counts.to_json()]

    @classmethod
    def of_json(cls, record: Sequence[Any]) -> AllChanges:
        """What ``to_json`` gave."""
        (counts,) = record
        return cls(None if counts is None else Counts(**counts), {})


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Some of the rows that differ, and what became of all of them, or of those that were looked at.

    ``columns`` has the columns in which something changed first, ``changed`` counts the updated rows
    in which each of them did.
    """

    before: int
    after: int
    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    changed: dict[str, int] = field(default_factory=dict)
    columns_added: dict[str, str] = field(default_factory=dict)
    columns_dropped: dict[str, str] = field(default_factory=dict)
    columns_retyped: dict[str, tuple[str, str]] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    total: int = 0
    is_total_exact: bool = True
    rows: tuple[ChangedRow, ...] = ()
    following: DifferencePlace | None = None


@dataclass(frozen=True, slots=True)
class DifferenceWanted:
    """How many rows, how many to leave out first, whether to count all (None: where that is quick)."""

    limit: int = 100
    offset: int = 0
    counts: bool | None = None


def row_difference(
    tenant: Tenant,
    stream: str,
    before: int,
    after: int | None,
    wanted: DifferenceWanted,
    place: DifferencePlace | None = None,
) -> RowDifference:
    """The rows of a stream that differ between two versions of the tenant (``after`` None: now).

    A page is found in little memory, however many rows differ; of more than some 200,000 rows that would
    have to be read all are counted only if the log has the counts, or on request.
    """
    difference = tenant.diff(before, after if place is None else place.after)
    found = difference.streams.get(stream)
    if found is None:
        if stream not in tenant.streams(before) and stream not in tenant.streams(difference.after):
            raise StreamNotFound(
                f"There is no stream {stream!r} at either version.",
                cause="It was made later, was gone by then, or has another name.",
                remedy="Check the name.",
                stream=stream,
            )
        return RowDifference(difference.before, difference.after)
    comparison = Comparison(found.before, found.after)
    page = comparison.page(wanted.offset + wanted.limit, None if place is None else place.place)
    told = (
        place.told if place is not None else _summarize(tenant, found, difference.after, comparison, wanted)
    )
    table = page.table.slice(wanted.offset)
    seen = len(page.table) + (0 if place is None else place.rows_before)
    counts = told.counts
    if counts is None and page.following is None and place is None:
        counts = comparison.counts()
    changed = told.changed or changed_cells(table)
    snapshot = found.after or found.before
    key = stored_key(snapshot.metadata) or () if snapshot else ()
    old, new = _columns(found.before), _columns(found.after)
    names = [name for name in (new or old) if name not in key]
    columns = ColumnChanges.between(old, new) if old and new else ColumnChanges()
    following = None
    if page.following is not None:
        following = DifferencePlace(difference.before, difference.after, page.following, seen, told)
    return RowDifference(
        difference.before,
        difference.after,
        key=key,
        columns=(*key, *sorted(names, key=lambda name: -changed.get(name, 0))),
        changed=changed,
        columns_added=columns.added,
        columns_dropped=columns.dropped,
        columns_retyped=columns.retyped,
        counts=counts or Counts(),
        total=counts.changed if counts else seen + int(following is not None),
        is_total_exact=counts is not None or following is None,
        rows=tuple(changed_rows(table)),
        following=following,
    )


def _summarize(
    tenant: Tenant, found: StreamDifference, version: int, comparison: Comparison, wanted: DifferenceWanted
) -> AllChanges:
    """The counts of all changes: counted now, or taken from the one update that made them all."""
    if comparison.is_counted(wanted.counts):
        kinds, changed = Counts(), Counter[str]()
        for table in comparison.tables():
            kinds += change_counts(table)
            changed.update(changed_cells(table))
        return AllChanges(kinds, dict(changed))
    last = next(iter(tenant.history(1, until=version, stream=found.name)), None)
    versions = [-1 if item is None else item.version for item in (found.before, found.after)]
    is_one_step = last is not None and last.kind in ("commit", "restore") and versions[0] + 1 == versions[1]
    if last is None or not is_one_step:
        return AllChanges(None, {})
    return AllChanges(replace(last.streams[found.name], unchanged=0), {})


def _columns(snapshot: Any) -> dict[str, str]:
    """The types of a snapshot's columns by name, as Delta names them."""
    return {} if snapshot is None else type_names(snapshot.schema)
