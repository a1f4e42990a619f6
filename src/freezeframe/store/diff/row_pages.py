"""Pages of a snapshot's rows, without reading later rows.

Rows are in the order of the key, and without a key in the order of the files and their rows. A first pass
reads only the key's columns of row groups whose statistics allow a row of the page, and stops when no other
group can. A second pass reads the page's rows.
"""

from __future__ import annotations

import functools
import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.errors import MissingColumn, VersionNotFound
from freezeframe.log.format.schema import fields_of, mapping_mode, physical_name
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_skipping import FileFacts, as_expression, columns_of, keep, value_bounds
from freezeframe.log.scan.file_rows import GroupedFile, RowGroup
from freezeframe.log.scan.rows import ReadableSnapshot
from freezeframe.store.schema.columns import VALID_TO, arrow_columns, read_system_columns, stored_key
from freezeframe.store.schema.type_compatibility import in_common
from freezeframe.store.table.reader import as_typed_so_far, row_columns

_POSITION, _FILE = "_position", "_file"
_ANYTHING = (0, None)
_LAST = 2**62
_Bound = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class RowCursor:
    """Location of a row: the path of its file in the log, and its position in it, from 0."""

    path: str
    position: int


@dataclass(frozen=True, slots=True)
class RowPage:
    """A page of sorted rows, the location of each (the number of its path), and whether more follow."""

    rows: pa.Table
    paths: Sequence[str]
    files: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    has_more: bool

    @property
    def cursors(self) -> tuple[RowCursor, ...]:
        """The location of each row."""
        return tuple(map(self.cursor, range(len(self.files))))

    def cursor(self, number: int) -> RowCursor:
        """Return the location of a row."""
        return RowCursor(self.paths[self.files[number]], int(self.positions[number]))

    def first(self, count: int) -> RowPage:
        """Return the page of the first rows, which others follow."""
        return RowPage(
            self.rows.slice(0, count), self.paths, self.files[:count], self.positions[:count], has_more=True
        )


def row_page(
    snapshot: ReadableSnapshot,
    columns: Sequence[str] | None = None,
    where: Any = None,
    *,
    after: RowCursor | None = None,
    offset: int = 0,
    limit: int = 100,
) -> RowPage:
    """Return the first ``limit`` current matching rows after a row's location and ``offset`` further rows."""
    shown, expression = _columns_and_predicate(snapshot, columns, where)
    finder = _Finder(snapshot, page_order(snapshot), expression)
    found = finder.first(offset + limit + 1, None if after is None else finder.at(after))
    return _page(snapshot, finder, found, shown, offset, limit)


def rows_after_key(
    snapshot: ReadableSnapshot,
    order: tuple[str, ...],
    after: pa.Table | None,
    limit: int,
    only: Mapping[str, npt.NDArray[np.int64]],
    kinds_of: Mapping[str, pa.DataType] = MappingProxyType({}),
) -> RowPage:
    """Return the first rows with a key after that of ``after``, a table of one row (None: from the first).

    ``order`` are columns that identify a row. Of a file in ``only`` just these positions are read. Keys are
    ordered in the types ``kinds_of``, if it names any.
    """
    shown, expression = _columns_and_predicate(snapshot, stored_row_columns(snapshot), None)
    finder = _Finder(snapshot, order, expression, only, kinds_of)
    found = finder.first(limit + 1, None if after is None else finder.beyond(after))
    return _page(snapshot, finder, found, shown, 0, limit)


def _page(
    snapshot: ReadableSnapshot,
    finder: _Finder,
    found: pa.Table,
    shown: Sequence[str],
    offset: int,
    limit: int,
) -> RowPage:
    page = found.slice(offset, limit)
    files, positions = (page[name].to_numpy() for name in (_FILE, _POSITION))
    table = _rows_at(snapshot, finder.paths, files, positions, shown)
    return RowPage(table, finder.paths, files, positions, len(found) > offset + limit)


