"""Rows that differ between two tables in memory: fates, values before and after, changed cells.

With a key each row is one change; without a key rows are compared whole and counted, so there are only
insertions and deletions. ``comparison`` applies this to versions of any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.equality import (
    Codes,
    cell_codes,
    cells_differ,
    joined_codes,
    key_codes,
)
from freezeframe.log.primitives.arrow import Bools
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.type_compatibility import (
    comparison_type,
    exact_cast,
    in_common,
    may_take,
    meet_as_text,
)

CHANGE_TYPE = "_change_type"
BEFORE = "_before"
INSERT, UPDATE, DELETE = "insert", "update", "delete"


@dataclass(frozen=True)  # without slots: which cells changed is found once
class RowChanges:
    """Rows that differ: the key of each, its values before and after, and its changed cells.

    ``table`` has the form of ``StreamDifference.changes``: ``_change_type`` (``insert``, ``update``,
    ``delete``), the columns of the later rows (for a deletion the deleted values), and ``_before``, a struct
    of the old row's columns, null for an insertion.
    """

    table: pa.Table
    key: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def keys(self) -> pa.Table:
        """The keys of the rows."""
        return self.table.select(list(self.key))

    @property
    def before(self) -> pa.Table:
        """The rows as they were; of an insertion each cell is null."""
        column = self.table[BEFORE]
        return pa.table(column.flatten(), schema=pa.schema(list(column.type)))

    @property
    def after(self) -> pa.Table:
        """The rows as they are; of a deletion the deleted values."""
        return self.table.drop_columns([CHANGE_TYPE, BEFORE])

    @property
    def counts(self) -> Counts:
        """The row counts of the changes."""
        kinds = self.table[CHANGE_TYPE]
        inserted, updated, deleted = (len(kinds.filter(pc.equal(kinds, kind))) for kind in _FATES)
        return Counts(inserted=inserted, updated=updated, deleted=deleted)

    @cached_property
    def changed(self) -> dict[str, Bools]:
        """The columns in which an update changed a cell, each with a mask of these rows."""
        at = np.flatnonzero(pc.equal(self.table[CHANGE_TYPE], UPDATE))
        found = {}
        if len(at):
            updated = self.filter(pc.equal(self.table[CHANGE_TYPE], UPDATE))
            # Equal keys can differ only in the sign of a zero, which is not a change.
            for name, differs in _differing_cells(updated.before, updated.after.drop_columns([*self.key])):
                if differs.any():
                    found[name] = np.zeros(len(self), np.bool_)
                    found[name][at] = differs
        return found

    @property
    def changed_counts(self) -> dict[str, int]:
        """The number of updated rows per changed column."""
        return {name: int(mask.sum()) for name, mask in self.changed.items()}

    def filter(self, mask: pa.ChunkedArray | pa.Array) -> RowChanges:
        """Return the changes of the rows that a mask names."""
        return RowChanges(self.table.filter(mask), self.key)

    def slice(self, start: int, count: int | None = None) -> RowChanges:
        """Return the changes from a number on, or only so many of them."""
        return RowChanges(self.table.slice(start, count), self.key)

    def of(self, kind: str) -> RowChanges:
        """Return the changes of one fate."""
        return self.filter(pc.equal(self.table[CHANGE_TYPE], kind))

    def of_columns(self, columns: Sequence[str]) -> RowChanges:
        """Return the updates of these cells alone; the other cells of their rows are those before."""
        masks = [self.changed[name] for name in columns if name in self.changed]
        differs = np.logical_or.reduce(masks) if masks else np.zeros(len(self), np.bool_)
        updated = self.filter(pa.array(differs))
        before, after = _columns(updated.before), updated.after
        held = [
            after[field.name]
            if field.name in columns
            else cells_as(before.get(field.name), field, len(after))
            for field in after.schema
        ]
        parts = [updated.table[CHANGE_TYPE], *held, updated.table[BEFORE]]
        return RowChanges(pa.table(parts, schema=self.table.schema), self.key)


_FATES = (INSERT, UPDATE, DELETE)


def join_changes(batches: Iterable[RowChanges]) -> RowChanges:
    """Return batches of changes as one."""
    held = list(batches)
    return RowChanges(pa.concat_tables([changes.table for changes in held]), held[0].key)


def compare_tables(old: pa.Table, new: pa.Table, key: Sequence[str], flag: str | None = None) -> RowChanges:
    """Return the changes between two tables with unique keys, in the order of the key.

    ``flag`` is the column of ``new`` that marks deleted rows (null in it is false): a newly flagged row is a
    deletion.
    """
    old, new = _with_flag(old, flag), _with_flag(new, flag)
    if not key or not set(key) <= set(old.column_names):
        return _by_content(old, new)
    at_old, at_new = paired_rows(old, new, key)
    return _changes_of(old, new, key, flag, at_old, at_new)


def count_changes(old: pa.Table, new: pa.Table, key: Sequence[str], flag: str | None = None) -> Counts:
    """Return the counts of ``compare_tables`` by key, without its rows; columns may have any names."""
    old, new = _with_flag(old, flag), _with_flag(new, flag)
    at_old, at_new = paired_rows(old, new, key)
    updated, flagged = _updated_and_flagged(old, new, key, flag, at_old, at_new)
    gone = int(((at_new < 0) | flagged).sum())
    # A damaged stream may hold a key twice: one row of it is compared, the new content lacks the others.
    further = len(old) - int((at_old >= 0).sum())
    return Counts(inserted=int((at_old < 0).sum()), updated=int(updated.sum()), deleted=gone + further)


def count_contents(columns: Iterable[CellPair], old_rows: int, new_rows: int) -> Counts:
    """Return the counts of a comparison without a key by the columns of the new rows, each used once."""
    contents = _contents(columns, old_rows, new_rows)
    size = int(contents.max(initial=-1)) + 1
    old, new = (np.bincount(side, minlength=size) for side in np.split(contents, [old_rows]))
    return Counts(inserted=int(np.maximum(new - old, 0).sum()), deleted=int(np.maximum(old - new, 0).sum()))


def compare_row(old: pa.Table, new: pa.Table, key: Sequence[str], flag: str | None = None) -> RowChanges:
    """Return the ``compare_tables`` of a single key: each table has at most one row."""
    at_old, at_new = (np.array([0 if len(item) else -1]) for item in (old, new))
    return _changes_of(_with_flag(old, flag), _with_flag(new, flag), key, flag, at_old, at_new)


def cells_as(held: pa.ChunkedArray | None, field: pa.Field, count: int) -> pa.ChunkedArray:
    """Return old cells in a new column's type; null where there were none, or the type cannot hold them."""
    if held is not None and (
        comparison_type(held.type, field.type) == field.type
        or may_take(field.type, held.type)
        or meet_as_text(field.type, held.type)
    ):
        cast = exact_cast(held, field.type)
        if cast is not None:
            return cast
    return pa.chunked_array([pa.nulls(count, field.type)])


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _with_flag(table: pa.Table, flag: str | None) -> pa.Table:
    """Return the table with a non-null deletion flag; false where the column is missing."""
    if flag is None:
        return table
    if flag not in table.column_names:
        return table.append_column(flag, pa.repeat(pa.scalar(value=False), len(table)))
    index = table.column_names.index(flag)
    return table.set_column(index, flag, pc.fill_null(table.column(index), fill_value=False))


