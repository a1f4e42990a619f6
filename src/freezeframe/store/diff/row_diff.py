"""Row difference of two snapshots: inserted, updated with the old values, deleted.

Only files that the versions do not share are read. With a key each row is one change; without a key rows
are compared whole and counted, so there are only insertions and deletions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.equality import (
    Codes,
    cell_codes,
    cells_differ,
    comparable_key,
    joined_codes,
)
from freezeframe.errors import InvalidOption
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.log.scan.rows import ReadableSnapshot, part_of
from freezeframe.store.schema.columns import DELETED, arrow_columns, read_system_columns, stored_key
from freezeframe.store.schema.type_compatibility import (
    comparison_type,
    exact_cast,
    in_common,
    may_take,
    meet_as_text,
)
from freezeframe.store.table.reader import deleted_positions, read_rows, read_rows_at

CHANGE_TYPE = "_change_type"
BEFORE = "_before"
INSERT, UPDATE, DELETE = "insert", "update", "delete"


def snapshot_changes(before: Snapshot | None, after: Snapshot, key: Sequence[str]) -> pa.Table:
    """Return the row changes from ``before`` (None: empty) to ``after``, sorted by key.

    Columns: ``_change_type`` (``insert``, ``update``, ``delete``), the columns of ``after`` (for a
    deletion the deleted values), and ``_before``, a struct of the old row's columns, null for an
    insertion. Of a stream with a history the current rows of each version are compared; a newly flagged
    row is a deletion. If ``before`` has another key, rows are compared whole.
    """
    require_names(after)
    if before is not None and before.version >= 0 and set(stored_key(before.metadata) or ()) != set(key):
        key = ()  # several rows may then have the same key
    new = _only_in(after, before)
    is_there = before is not None and before.version >= 0
    old = _only_in(before, after) if before is not None and is_there else new.schema.empty_table()
    flag = DELETED if read_system_columns(after.metadata).flags_deleted else None
    return table_changes(old, new, key, flag)


def require_names(after: Snapshot) -> None:
    """Refuse a stream with a column name reserved for changes."""
    for name in (CHANGE_TYPE, BEFORE):
        if name in arrow_columns(after.delta_schema).names:
            raise InvalidOption(
                f"The changes of this stream cannot be shown: it has a column {name!r} of its own.",
                cause="Rows of changes have columns with these names.",
                remedy="Rename the column, or compare two versions that are read.",
                column=name,
            )


def table_changes(old: pa.Table, new: pa.Table, key: Sequence[str], flag: str | None = None) -> pa.Table:
    """Return the ``snapshot_changes`` of two tables in memory with unique keys.

    ``flag`` is the column of ``new`` that marks deleted rows; null in it is false.
    """
    if flag is not None:
        old, new = _with_flag(old, flag), _with_flag(new, flag)
    if not key or not set(key) <= set(old.column_names):
        return _by_content(old, new)
    return _classified(old, new, key, flag, _match_keys(old, new, key))


def row_changes(old: pa.Table, new: pa.Table, key: Sequence[str], flag: str | None = None) -> pa.Table:
    """Return the ``table_changes`` of a single key: each table has at most one row."""
    if flag is not None:
        old, new = _with_flag(old, flag), _with_flag(new, flag)
    numbers = [pa.array([0] if len(item) else [None], pa.int64()) for item in (old, new)]
    return _classified(old, new, key, flag, pa.table(numbers, names=["old", "new"]))


def _classified(
    old: pa.Table, new: pa.Table, key: Sequence[str], flag: str | None, found: pa.Table
) -> pa.Table:
    """Return the changes of rows that ``found`` pairs by their numbers, sorted by key."""
    in_both = found.filter(pc.and_(pc.is_valid(found["old"]), pc.is_valid(found["new"])))
    inserted = found.filter(pc.is_null(found["old"]))["new"]
    deleted = found.filter(pc.is_null(found["new"]))["old"]
    # Equal keys can differ only in the sign of a zero, which is not a change.
    differs = _differs(old.take(in_both["old"]), new.take(in_both["new"]).drop_columns([*key]))
    updated = in_both.filter(differs)
    flagged = updated.slice(0, 0)
    if flag is not None:
        was, now = old[flag].take(updated["old"]), new[flag].take(updated["new"])
        ended = pc.and_(now, pc.invert(was))
        updated, flagged = updated.filter(pc.invert(ended)), updated.filter(ended)
    parts = [_changes(INSERT, new.take(inserted), None, old.schema)]
    # An empty part would cost a cast of each column.
    if len(updated):
        parts.append(_changes(UPDATE, new.take(updated["new"]), old.take(updated["old"]), old.schema))
    if len(flagged):
        parts.append(_changes(DELETE, new.take(flagged["new"]), old.take(flagged["old"]), old.schema))
    if len(deleted):
        gone = old.take(deleted)
        parts.append(_changes(DELETE, _as_new(gone, new.schema), gone, old.schema))
    table = pa.concat_tables(parts)
    return table.sort_by([(name, "ascending") for name in key])


def changed_cells(changes: pa.Table) -> dict[str, int]:
    """Return the number of updated rows per changed column, from a table of changes."""
    updated = changes.filter(pc.equal(changes[CHANGE_TYPE], UPDATE))
    if not len(updated):
        return {}
    old = pa.Table.from_struct_array(updated[BEFORE])
    found, held = {}, dict(zip(old.column_names, old.columns, strict=True))
    for name, column in zip(updated.column_names, updated.columns, strict=True):
        if name not in (CHANGE_TYPE, BEFORE):
            count = pc.sum(_differing(held.get(name), column)).as_py()
            found.update({name: count} if count else {})
    return found


@dataclass(frozen=True, slots=True)
class DifferingPart:
    """Candidate rows of one version for a difference: whole files, or positions in a file."""

    snapshot: ReadableSnapshot
    positions: Mapping[str, npt.NDArray[np.int64]]

    @property
    def rows_max(self) -> int:
        """Upper bound of the number of rows, including historical ones."""
        return rows.count(self.without_shared) + sum(map(len, self.positions.values()))

    @property
    def without_shared(self) -> ReadableSnapshot:
        """The files with all rows in the part."""
        files = self.snapshot.files
        is_shared = pc.is_in(files["path"], pa.array(list(self.positions), pa.string()))
        return part_of(self.snapshot, files.filter(pc.invert(is_shared)))


def differing_part(snapshot: Snapshot, other: Snapshot | None) -> DifferingPart:
    """Return the rows of ``snapshot`` except live rows in files that both snapshots share."""
    if (
        other is None
        or other.version < 0
        or arrow_columns(snapshot.delta_schema) != arrow_columns(other.delta_schema)
    ):
        return DifferingPart(snapshot, {})
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
    return DifferingPart(part_of(snapshot, pa.concat_tables([rest, shared])), only_here)


def _only_in(snapshot: Snapshot, other: Snapshot | None) -> pa.Table:
    part = differing_part(snapshot, other)
    whole = read_rows(part.without_shared)
    if not part.positions:
        return whole
    return pa.concat_tables([whole, read_rows_at(snapshot, part.positions, whole.column_names)])


def _match_keys(old: pa.Table, new: pa.Table, key: Sequence[str]) -> pa.Table:
    """Join fully by key: row numbers ``old`` and ``new``, null where a side lacks the key."""
    names = [f"k{number}" for number in range(len(key))]
    pairs = [_joinable(old[name], new[name]) for name in key]
    left = pa.table([*(column for column, _ in pairs), _numbers(old)], names=[*names, "old"])
    right = pa.table([*(column for _, column in pairs), _numbers(new)], names=[*names, "new"])
    return left.join(right, names, join_type="full outer")


def _with_flag(table: pa.Table, flag: str) -> pa.Table:
    """Return the table with a non-null deletion flag; false where the column is missing."""
    if flag not in table.column_names:
        return table.append_column(flag, pa.repeat(pa.scalar(value=False), len(table)))
    index = table.column_names.index(flag)
    return table.set_column(index, flag, pc.fill_null(table.column(index), fill_value=False))


def _numbers(table: pa.Table) -> pa.Array:
    return pa.array(range(len(table)), pa.int64())


def _joinable(old: pa.ChunkedArray, new: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Return both sides of a key column in a common type, for a join by equal values."""
    if old.type != new.type:
        old, new = _of_one_type(old, new)
    if old.type != new.type:  # after an override with keys of another type no key is an old key
        return pa.array(range(len(old)), pa.int64()), pa.array(range(-len(new), 0), pa.int64())
    if not (old.null_count or new.null_count or pa.types.is_floating(new.type)):
        return old, new
    # A join never matches nulls; dictionary codes of the values match them.
    both = comparable_key(pa.chunked_array([*old.chunks, *new.chunks], new.type))
    codes = both.combine_chunks().dictionary_encode("encode").indices
    return codes.slice(0, len(old)), codes.slice(len(old))