def key_at(snapshot: ReadableSnapshot | None, cursor: RowCursor | None, key: Sequence[str]) -> pa.Table:
    """Return the columns ``key`` of the row at a location."""
    if snapshot is None or cursor is None or cursor.path not in snapshot.files["path"].to_pylist():
        raise VersionNotFound(
            "The cursor names a file that this version does not have.",
            cause="It belongs to other versions, or an erasure wrote the files again.",
            remedy="Start again with the first page.",
        )
    return rows.read_at(snapshot, {cursor.path: np.array([cursor.position])}, list(key))


def stored_row_columns(snapshot: ReadableSnapshot) -> list[str]:
    """Return the columns of current rows that files can store, also those without a type so far."""
    void = {field["name"] for field in fields_of(snapshot.delta_schema) if field["type"] in ("void", "null")}
    return [name for name in row_columns(snapshot).names if name not in void]


def page_order(snapshot: ReadableSnapshot) -> tuple[str, ...]:
    """Return the key columns that define the order of pages; empty for a key with nested columns."""
    schema = arrow_columns(snapshot.delta_schema)
    key = stored_key(snapshot.metadata) or ()
    return tuple(name for name in key if not kinds.is_nested(schema.field(name).type))


def matching_count(snapshot: ReadableSnapshot, where: Any = None) -> int:
    """Return the number of current matching rows, from statistics where possible, else from few columns."""
    _, expression = _columns_and_predicate(snapshot, (), where)
    if expression is None:
        return rows.count(snapshot)
    needed = columns_of(expression, arrow_columns(snapshot.delta_schema))
    return sum(batch.num_rows for batch in rows.read_batches(snapshot, needed[:1], expression))


def _rows_at(
    snapshot: ReadableSnapshot,
    paths: Sequence[str],
    files: npt.NDArray[np.int64],
    positions: npt.NDArray[np.int64],
    columns: Sequence[str],
) -> pa.Table:
    """Return the rows at positions of files (numbers among ``paths``), in the order given."""
    order = np.lexsort((positions, files))
    in_order = positions[order]
    wanted = {paths[number]: in_order[files[order] == number] for number in np.unique(files).tolist()}
    table = rows.read_at(snapshot, wanted, columns)
    return as_typed_so_far(snapshot, table.take(pa.array(np.argsort(order))))


def _columns_and_predicate(
    snapshot: ReadableSnapshot, columns: Sequence[str] | None, where: Any
) -> tuple[list[str], pc.Expression | None]:
    """Return the columns to return and the predicate, restricted to current rows of a stream with history."""
    own = read_system_columns(snapshot.metadata)
    schema = arrow_columns(snapshot.delta_schema)
    expression = None if where is None else as_expression(where, schema)
    known = own.removed_from(schema) if own.has_history else schema
    shown = (
        [item.name for item in known if not kinds.is_null(item.type)] if columns is None else list(columns)
    )
    MissingColumn.refuse(shown, known.names, "The table has no column {}.")
    if own.has_history:
        holds = pc.field(VALID_TO).is_null()
        expression = holds if expression is None else holds & expression
    return shown, expression


