"""Downloads: all rows of a stream as a file, and a zip of files, folders and streams.

Few batches are in memory at a time. Rows are in the order of the key, those of a large stream in the order of
its files, as in a file that the command exports.
"""

import itertools
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.untyped import parquet_schema
from freezeframe.errors import FileNotFound, InvalidOption
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log.scan import rows
from freezeframe.log.scan.file_statistics import bounded_columns
from freezeframe.script.formats.written_rows import csv_pieces, json_lines
from freezeframe.script.inputs.transfer import MEMORY_BYTES_MAX, StreamSchema
from freezeframe.service.files import FOLDER_MARK
from freezeframe.service.rows.streams import ExportKind, Moment, snapshot_name
from freezeframe.store import Stream
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.table.reader import in_schema, read_row_batches, read_rows, sort_rows
from freezeframe.store.tenant import TenantView
from freezeframe.store.tenant_log.state import FileEntry


class StreamingBuffer:
    """A writable file whose content is drained by a response; not seekable."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return False: ``drain`` returns the content."""
        return False

    def seekable(self) -> bool:
        """Return False: drained content is discarded."""
        return False

    def write(self, content: bytes) -> int:
        """Add bytes."""
        self._pieces.append(bytes(content))
        self.size += len(content)
        return len(content)

    def flush(self) -> None:
        """Do nothing: no content is buffered elsewhere."""

    def close(self) -> None:
        """Do nothing: written content can still be drained."""

    def drain(self) -> bytes:
        """Return all that was written since the last call."""
        content = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return content


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
        """Yield the file in pieces."""
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
    """Return all rows as a file; errors that can be known at once are raised before the first chunk."""
    chunks = StreamExport(stream, kind, moment, sizes).chunks()
    first = next(chunks, b"")
    return itertools.chain([first], chunks)


def _pieces(reader: pa.RecordBatchReader, rows_max: int) -> Iterator[pa.Table]:
    """Yield the rows in tables of at most ``rows_max``."""
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
    """Yield the pieces joined to tables of about equal size, so that small files make no small row groups."""
    waiting: list[pa.Table] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(map(len, waiting)) >= group_rows:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Selection:
    """Content of a bundle: files and folders by path, streams by name (as CSV)."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for path in (*self.files, *self.folders):
            FilePath(path)
        for name in self.streams:
            StreamName(name)
        if not (self.files or self.folders or self.streams):
            raise InvalidOption("Nothing is selected.", remedy="Name at least one file, folder or stream.")


def selected_files(view: TenantView, selection: Selection) -> tuple[FileEntry, ...]:
    """Return the files of a selection by path, those in its folders included."""
    found = {path: view.files.entry(path) for path in selection.files}
    for folder in selection.folders:
        below = view.files.list(folder, recursive=True)
        if not below:
            raise FileNotFound(f"There is no folder {folder!r}.", remedy="Check the path.", path=folder)
        found.update({item.path: item for item in below})
    return tuple(entry for path, entry in sorted(found.items()) if path.rpartition("/")[2] != FOLDER_MARK)


def bundle(view: TenantView, entries: Sequence[FileEntry], streams: Sequence[str]) -> Iterator[bytes]:
    """Return the zip in pieces; only one piece of it and of one member is in memory at a time."""
    members = [(entry.path, view.files.chunks(entry.path)) for entry in entries]
    for name in streams:
        export = StreamExport(view.stream(name), "csv", Moment())
        members.append((snapshot_name(name, "csv"), export.chunks()))
    return _zip(members)


def _zip(members: Sequence[tuple[str, Iterator[bytes]]]) -> Iterator[bytes]:
    sink = StreamingBuffer()
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, chunks in members:
            with bundle.open(name, "w", force_zip64=True) as member:
                for chunk in chunks:
                    member.write(chunk)
                    if sink.size >= _PIECE_BYTES:
                        yield sink.drain()
    yield sink.drain()
