"""Key search: a scan of the key's columns in a stream's files, file by file.

The scan of a file is a function of values, so it runs as a thread of this process, or as a task of Spark
in a Python worker. Source: ``docs/decisions/0024`` and ``docs/decisions/0034``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.log.scan import rows
from freezeframe.log.scan.rows import ReadableSnapshot
from freezeframe.storage import LocalStorage, Storage
from freezeframe.storage.concurrency import is_local, map_concurrently
from freezeframe.store.keys.key_numbers import KeyNumbers
from freezeframe.store.keys.key_pruning import may_hold
from freezeframe.store.schema.column_mapping import arrow_columns, physical_names

PIECE_ROWS = 1 << 18
"""At least so many rows are looked up at once, and twice as many as there are keys: each piece takes a hash
table of the keys, so fewer would cost more tables and more would need more memory."""

THREADS_MAX = 8

REQUESTS_MAX = 16
"""So many files of a distant storage are read side by side: they are waited for, which takes no processor."""

PART_ROWS_MIN = 1 << 18
"""A file of twice as many rows is read in several parts, side by side."""

FOUND = pa.schema([("file", pa.int32()), ("row", pa.int64()), ("place", pa.int64())])


def files_with(snapshot: ReadableSnapshot, keys: pa.Table) -> pa.Table:
    """The rows of ``snapshot.files`` whose files may hold one of the keys by their statistics."""
    files, schema = snapshot.files, snapshot.schema
    held = may_hold(files["stats"], keys, arrow_columns(schema), physical_names(schema))
    return files.filter(pa.array(held, pa.bool_()))


def scan(
    snapshot: ReadableSnapshot, files: pa.Table, keys: pa.Table, piece_rows: int = PIECE_ROWS
) -> pa.Table:
    """Locate distinct ``keys`` in ``files`` (rows of ``snapshot.files``).

    The columns are those of ``TableEngine.find``: the file's number, the row's position in the file, deleted
    rows included, and the key's row. Memory is that of the keys and of ``piece_rows`` stored ones a thread.

    Raises:
        CorruptData: a file is missing or damaged.
    """
    numbers = KeyNumbers(keys)
    parts = _parts(snapshot, files, keys.column_names, snapshot.storage)
    threads = min(THREADS_MAX, _processors()) if is_local(snapshot.storage) else REQUESTS_MAX
    found = map_concurrently(lambda part: _scan_part(part, numbers, piece_rows), parts, threads)
    return pa.concat_tables(found) if found else FOUND.empty_table()


def find_in(tables: Sequence[pa.Table], keys: pa.Table) -> pa.Table:
    """``scan`` of files whose rows were read, deleted ones too."""
    numbers = KeyNumbers(keys)
    found = [
        _found(number, 0, [table.select(keys.column_names)], numbers) for number, table in enumerate(tables)
    ]
    return pa.concat_tables(found)


def scan_tasks(
    snapshot: ReadableSnapshot, files: pa.Table, columns: Sequence[str], keys_file: str
) -> list[Callable[[], pa.Table]]:
    """Calls that can be sent to other processes of this machine; their answers together are that of ``scan``.

    ``keys_file`` is a Parquet file of the keys, which are the stream's ``columns``. There is a call for each
    processor, with parts of about as many rows, so that it reads the keys once.
    """
    parts = _parts(snapshot, files, columns, LocalStorage(snapshot.storage.root))
    shares: list[list[_Part]] = [[] for _ in range(max(1, min(_processors(), len(parts))))]
    for part in sorted(parts, key=lambda one: -one.rows):
        min(shares, key=lambda share: sum(one.rows for one in share)).append(part)
    return [functools.partial(_scan_parts, share, keys_file) for share in shares]


@dataclass(frozen=True, slots=True)
class _Part:
    """A run of row groups of a file, as a unit of work for any process."""

    file: int
    rows: int
    read: Callable[[], tuple[int, Iterator[pa.RecordBatch]]]


def _parts(
    snapshot: ReadableSnapshot, files: pa.Table, columns: Sequence[str], storage: Storage
) -> list[_Part]:
    found = []
    for number, (count, read) in enumerate(rows.whole_files(snapshot, files, columns, storage)):
        parts = max(1, min(_processors(), count // PART_ROWS_MIN))
        found += [
            _Part(number, count // parts, functools.partial(read, part, parts)) for part in range(parts)
        ]
    return found


def _processors() -> int:
    return os.cpu_count() or 1


def _scan_parts(parts: Sequence[_Part], keys_file: str) -> pa.Table:
    numbers = KeyNumbers(pq.read_table(keys_file))
    return pa.concat_tables([_scan_part(part, numbers) for part in parts])


def _scan_part(part: _Part, numbers: KeyNumbers, piece_rows: int = PIECE_ROWS) -> pa.Table:
    begin, batches = part.read()
    return _found(part.file, begin, _pieces(batches, max(piece_rows, 2 * numbers.count)), numbers)


def _found(file: int, begin: int, pieces: Iterable[pa.Table], numbers: KeyNumbers) -> pa.Table:
    """The keys in rows of a file from position ``begin`` on."""
    found = []
    for piece in pieces:
        row, place = numbers.found_in(piece)
        arrays = [pa.array(np.full(len(row), file, np.int32)), pa.array(row + begin), pa.array(place)]
        begin += len(piece)
        found.append(pa.RecordBatch.from_arrays(arrays, schema=FOUND))
    return pa.Table.from_batches(found, FOUND)


def _pieces(batches: Iterable[pa.RecordBatch], rows_min: int) -> Iterator[pa.Table]:
    """The batches, combined to tables of the size of one look-up."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= rows_min:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