class _Finder:
    """Locates the first rows in order, reading row groups by ascending lower bound."""

    def __init__(
        self,
        snapshot: ReadableSnapshot,
        order: tuple[str, ...],
        where: pc.Expression | None,
        only: Mapping[str, npt.NDArray[np.int64]] = MappingProxyType({}),
        kinds_of: Mapping[str, pa.DataType] = MappingProxyType({}),
    ) -> None:
        self._snapshot = snapshot
        self._order = order
        self._where = where
        self._only = only
        listed = snapshot.files.select(["path", "stats", "modification_time"]).to_pylist()
        # The log may list the same files in another order after a checkpoint; sorted paths are stable.
        listed.sort(key=lambda file: (file["modification_time"], file["path"]))
        self.paths = [str(file["path"]) for file in listed]
        self._statistics = [file["stats"] for file in listed]
        schema = arrow_columns(snapshot.delta_schema)
        mode = mapping_mode(snapshot.protocol, snapshot.metadata)
        self._schema_now = schema
        fields = fields_of(snapshot.delta_schema)
        self._stored = {field["name"]: physical_name(field, mode) for field in fields}
        self._lead = schema.field(order[0]) if order else None
        self._lead_name = self._stored[order[0]] if order else ""
        self._fields = [pa.field(name, kinds_of.get(name, schema.field(name).type)) for name in order]
        # Converted values may sort differently, so statistics of the stored type do not apply.
        self._has_bounds = self._lead is not None and self._lead.type == self._fields[0].type
        self._position = _POSITION + "_" * (max(map(len, schema.names), default=0) + 1)

    def first(self, wanted: int, start: pa.Table | None) -> pa.Table:
        """Return the first ``wanted`` rows after ``start``: their key, ``_file`` and ``_position``."""
        opens = rows.grouped_files(self._snapshot, self._order, self._where, self._only)
        heap: list[tuple[_Bound, int, int, Callable[[], Iterator[Any]]]] = []
        for number, path in enumerate(self.paths):
            if path in opens and self._may_follow(number, self._statistics[number], start):
                bound = self._bound(self._statistics[number])
                heap.append((bound, number, -1, functools.partial(self._groups, number, opens[path], start)))
        heapq.heapify(heap)
        pool = self._schema().empty_table()
        while heap and not (len(pool) == wanted and self._is_beyond(heap[0][0], pool)):
            _, _, at, read = heapq.heappop(heap)
            if at < 0:
                for entry in read():
                    heapq.heappush(heap, entry)
            else:
                pieces: list[pa.Table] = []
                for piece in read():
                    pieces.append(self._following(piece, start))
                    if sum(map(len, pieces)) >= wanted:
                        pool, pieces = self._best(pool, pieces, wanted), []
                pool = self._best(pool, pieces, wanted)
        return pool

    def _schema(self) -> pa.Schema:
        numbers = [pa.field(_FILE, pa.int64()), pa.field(_POSITION, pa.int64())]
        fields = [pa.field(f"k{number}", field.type) for number, field in enumerate(self._fields)]
        return pa.schema([*fields, *numbers])

    def beyond(self, key: pa.Table) -> pa.Table:
        """Return a position after all rows with the key in the single row of ``key``."""
        return self._number_rows([key[name] for name in self._order], _LAST, pa.array([_LAST]))

    def at(self, cursor: RowCursor) -> pa.Table:
        """Return the row at a location."""
        found = key_at(self._snapshot, cursor, self._order)
        return self._number_rows(found.columns, self.paths.index(cursor.path), pa.array([cursor.position]))

    def _groups(
        self, number: int, opened: Callable[[], GroupedFile], start: pa.Table | None
    ) -> Iterator[Any]:
        """Return the heap entries of a file's row groups that may hold a wanted row."""
        file = opened()
        groups = list(file.groups(self._snapshot.delta_schema))
        for group, may_match in zip(groups, self._may_match(groups), strict=True):
            if may_match and self._may_follow(number, group.statistics, start, group):
                read = functools.partial(self._rows, number, file, group)
                yield self._bound(group.statistics), number, group.number, read

    def _may_match(self, groups: Sequence[RowGroup]) -> list[bool]:
        if self._where is None:
            return [True] * len(groups)
        wanted = pa.schema(
            [self._schema_now.field(name) for name in columns_of(self._where, self._schema_now)]
        )
        return keep(self._where, wanted, [FileFacts({}, group.statistics) for group in groups], self._stored)

    def _rows(self, number: int, file: GroupedFile, group: RowGroup) -> Iterator[pa.Table]:
        for batch in file.rows(group, self._where, self._position):
            keys = [batch.column(name) for name in self._order]
            yield self._number_rows(keys, number, batch.column(self._position))

    def _number_rows(self, keys: Sequence[Any], number: int, positions: pa.Array) -> pa.Table:
        files = pa.repeat(pa.scalar(number, pa.int64()), len(positions))
        typed = [
            key if key.type == field.type else in_common(key, field.type)
            for key, field in zip(keys, self._fields, strict=True)
        ]
        return pa.table([*typed, files, positions], schema=self._schema())

    def _best(self, pool: pa.Table, pieces: Sequence[pa.Table], wanted: int) -> pa.Table:
        found = pa.concat_tables([pool.slice(0, 0), *pieces])
        if len(pool) == wanted and self._order and pool["k0"][wanted - 1].is_valid:
            worst = pool["k0"][wanted - 1]
            found = found.filter(pc.invert(pc.fill_null(pc.greater(found["k0"], worst), fill_value=True)))
        if not len(found):
            return pool
        return _sort_rows(pa.concat_tables([pool, found])).slice(0, wanted).combine_chunks()

    def _following(self, found: pa.Table, start: pa.Table | None) -> pa.Table:
        """Return the rows after the last one of the previous page."""
        if start is None or not len(found):
            return found
        if (
            self._order
            and start["k0"][0].is_valid
            and pc.all(pc.greater(found["k0"], start["k0"][0])).as_py()
        ):
            return found
        is_start = pc.and_(
            pc.equal(found[_FILE], start[_FILE][0]), pc.equal(found[_POSITION], start[_POSITION][0])
        )
        both = _sort_rows(pa.concat_tables([start, found.filter(pc.invert(is_start))]))
        here = pc.and_(pc.equal(both[_FILE], start[_FILE][0]), pc.equal(both[_POSITION], start[_POSITION][0]))
        return both.slice(pc.index(here, value=True).as_py() + 1)

    def _bound(self, statistics: str | None) -> _Bound:
        """Return the lower bound of the leading key column; without a key, the order of the files."""
        if self._lead is None or not self._has_bounds:
            return _ANYTHING
        low, _ = value_bounds(self._lead, self._lead_name, statistics)
        return _ANYTHING if low is None else (1, _comparable(low))

    def _is_beyond(self, bound: _Bound, pool: pa.Table) -> bool:
        """Return whether all rows from the bound on sort after the rows found so far."""
        if self._lead is None:
            return True
        worst = pool["k0"][len(pool) - 1]
        return bool(bound[0] and worst.is_valid and bound[1] > _comparable(worst))

    def _may_follow(
        self, number: int, statistics: str | None, start: pa.Table | None, group: RowGroup | None = None
    ) -> bool:
        """Return whether a file, or a group of it, may hold a row after ``start``."""
        if start is None:
            return True
        if self._lead is None:
            file, position = start[_FILE][0].as_py(), start[_POSITION][0].as_py()
            ended = group is not None and number == file and group.start + group.rows <= position + 1
            return number >= file and not ended
        if not self._has_bounds:
            return True
        first = start["k0"][0]
        _, high = value_bounds(self._lead, self._lead_name, statistics)
        if high is None or not first.is_valid or _null_count(self._lead_name, statistics) != 0:
            return True
        return bool(_comparable(high) >= _comparable(first))


def _sort_rows(table: pa.Table) -> pa.Table:
    keys = [(name, "ascending") for name in table.column_names]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def _comparable(value: pa.Scalar) -> Any:
    """Return the value in a Python type with Arrow's order; times as integers, which have no range limit."""
    return value.value if kinds.is_temporal(value.type) else value.as_py()


def _null_count(name: str, statistics: str | None) -> int | None:
    found: Mapping[str, Any] = json.loads(statistics) if statistics else {}
    count = found.get("nullCount", {}).get(name)
    return count if isinstance(count, int) else None
