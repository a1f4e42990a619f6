"""Merge of a batch into stored files, a file at a time: in this process, or in Spark's Python workers.

A file is read by row groups. Where it has keys of the batch, the batch's rows of these keys are held, and no
others; of the batch's keys some hundred thousand are held at a time. With a key a row of the batch meets at
most one stored row, so the fate of each stored row follows from its file and the batch alone, and rows that
no file met are new. Source: ``docs/decisions/0061``.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.protocol import require_found
from freezeframe.errors import CorruptData, SchemaDriftError
from freezeframe.log.scan.data_files import open_parquet
from freezeframe.log.scan.file_rows import FileRead, deleted_rows, file_batches
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store.model.directory import StreamTable
from freezeframe.store.schema.columns import VALID_TO, DeltaSchema
from freezeframe.store.table.keys import KeyNumbers
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.updates.rule import Fates, Flags, MergeRule, Numbers, merge_rows

KEYS_MAX = 1 << 20
"""So many keys of the batch are looked up at once."""

PIECE_ROWS = 1 << 16
"""So many rows of the batch are decoded at once."""

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

    def pieces(self, names: Sequence[str], rows_max: int = PIECE_ROWS) -> Iterator[pa.Table]:
        """Yield some columns of all rows, in their order; the files hold as many as were landed."""
        schema = pa.schema([self.schema.field(name) for name in names])
        if self.table is not None:
            for start in range(0, self.rows, rows_max):
                yield in_types(self.table.slice(start, rows_max), schema, BATCH_VALUE)
            return
        found = 0
        for name, size in self.files:
            assert self.storage is not None  # noqa: S101 - files are in one
            with reads_of(name):
                file = open_parquet(self.storage, name, size)
                stored = set(file.schema_arrow.names)  # a column without a type is in no file
                wanted = [column for column in names if column in stored]
                for batch in file.iter_batches(rows_max, columns=wanted or file.schema_arrow.names[:1]):
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
    """Stored files that are merged together: one file, or small ones that become one."""

    reads: tuple[FileRead, ...]
    inside: tuple[Numbers | None, ...]
    """For each file the positions of the rows inside the window; None: all are."""
    becomes_one: bool = False
    """Whether its rows are written anew in any case, as one file in the order of the key."""
    is_rewritten: bool = False
    """Whether its rows are written anew in any case."""


@dataclass(frozen=True, slots=True)
class MergedFiles:
    """What became of groups of files, in their order."""

    fates: Fates
    touched: tuple[int, ...]
    """For each file the number of its rows that changed or went."""
    paths: tuple[tuple[str, ...] | None, ...]
    """For each group the new files; None where the stored ones stay."""
    rows: int
    """Rows in the new files."""
    seen: bytes
    """A bit for each row of the batch: whether it met a stored row."""
    met: int
    clashing: int = 0
    """Rows of the batch that met a stored row outside the window."""
    new_paths: tuple[str, ...] = ()
    """Files of the rows that are new, where they were asked for."""
    hashes: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Bytes and SHA-256 of the files in a bucket, by their names there."""

    def flags(self, rows: int) -> Flags:
        """Return ``seen`` as a mask."""
        return np.unpackbits(np.frombuffer(self.seen, np.uint8), count=rows).astype(np.bool_)


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
        return _Run(self, staging or StagingFolder(self.table, self.attempt)).result()

    def write_new(self, staging: StagingFolder, seen: Flags) -> tuple[tuple[str, ...], int]:
        """Write the rows of the batch that are not ``seen``; return the files and the number of rows."""
        run = _Run(replace(self, groups=()), staging)  # which looks up no keys
        run.seen = seen
        return staging.write(run.new_rows(), self.columns, self.rule.key, uuid.uuid4().hex), run.rows


