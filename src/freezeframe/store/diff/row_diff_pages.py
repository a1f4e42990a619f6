"""Row difference of two versions, page by page (``row_diff`` defines a change).

Only files that the versions do not share are read. By key both sides are merged in windows of some thousand
rows, so a page takes little memory. Rows without a common key are compared whole, up to a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.errors import TooLarge
from freezeframe.log import Snapshot
from freezeframe.log.scan.rows import read_at
from freezeframe.store.diff.row_diff import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    UPDATE,
    DifferingPart,
    differing_part,
    require_names,
    snapshot_changes,
    table_changes,
)
from freezeframe.store.diff.row_pages import RowCursor, RowPage, rows_after_key
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import DELETED, arrow_columns, read_system_columns, stored_key
from freezeframe.store.schema.type_compatibility import comparison_type, in_common
from freezeframe.store.table.reader import read_rows

WHOLE_ROWS_MAX = 500_000
COUNTED_ROWS_MAX = 200_000
_WINDOW_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class ChangeCursor:
    """End of a page of changes: a row of the old or the new side, or a number of changes."""

    side: str
    row: RowCursor | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class ChangePage:
    """A page of changes in the form of ``snapshot_changes``, and its end position if more follow."""

    table: pa.Table
    following: ChangeCursor | None


class Comparison:
    """Comparison of two versions of a stream; None: the stream does not exist in that version.

    Rows without a common key are compared whole, at most ``whole_rows_max``; others in windows of
    ``window_rows`` a side.
    """

    def __init__(
        self,
        before: Snapshot | None,
        after: Snapshot | None,
        *,
        whole_rows_max: int = WHOLE_ROWS_MAX,
        window_rows: int = _WINDOW_ROWS,
    ) -> None:
        self._whole_rows_max, self._window_rows = whole_rows_max, window_rows
        there = after or before
        assert there is not None  # noqa: S101 - the stream exists in a version
        if after is not None:
            require_names(after)
        self._before = before if before is not None and before.version >= 0 else None
        self._after = after
        self._there = there
        self._old = None if self._before is None else differing_part(self._before, after)
        self._new = None if after is None else differing_part(after, self._before)
        self._key = stored_key(there.metadata) or ()
        self._kinds = self._common_kinds()
        flags = after is not None and read_system_columns(after.metadata).flags_deleted
        self._flag = DELETED if flags else None

    @property
    def rows_max(self) -> int:
        """Upper bound of rows to read for the whole difference, from the log."""
        return sum(part.rows_max for part in (self._old, self._new) if part is not None)

    @property
    def is_comparable(self) -> bool:
        """Whether ``page`` supports this difference."""
        return self.is_by_key or self.rows_max <= self._whole_rows_max

    @property
    def is_by_key(self) -> bool:
        """Whether the two sides can be merge-joined by a key with a common order."""
        return bool(self._kinds) and not any(
            kind is None or kinds.is_nested(kind) for kind in self._kinds.values()
        )

    def counts_of_files(self) -> Counts:
        """Return the row counts of the files and positions that only one version has."""
        old, new = (0 if part is None else part.rows_max for part in (self._old, self._new))
        return Counts(inserted=new, deleted=old)

    def is_counted(self, wanted: bool | None = None) -> bool:  # noqa: FBT001 - a caller's option
        """Return whether to count all changes: as wanted, or (None) where this reads few rows."""
        return self.rows_max <= COUNTED_ROWS_MAX if wanted is None else wanted

    def page(self, limit: int, after: ChangeCursor | None = None) -> ChangePage:
        """Return the first ``limit`` changes after a cursor; the very last page may be empty."""
        if not self.is_by_key:
            start = 0 if after is None else after.number
            table = self._whole()
            end = start + limit
            return ChangePage(
                table.slice(start, limit), ChangeCursor("", None, end) if len(table) > end else None
            )
        gathered: list[pa.Table] = []
        missing = limit
        for changed, window in self._windows(after):
            gathered.append(changed.slice(0, missing))
            if len(changed) > missing or (len(changed) == missing and window.last is not None):
                return ChangePage(pa.concat_tables(gathered), window.cursor_of(gathered[-1]))
            missing -= len(changed)
        return ChangePage(pa.concat_tables(gathered), None)

    def tables(self) -> Iterator[pa.Table]:
        """Return all changes in key order, as batches; errors as for ``page``."""
        if not self.is_by_key:
            yield self._whole()
            return
        yield from (changed for changed, _ in self._windows(None))

    def counts(self) -> Counts:
        """Return the row counts of all changes; errors as for ``page``."""
        return sum(map(change_counts, self.tables()), Counts())

    def _common_kinds(self) -> dict[str, pa.DataType | None]:
        """Return the common types of the key's columns (None: no common type); empty without a common key."""
        sides = [item for item in (self._before, self._after) if item is not None]
        if not self._key or any(set(stored_key(side.metadata) or ()) != set(self._key) for side in sides):
            return {}
        schemas = [arrow_columns(side.delta_schema) for side in sides]
        types = {name: [schema.field(name).type for schema in schemas] for name in self._key}
        return {
            name: found[0] if len(set(found)) == 1 else comparison_type(*found)
            for name, found in types.items()
        }

    def _whole(self) -> pa.Table:
        if not self.is_comparable:
            raise TooLarge(
                f"The difference of {self.rows_max:,} rows cannot be shown in pages.",
                cause=f"Without a key, or under another one, rows are compared whole: at most "
                f"{self._whole_rows_max:,}.",
                remedy="Export both versions and compare the files.",
            )
        if self._after is not None:
            return snapshot_changes(self._before, self._after, self._key)
        old = read_rows(self._there)
        return table_changes(old, old.slice(0, 0), self._key)

    def _windows(self, after: ChangeCursor | None) -> Iterator[tuple[pa.Table, _Window]]:
        """Return the changes, with their source rows of both sides, window by window."""
        start = None if after is None else self._key_at(after)
        while True:
            window = _Window.between(self._side(self._old, start), self._side(self._new, start), self._key)
            old, new = window.old.rows, window.new.rows
            if self._before is None:
                old = new.schema.empty_table()
            elif self._after is None:
                new = old.schema.empty_table()
            yield table_changes(old, new, self._key, self._flag), window
            if window.last is None:
                return
            start = window.last

    def _side(self, part: DifferingPart | None, start: pa.Table | None) -> RowPage:
        if part is None:
            return RowPage(pa.table({}), (), has_more=False)
        page = rows_after_key(part.snapshot, self._key, start, self._window, part.positions, self._kinds)
        return replace(page, rows=self._with_common_keys(page.rows))

    @property
    def _window(self) -> int:
        """Rows of a side per window; larger without statistics, where each window scans all files."""
        kinds_there = [
            arrow_columns(item.delta_schema).field(name).type == kind
            for item in (self._before, self._after)
            if item is not None
            for name, kind in self._kinds.items()
        ]
        return self._window_rows if all(kinds_there) else self._window_rows * 10

    def _with_common_keys(self, rows: pa.Table) -> pa.Table:
        for name, kind in self._kinds.items():
            column = rows[name]
            if column.type != kind:
                rows = rows.set_column(rows.column_names.index(name), name, in_common(column, kind))
        return rows

    def _key_at(self, cursor: ChangeCursor) -> pa.Table:
        snapshot = self._before if cursor.side == "old" else self._after
        assert snapshot is not None  # noqa: S101 - a cursor of this comparison
        assert cursor.row is not None  # noqa: S101 - as in each cursor by key
        key = read_at(snapshot, {cursor.row.path: np.array([cursor.row.position])}, list(self._key))
        return self._with_common_keys(key)


