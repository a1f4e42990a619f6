"""Merges a batch with stored rows cell by cell (pure but for ``read``).

A null keeps the stored cell or replaces it, a column that the batch lacks keeps its cells. Old
values are read column by column and only as far as they are needed: a row that is known to
change is not compared any further, and needs only the cells that the batch leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.engine.frames.untyped import fit
from freezeframe.store.schema.type_compatibility import cells_differ

Flags = npt.NDArray[np.bool_]

OldValues = Callable[[Sequence[str], Flags], pa.Table]
"""Stored values of columns, for the rows that are flagged, in the order of the rows."""

# Columns of these types differ most often in changed rows; in order of preference.
_TELLING = (kinds.is_timestamp, kinds.is_floating, kinds.is_decimal, kinds.is_integer, kinds.is_string)


@dataclass(frozen=True, slots=True)
class Filled:
    """The complete changed rows, and a mask of the changed rows of the batch."""

    rows: pa.Table
    changed: Flags


def coalesce(
    batch: pa.Table,
    target: pa.Schema,
    stored: Sequence[str],
    key: Sequence[str],
    old_values: OldValues,
    *,
    keeps_nulls: bool,
) -> Filled:
    """Merge the rows of ``batch``, all of which are stored, with their old values.

    ``target`` has the columns of the result, ``stored`` those of them that the stream has.
    ``keeps_nulls``: a null of the batch keeps the stored cell.
    """
    work = _Filling(batch, target, frozenset(stored), frozenset(key), old_values, keeps_nulls)
    every = np.ones(len(batch), np.bool_)
    first = work.open_columns() or work.deciding_columns()
    work.read(first, every)
    changed = work.find_differences(work.new_columns(), every) | work.find_differences(first, every)
    rest = [name for name in work.compared_columns() if name not in first]
    undecided = ~changed
    if rest and undecided.any():
        work.read(rest, undecided)
        changed[undecided] = work.find_differences(rest, undecided)
    return Filled(work.result(changed), changed)


class _Filling:
    """State of one call of ``coalesce``: its arguments, and the old values read so far."""

    def __init__(
        self,
        batch: pa.Table,
        target: pa.Schema,
        stored: frozenset[str],
        key: frozenset[str],
        old_values: OldValues,
        keeps_nulls: bool,  # noqa: FBT001 - a value handed on
    ) -> None:
        self._batch = batch
        self._target = target
        self._stored = stored
        self._key = key
        self._old_values = old_values
        self._keeps_nulls = keeps_nulls
        self._given = frozenset(batch.column_names)
        self._old: dict[str, pa.ChunkedArray] = {}

    def compared_columns(self) -> list[str]:
        """Stored columns that the batch may change."""
        compared = self._given & self._stored - self._key
        return [name for name in self._target.names if name in compared]

    def new_columns(self) -> list[str]:
        """New columns of the batch, without stored values."""
        new = self._given - self._stored
        return [name for name in self._target.names if name in new]

    def open_columns(self) -> list[str]:
        """Stored columns whose old values a changed row needs."""
        open_ = self._stored - self._key
        names = [name for name in self._target.names if name in open_]
        return [name for name in names if self._is_open(name)]

    def deciding_columns(self) -> list[str]:
        """The columns to compare first where the result needs no old value."""
        names = self.compared_columns()
        ranks = {name: self._rank(self._target.field(name).type) for name in names}
        return sorted(names, key=ranks.__getitem__)[:1]

    def read(self, names: Sequence[str], rows: Flags) -> None:
        """Read old values of the flagged rows, in the types of the target."""
        if not names or not rows.any():
            return
        for name, column in zip(names, self._old_values(names, rows).columns, strict=True):
            self._old[name] = fit(column, self._target.field(name).type)

    def find_differences(self, names: Sequence[str], rows: Flags) -> Flags:
        """Mask of the flagged rows with a changed cell."""
        found = np.zeros(int(rows.sum()), np.bool_)
        for name in names:
            if name not in self._given:
                continue
            new = _of(self._batch[name], rows)
            old = self._old.get(name, pa.chunked_array([pa.nulls(len(new), new.type)]))
            differs = cells_differ(old, new)
            if self._keeps_nulls:
                differs = pc.and_(differs, pc.is_valid(new))
            found |= differs.to_numpy()
        return found

    def result(self, changed: Flags) -> pa.Table:
        """The changed rows to store."""
        if not changed.any():
            return self._target.empty_table()  # no old value was read, nor is one needed
        columns = [self._cells(field, changed) for field in self._target]
        return pa.table(columns, schema=self._target)

    def _cells(self, field: pa.Field, changed: Flags) -> pa.ChunkedArray:
        old = _of(self._old[field.name], changed) if self._is_open(field.name) else None
        if field.name not in self._given:
            return old if old is not None else pa.nulls(int(changed.sum()), field.type)
        new = _of(self._batch[field.name], changed)
        return new if old is None else pc.if_else(pc.is_valid(new), new, old)

    def _is_open(self, name: str) -> bool:
        if name not in self._stored or name in self._key:
            return False
        return name not in self._given or bool(self._keeps_nulls and self._batch[name].null_count)

    @staticmethod
    def _rank(kind: pa.DataType) -> int:
        return next((rank for rank, is_kind in enumerate(_TELLING) if is_kind(kind)), len(_TELLING))


def _of(column: pa.ChunkedArray, rows: Flags) -> pa.ChunkedArray:
    return column if rows.all() else column.filter(pa.array(rows))