_Places = npt.NDArray[np.int64]
"""Numbers of rows; -1 where there is none."""

CellPair = tuple[pa.ChunkedArray, pa.ChunkedArray]
"""The cells of a column in all old and in all new rows."""


def paired_rows(old: pa.Table, new: pa.Table, key: Sequence[str]) -> tuple[_Places, _Places]:
    """Return the rows of both sides with the same key, in the order of the key; -1 where there is none."""
    columns, is_other = dict[str, pa.ChunkedArray](), False
    for number, name in enumerate(key):
        left, right = in_one_type(old[name], new[name])
        if left.type == right.type:
            columns[f"k{number}"] = pa.chunked_array([*right.chunks, *left.chunks], right.type)
        else:  # after an override with keys of another type no key is an old key
            nothing = pa.nulls(len(left), right.type)
            columns[f"k{number}"] = pa.chunked_array([*right.chunks, nothing], right.type)
            is_other = True
    joined = np.arange(len(new) + len(old)) if is_other else key_codes(pa.table(columns))
    count = int(joined.max(initial=-1)) + 1
    at_old, at_new, first = (np.full(count, -1) for _ in range(3))
    at_old[joined[len(new) :]] = np.arange(len(old))
    at_new[joined[: len(new)]] = np.arange(len(new))
    first[joined[::-1]] = np.arange(len(joined))[::-1]
    keys = pa.table(columns).take(pa.array(first))
    sortable = [name for name in columns if not pa.types.is_nested(keys[name].type)]
    if not sortable:
        return at_old, at_new
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in sortable])
    return at_old[order], at_new[order]


