"""Merge of a batch into stored files, a file at a time: in this process, or in Spark's Python workers.

A file is read by row groups, and a large one by several tasks. Where it has keys of the batch, the batch's
rows of these keys are held, and no others; of the batch's keys some hundred thousand are held at a time.
With a key a row of the batch meets at most one stored row, so the fate of each stored row follows from its
file and the batch alone, and rows that no file met are new. Source: ``docs/decisions/0061``.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from freezeframe.engine.protocol import require_found
from freezeframe.errors import CorruptData, SchemaDriftError
from freezeframe.log.scan.data_files import open_parquet
from freezeframe.log.scan.file_rows import WHOLE, FileRead, Part, file_batches, live_positions
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store.model.directory import StreamTable
from freezeframe.store.schema.columns import VALID_TO, DeltaSchema
from freezeframe.store.table.keys import KeyNumbers, parts_of, shares
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.updates.plan import MARKED_SHARE_MAX
from freezeframe.store.updates.rule import Fates, Flags, MergedRows, MergeRule, Numbers, merge_rows

KEYS_MAX = 1 << 20
"""So many keys of the batch are looked up at once."""

PIECE_ROWS = 1 << 16
"""So many rows of the batch are decoded at once."""

_LAST = sys.maxsize
"""The place of rows that are new."""

BATCH_VALUE, _STORED_VALUE = "A value of the batch", "A stored value"


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of a batch, each key once: Parquet files, or a table in this process."""

    schema: pa.Schema
    """Columns and types in which its rows are merged."""
    rows: int
    storage: Storage | None = None
    files: tuple[tuple[str, int], ...] = ()
    """Names and bytes."""
    table: pa.Table | None = None

    def pieces(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield some columns of all rows, in their order; the files hold as many as were landed."""
        schema = pa.schema([self.schema.field(name) for name in names])
        if self.table is not None:
            for start in range(0, self.rows, PIECE_ROWS):
                yield in_types(self.table.slice(start, PIECE_ROWS), schema, BATCH_VALUE)
            return
        found = 0
        for name, size in self.files:
            assert self.storage is not None  # noqa: S101 - files are in one
            with reads_of(name):
                file = open_parquet(self.storage, name, size)
                stored = set(file.schema_arrow.names)  # a column without a type is in no file
                wanted = [column for column in names if column in stored]
                for batch in file.iter_batches(PIECE_ROWS, columns=wanted or file.schema_arrow.names[:1]):
                    found += len(batch)
                    yield in_types(batch, schema, BATCH_VALUE)
        require_found([name for name, _ in self.files], found, self.rows)

    def key_pieces(self, key: Sequence[str]) -> Iterator[tuple[int, KeyNumbers]]:
        """Yield the keys in parts, each with the number of its first row."""
        held: list[pa.Table] = []
        begin = count = 0
        for piece in self.pieces(key):
            held.append(piece)
            count += len(piece)
            if count >= KEYS_MAX:
                yield begin, KeyNumbers(pa.concat_tables(held))
                begin, count, held = begin + count, 0, []
        if held:
            yield begin, KeyNumbers(pa.concat_tables(held))

    def take(self, numbers: Numbers) -> pa.Table:
        """Return the rows of these ascending, distinct numbers."""
        found, begin = [self.schema.empty_table()], 0
        if self.table is not None and len(numbers) < self.rows:
            return in_types(self.table.take(pa.array(numbers)), self.schema, BATCH_VALUE).combine_chunks()
        if len(numbers) == self.rows:
            found, numbers = [*found, *self.pieces(self.schema.names)], numbers[:0]
        for piece in self.pieces(self.schema.names) if len(numbers) else ():
            near = numbers[slice(*np.searchsorted(numbers, [begin, begin + len(piece)]))]
            if len(near):
                found.append(piece.take(pa.array(near - begin)))
            begin += len(piece)
        return pa.concat_tables(found).combine_chunks()

    def without(self, seen: Flags) -> Iterator[pa.Table]:
        """Yield the rows that are not ``seen``."""
        begin = 0
        for piece in self.pieces(self.schema.names):
            rows = piece.filter(pa.array(~seen[begin : begin + len(piece)]))
            begin += len(piece)
            if len(rows):
                yield rows


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Stored files that are merged together: one file or a part of it, or small ones that become one."""

    reads: tuple[FileRead, ...]
    inside: tuple[Numbers | None, ...]
    """For each file the positions of the rows inside the window; None: all are."""
    becomes_one: bool = False
    """Whether its rows are written anew in any case, as one file in the order of the key."""
    is_rewritten: bool = False
    """Whether its rows are written anew in any case."""
    is_marked: bool = False
    """Whether its file stays: rows that change are marked in it as deleted, and written beside it."""
    part: Part = WHOLE
    """The part of the file, where several tasks share one."""
    without: Numbers | None = None
    """Positions of rows that are in new files already."""
    place: int = 0
    """Where its rows are among those of all groups."""

    @property
    def size(self) -> int:
        """Bytes in the stored files."""
        return sum(read.size for read in self.reads) // self.part[1]


@dataclass(frozen=True, slots=True)
class MergedFiles:
    """What became of stored files, each given by its path, and of the rows of the batch."""

    fates: Fates
    touched: Mapping[str, int]
    """The number of rows that changed or went."""
    replaced: frozenset[str]
    """The files whose rows are all in new ones, or gone."""
    marked: Mapping[str, BitMap64]
    """The positions of rows that are gone, or in new files."""
    written: Mapping[int, tuple[str, ...]]
    """The new files, by the place of the first of their rows."""
    rows: int
    """Rows in the new files."""
    seen: bytes
    """A bit for each row of the batch: whether it met a stored row."""
    met: int
    clashing: int
    """Rows of the batch that met a stored row outside the window."""
    hashes: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Bytes and SHA-256 of the files in a bucket, by their names there."""

    def flags(self, rows: int) -> Flags:
        """Return ``seen`` as a mask."""
        return np.unpackbits(np.frombuffer(self.seen, np.uint8), count=rows).astype(np.bool_)

    @property
    def paths(self) -> tuple[str, ...]:
        """The new files, in the order of their rows."""
        return tuple(path for place in sorted(self.written) for path in self.written[place])

    @classmethod
    def joined(cls, parts: Sequence[MergedFiles]) -> MergedFiles:
        """Return what became of the groups of all tasks, which share files and the batch."""
        touched: Counter[str] = Counter()
        marked: dict[str, BitMap64] = {}
        for part in parts:
            touched.update(part.touched)
            for path, rows in part.marked.items():
                marked[path] = marked.get(path, BitMap64()) | rows
        seen = np.bitwise_or.reduce([np.frombuffer(part.seen, np.uint8) for part in parts])
        return cls(
            functools.reduce(operator.add, (part.fates for part in parts)),
            touched,
            frozenset().union(*(part.replaced for part in parts)),
            marked,
            {place: paths for part in parts for place, paths in part.written.items()},
            sum(part.rows for part in parts),
            seen.tobytes(),
            sum(part.met for part in parts),
            sum(part.clashing for part in parts),
            {name: one for part in parts for name, one in part.hashes.items()},
        )


@dataclass(frozen=True, slots=True)
class FileMerge:
    """A merge of a batch with groups of files, as a unit of work for any process."""

    table: StreamTable
    attempt: str
    """The folder of the attempt."""
    columns: DeltaSchema
    """The columns of the new files."""
    rule: MergeRule
    batch: BatchRows
    groups: tuple[FileGroup, ...]
    writes_new: bool = False
    """Whether the rows that none of these files met are all that are new, and are written as well."""

    def run(self, staging: StagingFolder | None = None) -> MergedFiles:
        """Write what changes, into the attempt's folder, and return what became of each row."""
        if staging is not None:
            return _Run(self, staging).result()
        staging = StagingFolder(self.table, self.attempt)
        return replace(_Run(self, staging).result(), hashes=staging.hashes())

    def shares(self, count: int) -> list[FileMerge]:
        """Return at most ``count`` merges that are this one together, of about as many bytes each.

        A file that is too large for one of them is shared by its row groups, unless it must be known of all
        of them whether a row changes.
        """
        total = sum(group.size for group in self.groups)
        groups = []
        for group in self.groups:
            rows = sum(read.rows or 0 for read in group.reads)
            is_whole = group.becomes_one or not (group.is_rewritten or group.is_marked)
            parts = 1 if is_whole else min(parts_of(rows), max(1, round(count * group.size / max(total, 1))))
            groups += [replace(group, part=(number, parts)) for number in range(parts)]
        placed = [replace(group, place=place) for place, group in enumerate(groups)]
        dealt = shares(placed, count, lambda group: group.size)
        if len(dealt) <= 1:
            return [replace(self, groups=tuple(placed))]
        in_order = (sorted(share, key=lambda group: group.place) for share in dealt)
        return [replace(self, groups=tuple(share), writes_new=False) for share in in_order]

    def write_new(self, staging: StagingFolder, merged: MergedFiles) -> MergedFiles:
        """Write the rows of the batch that met no stored row of ``merged``; return it with them."""
        run = _Run(replace(self, groups=()), staging)  # which looks up no keys
        run.seen = merged.flags(self.batch.rows)
        paths = run.write(run.new_rows())
        return replace(merged, written={**merged.written, _LAST: paths}, rows=merged.rows + run.rows)


class _Run:
    """State of ``FileMerge.run``."""

    def __init__(self, task: FileMerge, staging: StagingFolder) -> None:
        self._task = task
        self._rule = task.rule
        self._storage = task.table.storage
        self._staging = staging
        self._fates = Fates()
        self._touched: dict[str, int] = {}
        self._replaced: set[str] = set()
        self._marked: dict[str, BitMap64] = {}
        self._met = self._clashing = self.rows = 0
        self.seen = np.zeros(task.batch.rows, np.bool_)
        keys = task.batch.key_pieces(task.rule.key)
        self._keys = list(keys) if task.batch.rows <= KEYS_MAX and task.groups and task.rule.key else None

    def result(self) -> MergedFiles:
        """Merge the groups, one after the other."""
        task, written = self._task, dict[int, tuple[str, ...]]()
        marked = [group for group in task.groups if group.is_marked]
        if marked:
            rows = itertools.chain.from_iterable(map(self._rows, marked))
            written[marked[0].place] = self._staging.write_streamed(rows, task.columns, uuid.uuid4().hex)
        for group in task.groups:
            if not group.is_marked:
                written[group.place] = self._write_group(group)
        if task.writes_new and not (task.groups and task.groups[-1].becomes_one):
            written[_LAST] = self.write(self.new_rows())
        return MergedFiles(
            self._fates,
            self._touched,
            frozenset(self._replaced),
            self._marked,
            written,
            self.rows,
            np.packbits(self.seen).tobytes(),
            self._met,
            self._clashing,
        )

    def new_rows(self) -> Iterator[pa.Table]:
        """Yield the rows that are not seen, as new rows of the stream."""
        for rows in self._task.batch.without(self.seen):
            self.rows += len(rows)
            yield self._rule.new_rows(rows)

    def write(self, pieces: Iterator[pa.Table]) -> tuple[str, ...]:
        """Write rows as files in the order of the key."""
        return self._staging.write(pieces, self._task.columns, self._rule.key, uuid.uuid4().hex)

    def _write_group(self, group: FileGroup) -> tuple[str, ...]:
        """Write the group's rows where one of them changes, or they are written anew in any case."""
        task, pieces = self._task, self._rows(group)
        if group.becomes_one:
            # The rows that are new belong there, too, and are known once the others have been read.
            pieces = itertools.chain(pieces, self.new_rows()) if task.writes_new else pieces
            paths = self.write(pieces)
        else:
            paths = self._staging.write_streamed(pieces, task.columns, uuid.uuid4().hex)
        stored = [read.path for read in group.reads]
        if group.is_rewritten or paths or any(map(self._touched.__getitem__, stored)):  # all rows may be gone
            self._replaced.update(stored)
        return paths

    def _rows(self, group: FileGroup) -> Iterator[pa.Table]:
        """Yield the rows that belong into new files."""
        for read, inside in zip(group.reads, group.inside, strict=True):
            yield from self._merged(group, read, inside)

    def _merged(self, group: FileGroup, read: FileRead, inside: Numbers | None) -> Iterator[pa.Table]:
        """Yield the rows that a file leads to; none where they are the stored ones, unless rewritten."""
        positions = live_positions(self._storage, read, group.part, group.without)
        place = self._places(group, read, len(positions))
        within = None if inside is None else np.isin(positions, inside, assume_unique=True)
        is_met = place >= 0
        met = place[is_met]
        wanted = np.zeros(len(self.seen), np.bool_)
        wanted[met] = True
        numbers = np.flatnonzero(wanted)
        if len(numbers) < len(met) or self.seen[numbers].any():
            raise repeated_key(self._rule.key, len(met))
        self.seen |= wanted
        self._met += len(met)
        self._clashing += 0 if within is None else int((is_met & ~within).sum())
        self._touched.setdefault(read.path, 0)
        changes_absent = self._rule.absent != "kept" and (within is None or within.any())
        if not (changes_absent or len(met) or group.is_rewritten):
            return
        batch, begin, writes = self._task.batch.take(numbers), 0, group.is_rewritten
        taken = np.cumsum(wanted) - 1  # for a row of the batch its place among the taken ones
        for number, stored in enumerate(self._stored(group, read)):
            here = slice(begin, begin + len(stored))
            at = np.flatnonzero(is_met[here])
            rows = batch.take(pa.array(taken[place[here][at]]))
            merged = merge_rows(stored, at, rows, self._rule, None if within is None else within[here])
            self._fates += merged.fates
            self._touched[read.path] += merged.fates.updated + merged.fates.deleted
            begin += len(stored)
            if merged.is_changed and not (writes or group.is_marked):
                writes = True
                for unchanged in itertools.islice(self._stored(group, read), number):
                    self.rows += len(unchanged)
                    yield unchanged
            if writes or merged.is_changed:
                found = merged.rows if writes else self._beside(read.path, positions[here], merged)
                self.rows += len(found)
                yield from (found,) if len(found) else ()

    def _beside(self, path: str, positions: Numbers, merged: MergedRows) -> pa.Table:
        """Mark the rows that change, or all where few are left; return what takes their place."""
        span = int(positions[-1] - positions[0]) + 1  # deleted rows are among them
        is_moved = span - int(merged.kept.sum()) > MARKED_SHARE_MAX * span
        gone = positions if is_moved else positions[~merged.kept]
        self._marked[path] = self._marked.get(path, BitMap64()) | BitMap64(gone)
        return merged.rows if is_moved else merged.changes

    def _stored(self, group: FileGroup, read: FileRead) -> Iterator[pa.Table]:
        """Yield the live rows of a file in the types of the result."""
        for rows in file_batches(self._storage, read, None, without=group.without, part=group.part):
            yield in_types(rows, self._rule.target, _STORED_VALUE)

    def _places(self, group: FileGroup, read: FileRead, count: int) -> Numbers:
        """Return for each live row of a file the row of the batch that has its key; -1 for none."""
        place = np.full(count, -1)
        if not (self._rule.key and self._task.batch.rows):
            return place
        columns = [*self._rule.key, *((VALID_TO,) if self._rule.own.has_history else ())]
        fields = {field["name"]: field for field in read.fields}
        # A file without any of them has rows all the same.
        wanted = tuple(fields[name] for name in columns if name in fields) or read.fields[:1]
        schema = pa.schema([self._rule.target.field(name) for name in columns])
        keys_only = replace(read, fields=wanted, shown=len(wanted))
        batches = file_batches(self._storage, keys_only, None, without=group.without, part=group.part)
        keys = pa.concat_tables(
            [schema.empty_table(), *(in_types(batch, schema, _STORED_VALUE) for batch in batches)]
        )
        now = np.arange(count)
        if self._rule.own.has_history:
            now = np.flatnonzero(pc.is_null(keys[VALID_TO]).to_numpy())
            keys = keys.take(pa.array(now)).drop_columns([VALID_TO])
        for begin, numbers in self._keys or self._task.batch.key_pieces(self._rule.key):
            at, number = numbers.found_in(keys)
            place[now[at]] = begin + number
        return place


def in_types(rows: pa.Table | pa.RecordBatch, schema: pa.Schema, subject: str) -> pa.Table:
    """Return rows in other types; ``subject`` is what does not fit, such as a date beyond all timestamps."""
    try:
        return in_schema(rows, schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaDriftError(
            f"{subject} does not fit the type of its column.",
            cause=str(error),
            remedy="Cast the column to the stored type before the update.",
        ) from error


def repeated_key(key: Sequence[str], rows: int) -> CorruptData:
    """Return the error for stored rows that share a key."""
    return CorruptData(
        f"The stored rows hold a key ({', '.join(key)}) more than once.",
        cause=f"{rows} stored rows have fewer keys of the batch.",
        remedy="Replace the stream's content with override=True.",
    )
