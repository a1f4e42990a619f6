"""The first rows of a stream by any column, and rows that hold a text, both in bounded memory.

Batches are read one by one, of the columns that are needed. A sort drops rows that cannot be among the first;
a stream with more cells than one pass reads in about a second is refused before anything is read. A search
looks for keys in the files that can hold them, then reads columns of text. It yields after each step, so that
the caller can end it.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import (
    InvalidOption,
    MissingColumn,
    ReportDamage,
    StreamNotFound,
    TenantNotFound,
    TooLarge,
)
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_skipping import as_expression
from freezeframe.script.types.written_values import exact_values
from freezeframe.service.rows.streams import (
    Moment,
    json_value,
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
    """Return the window's rows, by ``order`` and then by key."""
    snapshot = stream_snapshot(tenant, stream, moment)
    known = shown_columns(snapshot)
    MissingColumn.refuse([order.column, *columns], known.names)
    if pa.types.is_nested(known.field(order.column).type):
        raise InvalidOption(
            f"The column {order.column!r} has no order.",
            cause=f"Its values are of type {known.field(order.column).type}.",
            remedy="Sort by another column.",
        )
    if window.end > ROWS_MAX:
        raise TooLarge(
            f"A sorted stream is shown up to row {ROWS_MAX:,}.",
            cause="Later rows would have to be sorted again for every page.",
            remedy="Filter the rows, or download them.",
        )
    shown = list(columns) or known.names
    names = [*shown, *dict.fromkeys(name for name in _keys(snapshot, order) if name not in shown)]
    expression = as_expression(where, known) if where else None
    _require_sortable(snapshot, expression, len(names))
    first, total = _first(row_batches(snapshot, names, expression), snapshot, order, window.end)
    if first is None:
        return SortedRows(pa.schema([known.field(name) for name in shown]).empty_table(), 0)
    return SortedRows(first.slice(window.offset, window.limit).select(shown), total)


def _keys(snapshot: Snapshot, order: SortOrder) -> list[str]:
    """Return the sort keys: the column, then the key, so that pages of equal values do not overlap."""
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
            f"{count:,} rows of {width} columns are too many to sort.",
            cause=f"Sorting reads at most {CELLS_MAX:,} cells.",
            remedy="Choose fewer columns, filter by the key, or download the rows.",
            rows=count,
            columns=width,
        )


def _first(
    batches: Iterator[pa.RecordBatch], snapshot: Snapshot, order: SortOrder, limit: int
) -> tuple[pa.Table | None, int]:
    """Return the first rows of all, sorted, and how many rows there were."""
    names = _keys(snapshot, order)
    keys = [(order.column, "descending" if order.is_down else "ascending")]
    keys += [(name, "ascending") for name in names[1:]]
    best: pa.Table | None = None
    total = 0
    for batch in batches:
        total += batch.num_rows
        table = _candidates(pa.Table.from_batches([batch]), best, order, limit)
        if not table.num_rows:
            continue
        joined = table if best is None else pa.concat_tables([best, table])
        best = joined.take(pc.sort_indices(joined, sort_keys=keys)[:limit])
    return best, total


def _candidates(table: pa.Table, best: pa.Table | None, order: SortOrder, limit: int) -> pa.Table:
    """Return the rows that can be among the first: those that do not sort after the last one found so far."""
    if best is None or len(best) < limit:
        return table
    last = best[order.column][-1]
    if not last.is_valid or (pa.types.is_floating(last.type) and math.isnan(last.as_py())):
        return table
    column = table[order.column]
    keeps = pc.greater_equal(column, last) if order.is_down else pc.less_equal(column, last)
    return table.filter(keeps)


_VALUE_LENGTH_MAX = 200
_LETTERS_MIN = 3


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """Where a search ends: seconds, rows in all and of one stream, and bytes of columns that were read."""

    seconds: float = 10.0
    rows: int = 100
    rows_of_stream: int = 5
    bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row: its key (empty where the stream has none), and the column and value that hold the text."""

    tenant: str
    stream: str
    key: dict[str, Any]
    column: str
    value: str


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search has come. ``is_whole`` is false where bounds or damage left something out."""

    tenants: int
    unreadable: int
    bytes: int
    is_whole: bool


