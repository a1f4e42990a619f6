"""Streams all rows of a stream as a file, with a few batches in memory.

Rows are in the order of the key, but those of a stream of many bytes in that of its files, as in a file
that the command exports.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.untyped import parquet_schema
from freezeframe.log.scan import rows
from freezeframe.log.scan.file_statistics import bounded_columns
from freezeframe.script.formats.written_rows import csv_pieces, json_lines
from freezeframe.script.transfer import MEMORY_BYTES_MAX, StreamSchema
from freezeframe.service.base.received_file import StreamingBuffer
from freezeframe.service.rows.streams import ExportKind, Moment
from freezeframe.store import Stream
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.table.reader import in_schema, read_row_batches, read_rows, sort_rows


@dataclass(frozen=True, slots=True)
class ExportSizes:
    """Bytes up to which a stream is sorted in memory; rows of a piece of text, and of a row group."""

    sorted_bytes_max: int = MEMORY_BYTES_MAX
    piece_rows: int = 20_000
    group_rows: int = 100_000


_SIZES = ExportSizes()


class StreamExport:
    """A stream at a moment that is to become a file."""

    def __init__(self, stream: Stream, kind: ExportKind, moment: Moment, sizes: ExportSizes = _SIZES) -> None:
        self._snapshot = stream.snapshot(**moment.arguments())
        self._kind, self._sizes = kind, sizes
        rows.require_files(self._snapshot)

    def chunks(self) -> Iterator[bytes]:
        """The file in pieces."""
        reader = self._reader()
        if self._kind == "parquet":
            schema = StreamSchema.of(self._snapshot).of_parquet()
            yield from _parquet(reader, schema, self._sizes.group_rows)
            return
        pieces, rows_max = _pieces(reader, self._sizes.piece_rows), self._sizes.piece_rows
        yield from (
            csv_pieces(reader.schema, pieces, rows_max) if self._kind == "csv" else _lines(pieces, rows_max)
        )

    def _reader(self) -> pa.RecordBatchReader:
        if self._snapshot.size > self._sizes.sorted_bytes_max:
            return read_row_batches(self._snapshot)
        table = sort_rows(read_rows(self._snapshot), stored_key(self._snapshot.metadata) or ())
        return table.to_reader()


def export(stream: Stream, kind: ExportKind, moment: Moment, sizes: ExportSizes = _SIZES) -> Iterator[bytes]:
    """All rows as a file; errors that can be known at once are raised before the first chunk."""
    chunks = StreamExport(stream, kind, moment, sizes).chunks()
    first = next(chunks, b"")
    return itertools.chain([first], chunks)


def _pieces(reader: pa.RecordBatchReader, rows_max: int) -> Iterator[pa.Table]:
    """The rows in tables of at most ``rows_max``."""
    for batch in reader:
        table = pa.Table.from_batches([batch])
        for start in range(0, len(table), rows_max):
            yield table.slice(start, rows_max)


def _lines(pieces: Iterator[pa.Table], piece_rows: int) -> Iterator[bytes]:
    for piece in pieces:
        yield from json_lines(piece, piece_rows)


def _parquet(reader: pa.RecordBatchReader, schema: pa.Schema, group_rows: int) -> Iterator[bytes]:
    sink = StreamingBuffer()
    held = parquet_schema(schema)
    bounded = bounded_columns(held)
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), held, write_statistics=bounded) as writer:
        for group in _groups(_pieces(reader, group_rows), group_rows):
            writer.write_table(in_schema(group, held))
            yield sink.drain()
    yield sink.drain()


def _groups(pieces: Iterator[pa.Table], group_rows: int) -> Iterator[pa.Table]:
    """The pieces joined to tables of about equal size, so that small files make no small row groups."""
    waiting: list[pa.Table] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(map(len, waiting)) >= group_rows:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