class _Run:
    """State of ``FileMerge.run``."""

    def __init__(self, task: FileMerge, staging: StagingFolder) -> None:
        self._task = task
        self._rule = task.rule
        self._storage = task.table.storage
        self._staging = staging
        self._fates = Fates()
        self._touched: list[int] = []
        self._met = self._clashing = self.rows = 0
        self.seen = np.zeros(task.batch.rows, np.bool_)
        keys = task.batch.key_pieces(task.rule.key)
        self._keys = list(keys) if task.batch.rows <= KEYS_MAX and task.groups and task.rule.key else None

    def result(self) -> MergedFiles:
        """Merge the groups, one after the other."""
        task, new_paths = self._task, tuple[str, ...]()
        paths = [
            self._write_group(group, is_last=number == len(task.groups))
            for number, group in enumerate(task.groups, 1)
        ]
        if task.writes_new and not (task.groups and task.groups[-1].becomes_one):
            new_paths = self._staging.write(self.new_rows(), task.columns, self._rule.key, uuid.uuid4().hex)
        seen = np.packbits(self.seen).tobytes()
        return MergedFiles(
            self._fates,
            tuple(self._touched),
            tuple(paths),
            self.rows,
            seen,
            self._met,
            self._clashing,
            new_paths,
            self._staging.hashes(),
        )

    def new_rows(self) -> Iterator[pa.Table]:
        """Yield the rows that are not seen, as new rows of the stream."""
        for rows in self._task.batch.without(self.seen):
            self.rows += len(rows)
            yield self._rule.new_rows(rows)

    def _write_group(self, group: FileGroup, *, is_last: bool) -> tuple[str, ...] | None:
        """Write the group's rows where one of them changes, or they are written anew in any case."""
        before, label = len(self._touched), uuid.uuid4().hex
        pieces: Iterator[pa.Table] = itertools.chain.from_iterable(
            self._merged(read, inside, is_rewritten=group.is_rewritten)
            for read, inside in zip(group.reads, group.inside, strict=True)
        )
        if group.becomes_one:
            # The rows that are new belong there, too, and are known once the others have been read.
            pieces = itertools.chain(pieces, self.new_rows()) if is_last and self._task.writes_new else pieces
            paths = self._staging.write(pieces, self._task.columns, self._rule.key, label)
        else:
            paths = self._staging.write_streamed(pieces, self._task.columns, label)
        is_changed = bool(paths) or any(self._touched[before:])  # all rows may be gone
        return paths if is_changed or group.is_rewritten else None

    def _merged(self, read: FileRead, inside: Numbers | None, *, is_rewritten: bool) -> Iterator[pa.Table]:
        """Yield the rows that a file leads to; none where they are the stored ones, unless rewritten."""
        place = self._places(read)
        within = None
        if inside is not None:
            within = np.zeros(len(place) + (read.vector.cardinality if read.vector else 0), np.bool_)
            within[inside] = True
            if read.vector is not None:
                gone = deleted_rows(self._storage, read.table, read.vector).astype(np.int64)
                within = np.delete(within, gone)
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
        self._touched.append(0)
        if self._rule.absent == "kept" and not (len(met) or is_rewritten):
            return
        batch, begin, writes = self._task.batch.take(numbers), 0, is_rewritten
        taken = np.cumsum(wanted) - 1  # for a row of the batch its place among the taken ones
        for number, stored in enumerate(self._stored(read)):
            here = slice(begin, begin + len(stored))
            at = np.flatnonzero(is_met[here])
            rows = batch.take(pa.array(taken[place[here][at]]))
            merged = merge_rows(stored, at, rows, self._rule, None if within is None else within[here])
            self._fates += merged.fates
            self._touched[-1] += merged.fates.updated + merged.fates.deleted
            begin += len(stored)
            if merged.is_changed and not writes:
                writes = True
                for unchanged in itertools.islice(self._stored(read), number):
                    self.rows += len(unchanged)
                    yield unchanged
            if writes and len(merged.rows):
                self.rows += len(merged.rows)
                yield merged.rows

    def _stored(self, read: FileRead) -> Iterator[pa.Table]:
        """Yield the live rows of a file in the types of the result."""
        for rows in file_batches(self._storage, read, None):
            yield in_types(rows, self._rule.target, _STORED_VALUE)

    def _places(self, read: FileRead) -> Numbers:
        """Return for each live row of a file the row of the batch that has its key; -1 for none."""
        columns = [*self._rule.key, *((VALID_TO,) if self._rule.own.has_history else ())]
        fields = {field["name"]: field for field in read.fields}
        # A file without any of them has rows all the same.
        wanted = tuple(fields[name] for name in columns if name in fields) or read.fields[:1]
        schema = pa.schema([self._rule.target.field(name) for name in columns])
        batches = file_batches(self._storage, replace(read, fields=wanted, shown=len(wanted)), None)
        if not columns:
            return np.full(sum(map(len, batches)), -1)
        keys = pa.concat_tables(
            [schema.empty_table(), *(in_types(batch, schema, _STORED_VALUE) for batch in batches)]
        )
        place = np.full(len(keys), -1)
        now = np.arange(len(keys))
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