class RowSearch:
    """One search; ``run`` yields rows as they are found, and the progress after each step."""

    def __init__(self, text: str, bounds: SearchBounds | None = None) -> None:
        self._text = text
        self._bounds = SearchBounds() if bounds is None else bounds
        self._ends_at = time.monotonic() + self._bounds.seconds
        self._found: set[tuple[str, str, str]] = set()
        self._by_stream: dict[tuple[str, str], int] = {}
        self._seen: set[str] = set()
        self._unreadable: set[str] = set()
        self._bytes = 0
        self._is_whole = True

    @property
    def progress(self) -> SearchProgress:
        """How far the search is."""
        return SearchProgress(
            len(self._seen), len(self._unreadable), self._bytes, self._is_whole and not self._unreadable
        )

    def run(
        self, tenants: Callable[[], Iterable[str]], open_tenant: Callable[[str], Tenant]
    ) -> Iterator[FoundRow | SearchProgress]:
        """Search the tenants, by their keys and then again by their texts; the last value is the outcome.

        A tenant that was deleted meanwhile is passed over, one that is damaged is counted.
        """
        looks = [self._by_key, *([self._by_text] if len(self._text) >= _LETTERS_MIN else [])]
        for look in looks:
            for name in tenants():
                if self._is_over():
                    break
                try:
                    yield from self._of_tenant(name, open_tenant(name), look)
                except TenantNotFound:
                    continue
                except ReportDamage:
                    self._unreadable.add(name)
                self._seen.add(name)
                yield self.progress
        yield self.progress

    def _of_tenant(
        self, name: str, tenant: Tenant, look: Callable[[Snapshot], Iterator[_Match | None]]
    ) -> Iterator[FoundRow | SearchProgress]:
        for stream in tenant.streams():
            try:
                snapshot = stream_snapshot(tenant, stream, Moment())
            except StreamNotFound:
                continue  # it was dropped meanwhile
            for match in look(snapshot):
                if match is None:
                    yield self.progress
                elif self._is_new(name, stream, match):
                    yield FoundRow(name, stream, match.key, match.column, match.value)
                if self._is_over() or self._is_full(name, stream):
                    break

    def _by_key(self, snapshot: Snapshot) -> Iterator[_Match | None]:
        """Yield rows with the text as a column of their key; None after each batch."""
        columns, key = shown_columns(snapshot), _key_names(snapshot)
        text = pa.chunked_array([pa.array([self._text], pa.string())])
        # A text that a column cannot hold is in none of its rows.
        typed = {name: exact_values(text, columns.field(name).type, naive_is_utc=True) for name in key}
        values_by_column = {name: values[0] for name, values in typed.items() if values is not None}
        if not values_by_column:
            return
        where = reduce(operator.or_, (pc.field(name) == value for name, value in values_by_column.items()))
        for batch in row_batches(snapshot, key, where):
            self._bytes += batch.nbytes
            for row in batch.slice(0, self._bounds.rows_of_stream + 1).to_pylist():
                column = next(name for name, value in values_by_column.items() if row[name] == value.as_py())
                yield _match(row, key, column)
            yield None

    def _by_text(self, snapshot: Snapshot) -> Iterator[_Match | None]:
        """Yield rows with a column that contains the text, in upper or lower case; None after each batch."""
        columns, key = shown_columns(snapshot), _key_names(snapshot)
        texts = [
            field.name
            for field in columns
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        if not texts:
            return
        for batch in row_batches(snapshot, list(dict.fromkeys([*key, *texts]))):
            self._bytes += batch.nbytes
            held: dict[int, str] = {}
            for name in texts:
                holds = pc.match_substring(batch.column(name), self._text, ignore_case=True)
                for at in pc.indices_nonzero(holds.fill_null(False))[: self._bounds.rows_of_stream + 1]:  # noqa: FBT003 - Arrow's value
                    held.setdefault(at.as_py(), name)
            for at in sorted(held):
                (row,) = batch.slice(at, 1).to_pylist()
                yield _match(row, key, held[at])
            yield None

    def _is_new(self, tenant: str, stream: str, match: _Match) -> bool:
        """Count the row unless it was yielded before or its stream has reached its limit."""
        row = (tenant, stream, str(match.key))
        if self._is_full(tenant, stream) or (match.key and row in self._found):
            return False
        self._found.add(row)
        self._by_stream[tenant, stream] = self._by_stream.get((tenant, stream), 0) + 1
        return True

    def _is_full(self, tenant: str, stream: str) -> bool:
        is_full = self._by_stream.get((tenant, stream), 0) >= self._bounds.rows_of_stream
        self._is_whole = self._is_whole and not is_full
        return is_full

    def _is_over(self) -> bool:
        is_over = (
            time.monotonic() >= self._ends_at
            or self._bytes >= self._bounds.bytes
            or sum(self._by_stream.values()) >= self._bounds.rows
        )
        self._is_whole = self._is_whole and not is_over
        return is_over


@dataclass(frozen=True, slots=True)
class _Match:
    key: dict[str, Any]
    column: str
    value: str


def _match(row: dict[str, Any], key: Sequence[str], column: str) -> _Match:
    return _Match(
        {name: json_value(row[name]) for name in key},
        column,
        str(json_value(row[column]))[:_VALUE_LENGTH_MAX],
    )


def _key_names(snapshot: Snapshot) -> list[str]:
    return list(stored_key(snapshot.metadata) or ())
