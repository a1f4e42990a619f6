"""The first rows of a stream by any column: one pass in bounded memory.

Sorting everything would take the memory of everything. Batches are read one by one, of the columns that
are shown; what cannot be among the first rows is dropped at once. A stream of more cells than one pass
reads in about a second is refused in words, before anything is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import InvalidOption, TooLarge
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.script.types.written_values import predicate
from freezeframe.service.rows.streams import (
    Moment,
    require_columns,
    row_batches,
    shown_columns,
    stream_snapshot,
)
from freezeframe.store import Tenant
from freezeframe.store.schema.columns import stored_key

CELLS_MAX = 30_000_000
"""So many cells are read in about a second on one core."""

ROWS_MAX = 10_000
"""As far down as a sorted stream is shown."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows in order, and the number of all rows that match."""

    rows: pa.Table
    total: int


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Column and direction of sorting; missing values come last either way."""

    column: str
    is_down: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """At most ``limit`` rows after the first ``offset``."""

    offset: int = 0
    limit: int = 100

    @property
    def end(self) -> int:
        """The number of rows before the window's end."""
        return self.offset + self.limit


FIRST_ROWS = Window()


def sorted_rows(
    tenant: Tenant,
    stream: str,
    moment: Moment,
    order: SortOrder,
    *,
    columns: Sequence[str] = (),
    where: Sequence[str] = (),
    window: Window = FIRST_ROWS,
) -> SortedRows:
    """The window's rows, by ``order`` and then by key."""
    snapshot = stream_snapshot(tenant, stream, moment)
    known = shown_columns(snapshot)
    require_columns(known, [order.column, *columns])
    if pa.types.is_nested(known.field(order.column).type):
        raise InvalidOption(
            f"The column {order.column!r} has no order.",
            cause=f"Its values are of type {known.field(order.column).type}.",
            remedy="Sort by another column.",
        )
    if window.end > ROWS_MAX:
        raise TooLarge(
            f"A sorted stream is shown down to row {ROWS_MAX:,}.",
            cause="Rows further down would have to be sorted anew for every page.",
            remedy="Filter the rows, or download them.",
        )
    shown = list(columns) or known.names
    names = [*shown, *dict.fromkeys(name for name in _keys(snapshot, order) if name not in shown)]
    expression = predicate(tuple(where), known) if where else None
    _require_sortable(snapshot, expression, len(names))
    first, total = _first(row_batches(snapshot, names, expression), snapshot, order, window.end)
    if first is None:
        return SortedRows(pa.schema([known.field(name) for name in shown]).empty_table(), 0)
    return SortedRows(first.slice(window.offset, window.limit).select(shown), total)


def _keys(snapshot: Snapshot, order: SortOrder) -> list[str]:
    """The sort keys: the column, then the key, so that pages of equal values do not overlap."""
    nested = {field.name for field in shown_columns(snapshot) if pa.types.is_nested(field.type)}
    key = stored_key(snapshot.metadata) or ()
    return list(dict.fromkeys([order.column, *(name for name in key if name not in nested)]))


def _require_sortable(snapshot: Snapshot, where: pc.Expression | None, width: int) -> None:
    count = rows.count(snapshot)
    if count * width > CELLS_MAX and where is not None:
        # A file has about as many rows as its share of the bytes.
        kept = sum(rows.files_matching(snapshot, where)["size"].to_pylist())
        count = math.ceil(count * kept / max(1, snapshot.size))
    if count * width > CELLS_MAX:
        raise TooLarge(
            f"{count:,} rows of {width} columns are too much to be sorted at once.",
            cause=f"One pass reads at most {CELLS_MAX:,} cells.",
            remedy="Choose fewer columns, filter by the key, or download the rows.",
            rows=count,
            columns=width,
        )


def _first(
    batches: Iterator[pa.RecordBatch], snapshot: Snapshot, order: SortOrder, wanted: int
) -> tuple[pa.Table | None, int]:
    """The first rows of all, sorted, and how many rows there were."""
    names = _keys(snapshot, order)
    keys = [(order.column, "descending" if order.is_down else "ascending")]
    keys += [(name, "ascending") for name in names[1:]]
    best: pa.Table | None = None
    total = 0
    for batch in batches:
        total += batch.num_rows
        table = _candidates(pa.Table.from_batches([batch]), best, order, wanted)
        if not table.num_rows:
            continue
        joined = table if best is None else pa.concat_tables([best, table])
        best = joined.take(pc.sort_indices(joined, sort_keys=keys)[:wanted])
    return best, total


def _candidates(table: pa.Table, best: pa.Table | None, order: SortOrder, wanted: int) -> pa.Table:
    """The rows that can be among the first: those that do not sort after the last one found so far."""
    if best is None or len(best) < wanted:
        return table
    last = best[order.column][-1]
    if not last.is_valid or (pa.types.is_floating(last.type) and math.isnan(last.as_py())):
        return table
    column = table[order.column]
    keeps = pc.greater_equal(column, last) if order.is_down else pc.less_equal(column, last)
    return table.filter(keeps)
