"""What takes the row changes of one version back: each cell before it, after it, and now (pure, in Arrow).

Where a cell is still what the version made it, it becomes what it was; where it was changed again, it stays.
A row that the version inserted goes if it is untouched since, one that it deleted returns if its key is
free. Equal is what is equal for updates (``engine.frames.equality``), so a value that was changed and set
again is untouched. Source: ``docs/how-to/undo-a-job.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.equality import cells_differ
from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.engine.frames.untyped import fit, has_untyped
from freezeframe.log.primitives.arrow import Bools
from freezeframe.store.diff.row_changes import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    UPDATE,
    RowChanges,
    compare_tables,
    in_one_type,
    paired_rows,
)
from freezeframe.store.schema.type_compatibility import common_nested, exact_cast

CHANGED, DELETED, TAKEN, MISFIT = (
    "changed again since",
    "deleted since",
    "its key is there again",
    "its column cannot hold the value any more",
)
"""Why a row, or cells of it, stay as they are."""


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row that stays in part or whole: its key, what the version did to it, and why it stays.

    ``cells`` has the values before the version, after it and now of each column that stays.
    """

    key: Mapping[str, Any]
    change: Literal["insert", "update", "delete"]
    reason: str
    cells: Mapping[str, tuple[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Reversal:
    """``changes`` leads from the rows of now to what they become; ``cells`` of updated rows go back.

    ``kept_rows`` and ``kept_cells`` count what stays, of which ``kept`` has the first rows.
    """

    changes: RowChanges
    cells: int
    kept_rows: int
    kept_cells: int
    kept: tuple[KeptRow, ...]


def reverse(
    changes: RowChanges, now: pa.Table, columns: pa.Schema, dropped: Collection[str], listed_max: int
) -> Reversal:
    """Return what takes ``changes`` back, where ``now`` has the rows with their keys.

    ``changes`` compare the columns that the version ``dropped`` as well, which return. ``columns`` are those
    of now; one that was dropped since does not return.
    """
    return _Reversing(changes, now, columns, dropped).result(listed_max)


class _Reversing:
    """The changes beside the rows of now, in the order of the key, and what becomes of each."""

    def __init__(
        self, changes: RowChanges, now: pa.Table, columns: pa.Schema, dropped: Collection[str]
    ) -> None:
        at, there = paired_rows(changes.table, now, changes.key)
        self._changes = changes = RowChanges(changes.table.take(pa.array(at)), changes.key)
        self._exists = there >= 0
        self._now = now.take(pa.array(there, mask=~self._exists))
        self._before, self._after = changes.before, changes.after
        self._columns = columns
        kinds = changes.table[CHANGE_TYPE]
        self._is_update, self._is_insert, self._is_delete = (
            pc.equal(kinds, kind).to_numpy() for kind in (UPDATE, INSERT, DELETE)
        )
        folded = {name.casefold() for name in columns.names}
        self._returning = [
            name for name in self._before.column_names if name in dropped and name.casefold() not in folded
        ]
        """Columns that the version dropped, and that values return to."""
        names = (*columns.names, *self._returning)
        self._types = {name: self._type(name) for name in names if name not in changes.key}
        self._back: dict[str, Bools] = {}
        """For each column the updated rows whose cell goes back."""
        self._kept: dict[str, Bools] = {}
        """For each column the rows whose cell stays; rows that stay whole are in ``_reasons`` as well."""
        self._reasons = np.full(len(changes), "", object)
        self._fitting: dict[str, pa.ChunkedArray] = {}
        """The values before the version in the types of now."""
        for name in self._types:
            self._compare(name)
        self._decide_rows()

    def result(self, listed_max: int) -> Reversal:
        """Return the changes of the rows of now, and what stays."""
        cells = sum(int(mask.sum()) for mask in self._back.values())
        is_kept = self._reasons != ""
        kept_cells = sum(int(mask.sum()) for mask in self._kept.values())
        return Reversal(self._row_changes(), cells, int(is_kept.sum()), kept_cells, self._listed(listed_max))

    def _type(self, name: str) -> pa.DataType:
        """Return the type in which values of a column go back: that of now, if it has one."""
        was = self._before.schema.field(name).type if name in self._before.column_names else None
        if name in self._returning:
            return was
        kind = self._columns.field(name).type
        if was is not None and has_untyped(kind):
            return common_nested(kind, was) or kind
        return kind

    def _cells(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        if name in table.column_names:
            return table[name]
        return pa.chunked_array([pa.nulls(len(table), self._types[name])])

    def _compare(self, name: str) -> None:
        """Say for each row whether the cell of a column goes back, stays, or is as it was."""
        was, made, now = (self._cells(table, name) for table in (self._before, self._after, self._now))
        is_touched, differs = (_differs(side, now) & self._exists for side in (made, was))
        fitting, fits = _fit(was, self._types[name])
        self._fitting[name] = fitting
        changed = self._changes.changed.get(name, np.zeros(len(self._exists), np.bool_))
        due = changed & self._exists & differs
        self._back[name] = due & ~is_touched & fits
        is_there = self._is_insert & is_touched  # a deleted row's values are not those after the version
        is_other = self._is_delete & differs
        is_gone = changed & ~self._exists
        returns = self._is_delete & ~self._exists
        self._kept[name] = (due & ~self._back[name]) | is_there | is_other | is_gone | (returns & ~fits)
        for mask, reason in (
            (due & is_touched, CHANGED),
            (is_there, CHANGED),
            (is_other, TAKEN),
            (is_gone, DELETED),
            ((due & ~is_touched | returns) & ~fits, MISFIT),
        ):
            self._reasons[mask & (self._reasons == "")] = reason

    def _decide_rows(self) -> None:
        keys = [_fit(self._changes.table[name], self._columns.field(name).type) for name in self._changes.key]
        for _, fits in keys:
            self._reasons[self._is_delete & ~self._exists & ~fits] = MISFIT
        self._key = [column for column, _ in keys]

    def _row_changes(self) -> RowChanges:
        updated = np.logical_or.reduce([np.zeros(len(self._exists), np.bool_), *self._back.values()])
        is_free = self._reasons == ""
        removed = self._is_insert & self._exists & is_free
        returned = self._is_delete & ~self._exists & is_free
        fields = [pa.field(name, self._columns.field(name).type) for name in self._changes.key]
        cells = [
            pc.if_else(pa.array(self._exists), self._now[field.name], column)
            for field, column in zip(fields, self._key, strict=True)
        ]
        for name, kind in self._types.items():
            goes = pa.array(self._back[name] | returned)
            now = fit(self._cells(self._now, name), kind)
            cells.append(pc.if_else(goes, self._fitting[name], now))
            fields.append(pa.field(name, kind))
        become = pa.table(cells, schema=pa.schema(fields))
        old = self._now.filter(pa.array(updated | removed))
        return compare_tables(old, become.filter(pa.array(updated | returned)), self._changes.key)

    def _listed(self, listed_max: int) -> tuple[KeptRow, ...]:
        at = np.flatnonzero(self._reasons != "")[:listed_max]
        if not len(at):
            return ()
        sides = [shown_rows(table.take(pa.array(at))) for table in (self._before, self._after, self._now)]
        found = []
        kinds = self._changes.table[CHANGE_TYPE].take(pa.array(at)).to_pylist()
        keys = shown_rows(self._changes.keys.take(pa.array(at)))
        for number, kind, key, *values in zip(at, kinds, keys, *sides, strict=True):
            if kind == DELETE:
                values[1] = {}
            cells = {
                name: tuple(side.get(name) for side in values)
                for name, mask in self._kept.items()
                if mask[number]
            }
            found.append(KeptRow(key, kind, self._reasons[number], cells))
        return tuple(found)


def _differs(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Bools:
    found: Bools = cells_differ(*in_one_type(left, right)).to_numpy()
    return found


def _fit(column: pa.ChunkedArray, kind: pa.DataType) -> tuple[pa.ChunkedArray, Bools]:
    """Return the values that a type holds exactly, null in place of the others, and which these are."""
    if column.type == kind:
        return column, np.ones(len(column), np.bool_)
    cast = exact_cast(column, kind)
    if cast is not None:
        return cast, np.ones(len(column), np.bool_)
    fits = np.array([exact_cast(column.slice(row, 1), kind) is not None for row in range(len(column))])
    nothing = pa.scalar(None, column.type)
    kept = exact_cast(pc.if_else(pa.array(fits), column, nothing), kind)
    if kept is None:
        return pa.chunked_array([pa.nulls(len(column), kind)]), pc.is_null(column).to_numpy()
    return kept, fits