def _of_one_type(old: pa.ChunkedArray, new: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return both columns in their common exact type; unchanged where there is none."""
    if old.null_count == len(old):  # a column whose type was open, for example
        return pa.chunked_array([pa.nulls(len(old), new.type)]), new
    kind = comparison_type(old.type, new.type)
    return (old, new) if kind is None else (in_common(old, kind), in_common(new, kind))


def _differs(old: pa.Table, new: pa.Table) -> pa.ChunkedArray:
    """Return a mask of the rows with a changed cell in the new columns; a missing old column counts as null.

    A dropped column changes no row: it is a change of the stream's schema.
    """
    found = pa.chunked_array([pa.array([False] * len(new), pa.bool_())])
    held = dict(zip(old.column_names, old.columns, strict=True))
    for name, column in zip(new.column_names, new.columns, strict=True):
        found = pc.or_(found, _differing(held.get(name), column))
        if len(new) == 1 and found[0].as_py():
            break
    return found


def _differing(old: pa.ChunkedArray | None, new: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_valid(new) if old is None else cells_differ(*_of_one_type(old, new))


def _changes(kind: str, after: pa.Table, before: pa.Table | None, old_schema: pa.Schema) -> pa.Table:
    image = pa.struct(list(old_schema))
    if before is None:
        old: pa.Array = pa.nulls(len(after), image)
    else:
        whole = before.combine_chunks()
        columns = [column.combine_chunks() for column in whole.columns]
        old = pa.StructArray.from_arrays(columns, fields=list(old_schema))
    kinds = pa.array([kind] * len(after), pa.string())
    names = [CHANGE_TYPE, *after.column_names, BEFORE]
    return pa.table([kinds, *after.columns, old], names=names)


def _as_new(old: pa.Table, schema: pa.Schema) -> pa.Table:
    """Project old rows to the new columns, with null for values that the new types cannot hold."""
    held = dict(zip(old.column_names, old.columns, strict=True))
    return pa.table([_cells_as(field, held.get(field.name), len(old)) for field in schema], schema=schema)


def _cells_as(field: pa.Field, held: pa.ChunkedArray | None, count: int) -> pa.ChunkedArray:
    if held is not None and (
        comparison_type(held.type, field.type) == field.type
        or may_take(field.type, held.type)
        or meet_as_text(field.type, held.type)
    ):
        cast = exact_cast(held, field.type)
        if cast is not None:
            return cast
    return pa.chunked_array([pa.nulls(count, field.type)])


def _by_content(old: pa.Table, new: pa.Table) -> pa.Table:
    """Compare rows as multisets: a row is inserted or deleted by the difference of its counts."""
    left: dict[int, list[int]] = {}
    contents = _contents(old, new).tolist()
    for number, row in enumerate(contents[: len(old)]):
        left.setdefault(row, []).append(number)
    inserted = []
    for number, row in enumerate(contents[len(old) :]):
        if left.get(row):
            left[row].pop()
        else:
            inserted.append(number)
    gone = sorted(number for numbers in left.values() for number in numbers)
    deleted = old.take(pa.array(gone, pa.int64()))
    return pa.concat_tables(
        [
            _changes(INSERT, new.take(pa.array(inserted, pa.int64())), None, old.schema),
            _changes(DELETE, _as_new(deleted, new.schema), deleted, old.schema),
        ]
    )


def _contents(old: pa.Table, new: pa.Table) -> Codes:
    """Return a number for each old and new row, equal for rows with equal cells in the new columns."""
    columns = list[Codes]()
    held = dict(zip(old.column_names, old.columns, strict=True))
    nothing = pa.chunked_array([pa.nulls(len(old))])
    for name, column in zip(new.column_names, new.columns, strict=True):
        left, right = _of_one_type(held.get(name, nothing), column)
        if left.type == right.type:
            columns.append(np.concatenate(cell_codes(left, right)))
            continue
        theirs, mine = cell_codes(left)[0], cell_codes(right)[0]
        columns.append(np.concatenate([theirs, np.where(mine < 0, mine, mine + len(old))]))
    return joined_codes(columns, len(old) + len(new))
