"""Where a batch's keys are in a stream's files, found in this process: a scan of the key's columns.

Up to some ten million rows it is cheaper than to ask Spark, and a process that only brings small
batches needs no Spark at all. Source: ``docs/decisions/0024``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from freezeframe.log.scan import rows
from freezeframe.log.scan.rows import ReadableSnapshot
from freezeframe.storage.concurrency import is_local
from freezeframe.store.keys.key_numbers import KeyNumbers
from freezeframe.store.keys.key_pruning import may_hold
from freezeframe.store.schema.column_mapping import arrow_columns, physical_names

PIECE_ROWS = 1 << 18
"""At least so many rows are looked up at once, and twice as many as there are keys: each piece takes a hash
table of the keys, so fewer would cost more tables and more would need more memory."""

THREADS_MAX = 8

REQUESTS_MAX = 16
"""So many files of a distant storage are read side by side: they are waited for, which takes no processor."""

FOUND = pa.schema([("file", pa.int32()), ("row", pa.int64()), ("place", pa.int64())])


def files_with(snapshot: ReadableSnapshot, keys: pa.Table) -> pa.Table:
    """The rows of ``snapshot.files`` whose statistics allow one of the keys."""
    files, schema = snapshot.files, snapshot.schema
    held = may_hold(files["stats"], keys, arrow_columns(schema), physical_names(schema))
    return files.filter(pa.array(held, pa.bool_()))


def scan(snapshot: ReadableSnapshot, files: pa.Table, keys: pa.Table) -> pa.Table:
    """Where ``files`` (rows of ``snapshot.files``) hold the keys, each of which is there once.

    What comes is what ``TableEngine.find`` gives: the file's number, the row's position in the file, deleted
    rows included, and the key's row. Memory is that of the keys and of a piece of stored ones a thread.

    Raises:
        CorruptData: a file is missing or damaged.
    """
    numbers = KeyNumbers(keys)
    batches = rows.whole_files(snapshot, files, keys.column_names)
    piece_rows = max(PIECE_ROWS, 2 * len(keys))

    def found_in(file: int) -> list[pa.RecordBatch]:
        return list(_scan_pieces(file, _pieces(batches[file](), piece_rows), numbers))

    threads = min(THREADS_MAX, os.cpu_count() or 1) if is_local(snapshot.storage) else REQUESTS_MAX
    with ThreadPoolExecutor(max(1, min(threads, len(batches)))) as pool:
        found = pool.map(found_in, range(len(batches)))
        return pa.Table.from_batches([part for parts in found for part in parts], FOUND)


def _scan_pieces(file: int, pieces: Iterable[pa.Table], numbers: KeyNumbers) -> Iterator[pa.RecordBatch]:
    begin = 0
    for piece in pieces:
        row, place = numbers.found_in(piece)
        arrays = [pa.array(np.full(len(row), file, np.int32)), pa.array(row + begin), pa.array(place)]
        begin += len(piece)
        yield pa.RecordBatch.from_arrays(arrays, schema=FOUND)


def _pieces(batches: Iterable[pa.RecordBatch], rows_min: int) -> Iterator[pa.Table]:
    """The batches, as many together as are looked up at once."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= rows_min:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
