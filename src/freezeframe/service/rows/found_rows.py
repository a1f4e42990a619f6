"""Rows of tenants that hold a text: by their keys first, then in their columns of text, within bounds.

Keys are looked for in the files that can hold them; columns of text are read, a batch at a time. After each
step the caller gets control again, so that a search whose caller has gone ends there.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import ReportDamage, StreamNotFound, TenantNotFound
from freezeframe.log import Snapshot
from freezeframe.script.types.written_values import exact_values
from freezeframe.service.base.json_values import json_value
from freezeframe.service.rows.streams import Moment, row_batches, shown_columns, stream_snapshot
from freezeframe.store import Tenant
from freezeframe.store.schema.columns import stored_key

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
    """One search; iterated once, it tells rows as they are found, and how far it is after each step."""

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
        """Rows of whose key a column has the text as its value; None after each batch."""
        columns, key = shown_columns(snapshot), _key_names(snapshot)
        text = pa.chunked_array([pa.array([self._text], pa.string())])
        # A text that a column cannot hold is in none of its rows.
        typed = {name: exact_values(text, columns.field(name).type, naive_is_utc=True) for name in key}
        wanted = {name: values[0] for name, values in typed.items() if values is not None}
        if not wanted:
            return
        where = reduce(operator.or_, (pc.field(name) == value for name, value in wanted.items()))
        for batch in row_batches(snapshot, key, where):
            self._bytes += batch.nbytes
            for row in batch.slice(0, self._bounds.rows_of_stream + 1).to_pylist():
                column = next(name for name, value in wanted.items() if row[name] == value.as_py())
                yield _match(row, key, column)
            yield None

    def _by_text(self, snapshot: Snapshot) -> Iterator[_Match | None]:
        """Rows of which a column of text contains the text, in upper or lower case; None after each batch."""
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
        """Count the row, unless it was told already or its stream has told enough."""
        place = (tenant, stream, str(match.key))
        if self._is_full(tenant, stream) or (match.key and place in self._found):
            return False
        self._found.add(place)
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
