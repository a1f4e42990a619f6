"""The fate of each stored row that meets a batch, and the cells that it leads to (pure, in Arrow)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.engine.frames.equality import cells_differ
from freezeframe.engine.frames.untyped import fit
from freezeframe.store.schema.columns import DELETED, VALID_FROM, VALID_TO, SystemColumns
from freezeframe.store.table.reader import in_schema, with_columns

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_NONE = SystemColumns()

Absent = Literal["kept", "removed", "flagged"]
"""What becomes of a stored row that the batch lacks; in a history a removed row is closed."""


@dataclass(frozen=True, slots=True)
class MergeRule:
    """What a batch does to the stored rows that it is merged with: each keyed update is one of these."""

    columns: pa.Schema
    """The columns of the result in the types of files, without system columns."""
    stored: tuple[str, ...]
    """Those of them that the stream has already."""
    key: tuple[str, ...]
    keeps_nulls: bool = False
    """Whether a null of the batch keeps the stored cell."""
    absent: Absent = "kept"
    own: SystemColumns = _NONE
    moment_us: int = 0
    """When rows of a history are closed and opened."""
    since_us: int = 0
    """Since when stored rows hold that do not say so yet."""

    @property
    def target(self) -> pa.Schema:
        """The columns of the result."""
        return self.own.added_to(self.columns)

    def new_rows(self, rows: pa.Table) -> pa.Table:
        """Return rows of the batch as new rows of the stream."""
        return self.own.fill(in_schema(rows, self.columns), self.moment_us)


@dataclass(frozen=True, slots=True)
class Fates:
    """Numbers of stored rows by what became of them; rows that only stay are in none."""

    updated: int = 0
    unchanged: int = 0
    deleted: int = 0
    """Rows that were removed, closed or flagged."""
    live: int = 0
    """Rows that were neither closed nor flagged before."""
    lost: int = 0
    """Of these, the ones that are deleted now."""

    def __add__(self, other: Fates) -> Fates:
        return Fates(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class MergedRows:
    """The rows that stored rows lead to."""

    fates: Fates
    kept: Flags
    """The stored rows that stay as they are."""
    _cells: pa.Table
    """The stored rows, then those that the batch leads to."""
    _order: Numbers
    """Where in these the rows are."""

    @property
    def is_changed(self) -> bool:
        """Whether the rows differ from the stored ones in any way."""
        return not self.kept.all()

    @property
    def rows(self) -> pa.Table:
        """All of them, in the order of the stored ones."""
        return self._cells.take(pa.array(self._order)) if self.is_changed else self._cells

    @property
    def changes(self) -> pa.Table:
        """Those that take the place of the stored rows that are not kept."""
        is_new = ~np.append(self.kept, np.zeros(len(self._cells) - len(self.kept), np.bool_))[self._order]
        return self._cells.take(pa.array(self._order[is_new]))


def merge_rows(
    stored: pa.Table, at: Numbers, batch: pa.Table, rule: MergeRule, inside: Flags | None = None
) -> MergedRows:
    """Merge stored rows, in the types of ``rule.target``, with the rows of the batch that have their keys.

    ``batch`` is aligned with ``at``, the ascending positions of the stored rows that it meets, none of which
    is closed. Rows that the batch lacks are absent where they are ``inside`` (None: everywhere).
    """
    count, own = len(stored), rule.own
    is_met = np.zeros(count, np.bool_)
    is_met[at] = True
    is_closed = pc.is_valid(stored[VALID_TO]).to_numpy() if own.has_history else np.zeros(count, np.bool_)
    is_flagged = _true(stored[DELETED]) if own.flags_deleted else np.zeros(count, np.bool_)
    is_gone = ~(is_met | is_closed) if rule.absent != "kept" else np.zeros(count, np.bool_)
    if rule.absent == "flagged":
        is_gone &= ~is_flagged
    if inside is not None:
        is_gone &= inside

    def old_values(names: Sequence[str], which: Flags) -> pa.Table:
        return stored.select(list(names)).take(pa.array(at[which]))

    filled = coalesce(
        batch,
        rule.columns,
        rule.stored,
        rule.key,
        old_values,
        keeps_nulls=rule.keeps_nulls,
        returning=is_flagged[at],
    )
    changed = at[filled.changed]
    systems: dict[str, pa.ChunkedArray] = {}
    order = np.arange(count)
    if own.has_history:
        ends = is_gone.copy()
        ends[changed] = True
        moment = pa.scalar(rule.moment_us, stored[VALID_TO].type)
        systems[VALID_FROM] = pc.fill_null(stored[VALID_FROM], rule.since_us)
        systems[VALID_TO] = pc.if_else(pa.chunked_array([pa.array(ends)]), moment, stored[VALID_TO])
        order = np.insert(order, changed + 1, count + np.arange(len(changed)))
    else:
        if own.flags_deleted:
            systems[DELETED] = pa.chunked_array([pa.array((is_flagged & ~is_met) | is_gone)])
        order[changed] = count + np.arange(len(changed))
        if rule.absent == "removed":
            order = order[~is_gone]
    kept = ~is_gone
    kept[changed] = False
    for name, column in systems.items():
        # A row that never was flagged may have no flag.
        before = pa.chunked_array([pa.array(is_flagged)]) if name == DELETED else stored[name]
        kept &= ~cells_differ(before, column).to_numpy()
    cells = pa.concat_tables([with_columns(stored, systems), own.fill(filled.rows, rule.moment_us)])
    live = ~(is_closed | is_flagged)
    fates = Fates(
        len(changed),
        len(at) - len(changed),
        int(is_gone.sum()),
        int(live.sum()),
        int((live & is_gone).sum()),
    )
    return MergedRows(fates, kept, cells, order)


def _true(flags: pa.ChunkedArray) -> Flags:
    found: Flags = pc.fill_null(flags, False).to_numpy()  # noqa: FBT003 - Arrow's signature
    return found


# A null keeps the stored cell or replaces it, a column that the batch lacks keeps its cells. Old values are
# read column by column and only as far as needed: a row that is known to change is not compared any further,
# and needs only the cells that the batch leaves open.

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
    returning: Flags | None = None,
) -> Filled:
    """Merge the rows of ``batch``, all of which are stored, with their old values.

    ``target`` has the columns of the result, ``stored`` those of them that the stream has.
    ``keeps_nulls``: a null of the batch keeps the stored cell. Rows ``returning`` change in any case.
    """
    work = _Filling(batch, target, frozenset(stored), frozenset(key), old_values, keeps_nulls)
    every = np.ones(len(batch), np.bool_)
    first = work.open_columns() or work.deciding_columns()
    work.read(first, every)
    changed = work.find_differences(work.new_columns(), every) | work.find_differences(first, every)
    if returning is not None:
        changed |= returning
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
        self._columns = frozenset(batch.column_names)
        self._old: dict[str, pa.ChunkedArray] = {}

    def compared_columns(self) -> list[str]:
        """Stored columns that the batch may change."""
        compared = self._columns & self._stored - self._key
        return [name for name in self._target.names if name in compared]

    def new_columns(self) -> list[str]:
        """New columns of the batch, without stored values."""
        new = self._columns - self._stored
        return [name for name in self._target.names if name in new]

    def open_columns(self) -> list[str]:
        """Stored columns whose old values a changed row needs."""
        open_ = self._stored - self._key
        names = [name for name in self._target.names if name in open_]
        return [name for name in names if self._is_open(name)]

    def deciding_columns(self) -> list[str]:
        """Return the columns to compare first where the result needs no old value."""
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
            if name not in self._columns:
                continue
            new = _of(self._batch[name], rows)
            old = self._old.get(name, pa.chunked_array([pa.nulls(len(new), new.type)]))
            differs = cells_differ(old, new)
            if self._keeps_nulls:
                differs = pc.and_(differs, pc.is_valid(new))
            found |= differs.to_numpy()
        return found

    def result(self, changed: Flags) -> pa.Table:
        """Return the changed rows to store."""
        if not changed.any():
            return self._target.empty_table()  # no old value was read, nor is one needed
        columns = [self._cells(field, changed) for field in self._target]
        return pa.table(columns, schema=self._target)

    def _cells(self, field: pa.Field, changed: Flags) -> pa.ChunkedArray:
        old = _of(self._old[field.name], changed) if self._is_open(field.name) else None
        if field.name not in self._columns:
            return old if old is not None else pa.nulls(int(changed.sum()), field.type)
        new = _of(self._batch[field.name], changed)
        return new if old is None else pc.if_else(pc.is_valid(new), new, old)

    def _is_open(self, name: str) -> bool:
        if name not in self._stored or name in self._key:
            return False
        return name not in self._columns or bool(self._keeps_nulls and self._batch[name].null_count)

    @staticmethod
    def _rank(kind: pa.DataType) -> int:
        return next((rank for rank, is_kind in enumerate(_TELLING) if is_kind(kind)), len(_TELLING))


def _of(column: pa.ChunkedArray, rows: Flags) -> pa.ChunkedArray:
    return column if rows.all() else column.filter(pa.array(rows))