@dataclass(frozen=True, slots=True)
class _Window:
    """The rows of both sides up to the key ``last`` (None: to the end), in key order."""

    old: RowPage
    new: RowPage
    key: tuple[str, ...]
    last: pa.Table | None

    @classmethod
    def between(cls, old: RowPage, new: RowPage, key: tuple[str, ...]) -> _Window:
        """Return the window up to the smaller last key of the sides with further rows."""
        ends = [item.rows.select(key).slice(len(item.rows) - 1) for item in (old, new) if item.has_more]
        if not ends:
            return cls(old, new, key, None)
        last = pa.concat_tables(ends).sort_by([(name, "ascending") for name in key]).slice(0, 1)
        return cls(_until(old, last, key), _until(new, last, key), key, last)

    def cursor_of(self, changes: pa.Table) -> ChangeCursor:
        """Return the position of the last of some changes of this window."""
        row = changes.slice(len(changes) - 1)
        is_old = row[CHANGE_TYPE][0].as_py() == DELETE
        name, side = ("old", self.old) if is_old else ("new", self.new)
        return ChangeCursor(name, side.cursors[_count_until(side.rows, row, self.key) - 1])


def change_counts(changes: pa.Table) -> Counts:
    """Return the row counts of a table of changes."""
    found = {item["values"]: item["counts"] for item in pc.value_counts(changes[CHANGE_TYPE]).to_pylist()}
    return Counts(inserted=found.get(INSERT, 0), updated=found.get(UPDATE, 0), deleted=found.get(DELETE, 0))


def _until(page: RowPage, last: pa.Table, key: tuple[str, ...]) -> RowPage:
    if not len(page.rows):
        return page
    count = _count_until(page.rows, last, key)
    return RowPage(page.rows.slice(0, count), page.cursors[:count], has_more=True)


def _count_until(rows: pa.Table, last: pa.Table, key: tuple[str, ...]) -> int:
    """Return the number of sorted rows with a key up to that of ``last``."""
    if not len(rows):
        return 0
    is_last = pa.array([0] * len(rows) + [1], pa.int8())
    both = pa.concat_tables([rows.select(key), last.select(key)]).append_column("_is_last", is_last)
    renamed = both.rename_columns([f"k{number}" for number in range(len(key))] + ["_is_last"])
    order = pc.sort_indices(renamed, sort_keys=[(name, "ascending") for name in renamed.column_names])
    return int(pc.index(order, len(rows)).as_py())
