"""The comparison of two versions of a stream, of any size (``row_changes`` defines what a change is).

Only files that the versions do not share are read. By key both sides are read side by side in windows of some
thousand rows, so memory does not grow with the stream. Rows without a common key are compared whole, up to a
limit.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.errors import InvalidOption, SchemaDriftError, TooLarge
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.log.scan.rows import ReadableSnapshot, part_of
from freezeframe.store.diff.row_changes import (
    BEFORE,
    CHANGE_TYPE,
    DELETE,
    CellPair,
    RowChanges,
    compare_tables,
    count_changes,
    count_contents,
    join_changes,
)
from freezeframe.store.diff.row_pages import RowCursor, RowPage, key_at, rows_after_key, stored_row_columns
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import DELETED, arrow_columns, read_system_columns, stored_key
from freezeframe.store.schema.type_compatibility import comparison_type, exact_cast, in_common
from freezeframe.store.table.keys import KeyNumbers, keys_as
from freezeframe.store.table.reader import (
    deleted_positions,
    in_schema,
    read_rows,
    read_rows_at,
    row_columns,
)

WHOLE_ROWS_MAX = 500_000
CONTENT_ROWS_MAX = 20_000_000
"""So many rows without a common key are counted: a column of all of them is in memory."""
COUNTED_ROWS_MAX = 200_000
_FIRST_ROWS = 20_000
"""Rows of a side in the first window: enough for a page; each window has twice as many as the one before."""
_WINDOW_ROWS = 200_000
_WINDOW_BYTES = 64 * 1024 * 1024
"""In memory, where rows take four to ten times the bytes of their file; a window has 100 rows at least."""
_BYTES_OF_STORED = 8
_ROWS_MIN = 100


@dataclass(frozen=True, slots=True)
class ChangeCursor:
    """End of a page of changes: a row of the old or the new side, or a number of changes."""

    side: str
    row: RowCursor | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class ChangePage:
    """A page of changes, and its end position if more follow."""

    changes: RowChanges
    following: ChangeCursor | None


class Comparison:
    """Comparison of two versions of a stream; None: the stream does not exist in that version.

    With ``keys`` (columns of a key of both versions, each row once) only these rows are compared, and with
    ``columns`` only these columns, in these types. Of a stream with a history the current rows of each
    version are compared; a newly flagged row is a deletion. If the versions have different keys, or none,
    rows are compared whole. Then pages take at most ``whole_rows_max``, and counts ``CONTENT_ROWS_MAX``. A
    column that only the earlier version has changes no row, except where it ``keeps_dropped`` ones: they are
    null in the later.
    """

    def __init__(
        self,
        before: Snapshot | None,
        after: Snapshot | None,
        keys: pa.Table | None = None,
        *,
        columns: pa.Schema | None = None,
        keeps_dropped: bool = False,
        whole_rows_max: int = WHOLE_ROWS_MAX,
        window_rows: int = _WINDOW_ROWS,
    ) -> None:
        self._whole_rows_max = whole_rows_max
        self._keeps_dropped = keeps_dropped
        there = after or before
        assert there is not None  # noqa: S101 - the stream exists in a version
        self._keys, self._columns = keys, columns
        self._before = before if before is not None and before.version >= 0 else None
        self._after = after
        self._key = tuple(keys.column_names) if keys is not None else stored_key(there.metadata) or ()
        # The common types of the key's columns (None: no common type); empty without a common key.
        self._kinds: dict[str, pa.DataType | None] = {}
        sides = [item for item in (self._before, self._after) if item is not None]
        if self._key and all(set(stored_key(side.metadata) or ()) == set(self._key) for side in sides):
            schemas = [arrow_columns(side.delta_schema) for side in sides]
            for name in self._key:
                found = [schema.field(name).type for schema in schemas]
                self._kinds[name] = found[0] if len(set(found)) == 1 else comparison_type(*found)
        self._window_rows_max = window_rows
        flags = after is not None and read_system_columns(after.metadata).flags_deleted
        self._flag = DELETED if flags else None

    @cached_property
    def _old(self) -> _Part | None:
        return None if self._before is None else _differing_part(self._before, self._after)

    @cached_property
    def _new(self) -> _Part | None:
        return None if self._after is None else _differing_part(self._after, self._before)

    @property
    def rows_max(self) -> int:
        """Upper bound of rows to read for the whole difference, from the log."""
        return sum(part.rows_max for part in (self._old, self._new) if part is not None)

    @property
    def is_by_key(self) -> bool:
        """Whether the two sides can be merge-joined by a key with a common order."""
        return bool(self._kinds) and not any(
            kind is None or kinds.is_nested(kind) for kind in self._kinds.values()
        )

    def is_counted(self, wanted: bool | None = None) -> bool:  # noqa: FBT001 - a caller's option
        """Return whether to count all changes: as wanted, or (None) where this reads few rows."""
        return self.rows_max <= COUNTED_ROWS_MAX if wanted is None else wanted

    def page(self, limit: int, after: ChangeCursor | None = None) -> ChangePage:
        """Return the first ``limit`` changes after a cursor; the very last page may be empty.

        Raises:
            TooLarge: too many rows without a common key differ.
            VersionNotFound: the cursor belongs to other versions.
        """
        if not self.is_by_key or self._keys is not None:
            start, whole = 0 if after is None else after.number, self._whole_page()
            end = start + limit
            following = ChangeCursor("", None, end) if len(whole) > end else None
            return ChangePage(whole.slice(start, limit), following)
        gathered: list[RowChanges] = []
        missing = limit
        for sides, window in self._windows(after):
            changes = self._changes(*self._in_common(sides), self._key)
            gathered.append(changes.slice(0, missing))
            if len(changes) > missing or (len(changes) == missing and window.last is not None):
                return ChangePage(join_changes(gathered), self._cursor_of(window, gathered[-1].table))
            missing -= len(changes)
        return ChangePage(join_changes(gathered), None)

    def batches(self) -> Iterator[RowChanges]:
        """Return all changes in the order of the key, in memory that the number of rows does not decide.

        Raises:
            TooLarge: too many rows without a common key differ.
        """
        if self._keys is not None:
            yield from self._of_keys(self._keys)
        elif not self.is_by_key:
            yield self._whole_page()
        else:
            yield from (self._changes(*self._in_common(sides), self._key) for sides in self._sides())

    def counts(self) -> Counts:
        """Return the row counts of all changes; too many rows without a common key all count as replaced."""
        if self._keys is not None:
            return sum((changes.counts for changes in self.batches()), Counts())
        if self.is_by_key:
            return sum((count_changes(*sides, self._key, self._flag) for sides in self._sides()), Counts())
        is_nested = bool(self._kinds) and None not in self._kinds.values()
        is_small = self.rows_max <= (self._whole_rows_max if is_nested else CONTENT_ROWS_MAX)
        if is_nested and is_small:
            return count_changes(*self._whole_sides(), self._key, self._flag)
        old, new = (
            0 if part is None else part.count if is_small else part.rows_max
            for part in (self._old, self._new)
        )
        if self._kinds or not (is_small and old and new):  # keys of types that no key has in common
            return Counts(inserted=new, deleted=old)
        return count_contents(self._cells(), old, new)

    def _cells(self) -> Iterator[CellPair]:
        """Return the cells of each column, a column at a time; null where the old version lacks it."""
        old, new = self._old, self._new
        assert old is not None  # noqa: S101 - both have rows
        assert new is not None  # noqa: S101
        there = set(old.column_names)
        for name in new.column_names:
            was = old.read([name])[name] if name in there else pa.chunked_array([pa.nulls(old.count)])
            now = new.read([name])[name]
            if name == self._flag:
                was, now = (pc.fill_null(cells.cast(pa.bool_()), fill_value=False) for cells in (was, now))
            yield was, now

    def table(self) -> pa.Table:
        """Return all changes as one table, with each key in the type of its version."""
        if self._columns is not None or self._has_one_type:
            is_whole = self._keys is None and not self.is_by_key
            return join_changes([self._whole()] if is_whole else self.batches()).table
        if self._keys is not None:
            sides = iter([self._sides_with(self._keys)])
        else:
            sides = self._sides() if self.is_by_key else iter([self._whole_sides()])
        table = join_changes([self._changes(*both, self._key) for both in sides]).table
        # Arrow has no order of nested values.
        in_order = [(name, "ascending") for name in self._key if not kinds.is_nested(table[name].type)]
        return table.sort_by(in_order) if in_order else table

    @cached_property
    def _window_rows(self) -> int:
        """The number of rows of a side that a window has at most, by the bytes of their files."""
        parts = [part.snapshot for part in (self._old, self._new) if part is not None]
        size = sum(pc.sum(part.files["size"]).as_py() or 0 for part in parts)
        fitting = _WINDOW_BYTES * sum(map(rows.count, parts)) // max(size * _BYTES_OF_STORED, 1)
        return min(self._window_rows_max, max(_ROWS_MIN, fitting))

    def _whole_page(self) -> RowChanges:
        if self.rows_max > self._whole_rows_max and not self.is_by_key:
            raise TooLarge(
                f"The difference of {self.rows_max:,} rows cannot be shown in pages.",
                cause=f"Without a key, or under another one, rows are compared whole: at most "
                f"{self._whole_rows_max:,}.",
                remedy="Export both versions and compare the files.",
            )
        if self._keys is None:
            return self._whole()
        return join_changes(self._of_keys(self._keys))

    def _whole(self) -> RowChanges:
        """Compare all differing rows at once."""
        # Under another key several rows may have the same one.
        return self._changes(*self._in_common(self._whole_sides()), self._key if self._kinds else ())

    def _whole_sides(self) -> tuple[pa.Table, pa.Table]:
        return self._aligned(*(None if part is None else part.read() for part in (self._old, self._new)))

    def _sides(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Return the rows of both sides by key, those of a window at a time."""
        if self.rows_max <= 2 * self._window_rows:
            yield self._whole_sides()
        else:
            yield from (sides for sides, _ in self._windows(None))

    def _of_keys(self, keys: pa.Table) -> Iterator[RowChanges]:
        """Compare the rows with some keys."""
        ordered = keys.sort_by([(name, "ascending") for name in self._key])
        for start in range(0, max(len(keys), 1), self._window_rows):
            sides = self._sides_with(ordered.slice(start, self._window_rows))
            yield self._changes(*self._in_common(sides), self._key)

    def _sides_with(self, keys: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the rows of both sides with some keys."""
        if not self.is_by_key:
            raise InvalidOption(
                f"Rows cannot be compared by {', '.join(self._key)}.",
                cause="It is not the key of both versions, in types that have an order in common.",
                remedy="Compare the whole stream.",
            )
        sides = (self._before, self._after)
        return self._aligned(*(None if side is None else self._rows_with(side, keys) for side in sides))

    def _rows_with(self, snapshot: Snapshot, keys: pa.Table) -> pa.Table:
        """Return the current rows with one of the keys; files that cannot hold one are not read."""
        there = keys_as(keys, arrow_columns(snapshot.delta_schema))
        where = None
        for name in there.column_names:
            column, field = there[name], pc.field(name)
            values = column.combine_chunks().unique()
            if kinds.is_floating(column.type):
                # Arrow tells apart both zeros and NaNs of other bits, which are one key.
                zeros = pa.array([0.0, -0.0], column.type)
                condition = field.isin(pa.concat_arrays([values, zeros])) | field.is_nan()
            else:
                condition = field.isin(values)
                if not column.null_count:
                    ends = pc.min_max(column)
                    condition = condition & (field >= ends["min"]) & (field <= ends["max"])
            where = condition if where is None else where & condition
        names = stored_row_columns(snapshot)
        if self._columns is not None:
            names = [name for name in self._columns.names if name in names]
        found = read_rows(snapshot, names, where)
        if not len(there):
            return found.slice(0, 0)
        positions, _ = KeyNumbers(there).found_in(found.select(list(self._key)))
        return found.take(pa.array(positions))

    def _changes(self, old: pa.Table, new: pa.Table, key: tuple[str, ...]) -> RowChanges:
        if self._after is not None:
            _require_names(self._after)
        return compare_tables(old, new, key, self._flag)

    def _aligned(self, old: pa.Table | None, new: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        """Return the rows of both sides with the compared columns; no row where a side is missing."""
        old, new = (None if item is None else self._in_columns(item) for item in (old, new))
        if old is None:
            assert new is not None  # noqa: S101 - the stream exists in a version
            old = new.schema.empty_table()
        elif new is None:
            new = old.schema.empty_table()
        for field in old.schema if self._keeps_dropped else ():
            if field.name not in new.column_names:
                new = new.append_column(field, pa.nulls(len(new), field.type))
        return old, new

    def _in_columns(self, table: pa.Table) -> pa.Table:
        """Return the rows with the compared columns."""
        if self._columns is None:
            return table
        names = set(table.column_names)
        misfits = [
            field.name
            for field in self._columns
            if field.name in names and exact_cast(table[field.name], field.type) is None
        ]
        if misfits:
            raise SchemaDriftError(
                "The rows do not fit the stream's current columns.",
                cause=f"The columns {misfits} now have types that cannot hold the values.",
                remedy="Compare or restore the whole stream instead.",
                columns=misfits,
            )
        return in_schema(table, self._columns)

    def _in_common(self, sides: tuple[pa.Table, pa.Table]) -> tuple[pa.Table, pa.Table]:
        """Return the rows of both sides with their keys in the common types, or in those that were given."""
        old, new = sides
        if self._columns is not None:
            return sides
        return self._with_common_keys(old), self._with_common_keys(new)

    def _common_keys(self, table: pa.Table) -> pa.Table:
        """Return the keys of rows in the common types."""
        return self._with_common_keys(table.select(self._key))

    def _with_common_keys(self, table: pa.Table) -> pa.Table:
        """Return the rows with their key in the common types."""
        for name, kind in self._kinds.items():
            if kind is not None and table[name].type != kind:
                cells = in_common(table[name], kind)
                table = table.set_column(table.column_names.index(name), name, cells)
        return table

    def _windows(self, after: ChangeCursor | None) -> Iterator[tuple[tuple[pa.Table, pa.Table], _Window]]:
        """Return the rows of both sides to compare, window by window."""
        start = None if after is None else self._key_at(after)
        # A key in another type has no bounds in the statistics, so each window scans all files.
        size = min(self._window_rows, _FIRST_ROWS * (1 if self._has_one_type else 10))
        while True:
            old, new = (self._side(part, start, size) for part in (self._old, self._new))
            window = _Window.between(old, new, self._common_keys)
            was, now = (None if page is None else page.rows for page in (window.old, window.new))
            yield self._aligned(was, now), window
            if window.last is None:
                return
            start, size = window.last, min(2 * size, self._window_rows)

    @property
    def _has_one_type(self) -> bool:
        """Whether each column of the key has one type, in which it is compared."""
        return all(
            arrow_columns(item.delta_schema).field(name).type == kind
            for item in (self._before, self._after)
            if item is not None
            for name, kind in self._kinds.items()
            if kind is not None
        )

    def _side(self, part: _Part | None, start: pa.Table | None, size: int) -> RowPage | None:
        if part is None:
            return None
        return rows_after_key(part.snapshot, self._key, start, size, part.positions, self._kinds)

    def _key_at(self, cursor: ChangeCursor) -> pa.Table:
        snapshot = self._before if cursor.side == "old" else self._after
        return self._with_common_keys(key_at(snapshot, cursor.row, self._key))

    def _cursor_of(self, window: _Window, table: pa.Table) -> ChangeCursor:
        """Return the position of the last of some changes of a window."""
        row = table.slice(len(table) - 1)
        is_old = row[CHANGE_TYPE][0].as_py() == DELETE
        name, side = ("old", window.old) if is_old else ("new", window.new)
        assert side is not None  # noqa: S101 - the row is there
        keys = self._common_keys(side.rows)
        return ChangeCursor(name, side.cursor(_count_until(keys, row.select(self._key)) - 1))


@dataclass(frozen=True, slots=True)
class _Window:
    """The rows of both sides up to the key ``last`` (None: to the end), in key order."""

    old: RowPage | None
    new: RowPage | None
    last: pa.Table | None

    @classmethod
    def between(
        cls, old: RowPage | None, new: RowPage | None, keys_of: Callable[[pa.Table], pa.Table]
    ) -> _Window:
        """Return the window up to the smaller last key of the sides with further rows."""
        ends = [
            keys_of(item.rows.slice(len(item.rows) - 1))
            for item in (old, new)
            if item is not None and item.has_more
        ]
        if not ends:
            return cls(old, new, None)
        joined = pa.concat_tables(ends)
        last = joined.sort_by([(name, "ascending") for name in joined.column_names]).slice(0, 1)
        was, now = (
            None if page is None else page.first(_count_until(keys_of(page.rows), last))
            for page in (old, new)
        )
        return cls(was, now, last)


def _count_until(keys: pa.Table, last: pa.Table) -> int:
    """Return the number of sorted keys up to ``last``."""
    names = [f"k{number}" for number in range(last.num_columns)]

    def is_beyond(number: int) -> bool:
        pair = pa.concat_tables([keys.slice(number, 1), last]).rename_columns(names)
        order = pc.sort_indices(pair, sort_keys=[(name, "ascending") for name in names])
        return bool(order[0].as_py())

    return bisect.bisect_left(range(len(keys)), x=True, key=is_beyond)


@dataclass(frozen=True)  # without slots: its rows are counted once
class _Part:
    """Candidate rows of one version for a difference: whole files, or positions in a file."""

    snapshot: ReadableSnapshot
    positions: Mapping[str, npt.NDArray[np.int64]]

    @property
    def rows_max(self) -> int:
        """Upper bound of the number of rows, including historical ones."""
        return rows.count(self._without_shared) + sum(map(len, self.positions.values()))

    @property
    def _without_shared(self) -> ReadableSnapshot:
        """The files with all rows in the part."""
        files = self.snapshot.files
        is_shared = pc.is_in(files["path"], pa.array(list(self.positions), pa.string()))
        return part_of(self.snapshot, files.filter(pc.invert(is_shared)))

    @property
    def column_names(self) -> list[str]:
        """The columns of the rows."""
        return list(row_columns(self.snapshot).names)

    @cached_property
    def count(self) -> int:
        """The number of rows, without historical ones."""
        if not read_system_columns(self.snapshot.metadata).has_history:
            return self.rows_max
        return len(self.read(self.column_names[:1]))

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Return all rows of the part."""
        whole = read_rows(self._without_shared, columns)
        if not self.positions:
            return whole
        return pa.concat_tables([whole, read_rows_at(self.snapshot, self.positions, whole.column_names)])


def _differing_part(snapshot: Snapshot, other: Snapshot | None) -> _Part:
    """Return the rows of ``snapshot`` except live rows in files that both snapshots share."""
    if (
        other is None
        or other.version < 0
        or arrow_columns(snapshot.delta_schema) != arrow_columns(other.delta_schema)
    ):
        return _Part(snapshot, {})
    theirs = other.files.filter(pc.is_in(other.files["path"], snapshot.files["path"].combine_chunks()))
    mine = snapshot.files.filter(pc.is_in(snapshot.files["path"], other.files["path"].combine_chunks()))
    rest = snapshot.files.filter(pc.invert(pc.is_in(snapshot.files["path"], mine["path"].combine_chunks())))
    gone, gone_there = deleted_positions(snapshot, mine), deleted_positions(other, theirs)
    nothing = np.empty(0, np.int64)
    only_here = {
        path: np.setdiff1d(positions, gone.get(path, nothing), assume_unique=True)
        for path, positions in gone_there.items()
    }
    only_here = {path: positions for path, positions in only_here.items() if len(positions)}
    shared = mine.filter(pc.is_in(mine["path"], pa.array(list(only_here), pa.string())))
    return _Part(part_of(snapshot, pa.concat_tables([rest, shared])), only_here)


def _require_names(after: Snapshot) -> None:
    """Refuse a stream with a column name reserved for changes."""
    for name in (CHANGE_TYPE, BEFORE):
        if name in arrow_columns(after.delta_schema).names:
            raise InvalidOption(
                f"The changes of this stream cannot be shown: it has a column {name!r} of its own.",
                cause="Rows of changes have columns with these names.",
                remedy="Rename the column, or compare two versions that are read.",
                column=name,
            )