def in_one_type(old: pa.ChunkedArray, new: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return both columns in their common exact type; unchanged where there is none."""
    if old.type == new.type:
        return old, new
    if old.null_count == len(old):  # a column whose type was open, for example
        return pa.chunked_array([pa.nulls(len(old), new.type)]), new
    kind = comparison_type(old.type, new.type)
    return (old, new) if kind is None else (in_common(old, kind), in_common(new, kind))


def _changes_of(
    old: pa.Table, new: pa.Table, key: Sequence[str], flag: str | None, at_old: _Places, at_new: _Places
) -> RowChanges:
    """Return the changes of paired rows, in their order."""
    updated, flagged = _updated_and_flagged(old, new, key, flag, at_old, at_new)
    inserted, deleted = at_old < 0, at_new < 0
    gone = old.take(pa.array(at_old[deleted])) if deleted.any() else old.slice(0, 0)
    came = new.take(pa.array(at_new[inserted])) if inserted.any() else new.slice(0, 0)
    parts = [(INSERT, inserted, came, None)]
    for kind, chosen in ((UPDATE, updated), (DELETE, flagged)):
        if chosen.any():  # an empty part would cost a cast of each column
            here, there = (side.take(pa.array(at[chosen])) for side, at in ((new, at_new), (old, at_old)))
            parts.append((kind, chosen, here, there))
    if len(gone):
        parts.append((DELETE, deleted, _as_new(gone, new.schema), gone))
    table = pa.concat_tables([_rows(kind, here, there, old.schema) for kind, _, here, there in parts])
    if len(parts) == 1:
        return RowChanges(table, tuple(key))
    order = np.argsort(np.concatenate([np.flatnonzero(chosen) for _, chosen, _, _ in parts]))
    return RowChanges(table.take(pa.array(order)), tuple(key))


def _updated_and_flagged(
    old: pa.Table, new: pa.Table, key: Sequence[str], flag: str | None, at_old: _Places, at_new: _Places
) -> tuple[Bools, Bools]:
    """Return masks of the pairs of rows with other cells, and of those that are newly flagged as deleted."""
    in_both = (at_old >= 0) & (at_new >= 0)
    # Equal keys can differ only in the sign of a zero, which is not a change.
    compared = new.drop_columns([*key])
    differs = np.zeros(int(in_both.sum()), np.bool_)
    for _, cells in _differing_cells(old, compared, at_old[in_both], at_new[in_both]):
        differs |= cells
        if differs.all():
            break
    updated = in_both.copy()
    updated[in_both] = differs
    flagged = np.zeros(len(updated), np.bool_)
    if flag is not None:
        was, now = _taken(old[flag], at_old[updated]), _taken(new[flag], at_new[updated])
        flagged[updated] = pc.and_(now, pc.invert(was)).to_numpy()
        updated &= ~flagged
    return updated, flagged


def _differing_cells(
    old: pa.Table, new: pa.Table, at_old: _Places | None = None, at_new: _Places | None = None
) -> Iterator[tuple[str, Bools]]:
    """Yield a mask of the changed cells of each new column; a missing old column counts as null.

    The rows are those at some places, or all. A dropped column changes no row: it is a change of the schema.
    """
    held = _columns(old)
    for name, whole in zip(new.column_names, new.columns, strict=True):
        column, was = _taken(whole, at_new), held.get(name)
        if was is None:
            yield name, pc.is_valid(column).to_numpy()
        else:
            yield name, cells_differ(*in_one_type(_taken(was, at_old), column)).to_numpy()


def _taken(column: pa.ChunkedArray, places: _Places | None) -> pa.ChunkedArray:
    if places is None or (len(places) == len(column) and (places == np.arange(len(places))).all()):
        return column
    return column.take(pa.array(places))


def _rows(kind: str, after: pa.Table, before: pa.Table | None, old_schema: pa.Schema) -> pa.Table:
    image = pa.struct(list(old_schema))
    if before is None:
        old: pa.Array = pa.nulls(len(after), image)
    else:
        columns = [column.combine_chunks() for column in before.columns]
        old = pa.StructArray.from_arrays(columns, fields=list(old_schema))
    kinds = pa.array([kind] * len(after), pa.string())
    return pa.table([kinds, *after.columns, old], names=[CHANGE_TYPE, *after.column_names, BEFORE])


def _as_new(old: pa.Table, schema: pa.Schema) -> pa.Table:
    """Project old rows to the new columns, with null for values that the new types cannot hold."""
    held = _columns(old)
    return pa.table([cells_as(held.get(field.name), field, len(old)) for field in schema], schema=schema)


def _by_content(old: pa.Table, new: pa.Table) -> RowChanges:
    """Compare rows as multisets: a row is inserted or deleted by the difference of its counts."""
    held, nothing = _columns(old), pa.chunked_array([pa.nulls(len(old))])
    pairs = ((held.get(name, nothing), column) for name, column in _columns(new).items())
    contents = _contents(pairs, len(old), len(new))
    codes = contents[: len(old)], contents[len(old) :]
    size = int(contents.max(initial=-1)) + 1
    counts = [np.bincount(side, minlength=size) for side in codes]
    gone, came = (
        np.flatnonzero(_ranks(side) < (mine - theirs)[side])
        for side, mine, theirs in ((codes[0], *counts), (codes[1][::-1], *counts[::-1]))
    )
    came = np.sort(len(new) - 1 - came)
    deleted = old.take(pa.array(gone))
    parts = [
        _rows(INSERT, new.take(pa.array(came)), None, old.schema),
        _rows(DELETE, _as_new(deleted, new.schema), deleted, old.schema),
    ]
    return RowChanges(pa.concat_tables(parts))


def _contents(columns: Iterable[CellPair], old_rows: int, new_rows: int) -> Codes:
    """Return a number for each old and new row, equal for rows with equal cells in the new columns."""

    def codes(old: pa.ChunkedArray, new: pa.ChunkedArray) -> Codes:
        left, right = in_one_type(old, new)
        if left.type == right.type:
            return np.concatenate(cell_codes(left, right))
        theirs, mine = cell_codes(left)[0], cell_codes(right)[0]
        return np.concatenate([theirs, np.where(mine < 0, mine, mine + old_rows)])

    return joined_codes((codes(*pair) for pair in columns), old_rows + new_rows)


def _ranks(codes: Codes) -> _Places:
    """Return how many rows before each row have its number."""
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(begins, append=len(codes))
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(begins, lengths)
    return ranks
