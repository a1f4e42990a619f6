"""Arrow and Feather files."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from freezeframe.engine.frames.frames import to_arrow
from freezeframe.errors import UnreadableInput
from freezeframe.script.formats.unpacking import UNLIMITED, Unpacking, UnpackLimits
from freezeframe.storage.read_ahead import reads_of

# The unpacked size of an Arrow stream's messages, read from their metadata.
#
# A message's metadata is a flatbuffer (Arrow's Message.fbs): a table is an offset to its fields, a
# compressed
# buffer begins with the length that it had.

_MESSAGE_HEADER, _BATCH_OF_DICTIONARY = 2, 1
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3
_BUFFER_BYTES = 16


def message_sizes(content: IO[bytes], start: int) -> Iterator[tuple[int, int]]:
    """Rows and bytes of each batch of rows from ``start`` on; those of a dictionary are not rows."""
    content.seek(start)
    reader = pa.ipc.MessageReader.open_stream(pa.PythonFile(content, mode="r"))
    for message in reader:
        if message.type not in {"record batch", "dictionary"}:
            continue
        metadata = message.metadata.to_pybytes()
        batch = _inner(metadata, _inner(metadata, 0, None), _MESSAGE_HEADER)
        is_dictionary = message.type == "dictionary"
        if is_dictionary:
            batch = _inner(metadata, batch, _BATCH_OF_DICTIONARY)
        place = _field(metadata, batch, _LENGTH)
        rows = struct.unpack_from("<q", metadata, place)[0] if place else 0
        yield (0 if is_dictionary else rows), _unpacked_bytes(metadata, batch, message.body)


def _unpacked_bytes(metadata: bytes, batch: int, body: pa.Buffer) -> int:
    if not _field(metadata, batch, _COMPRESSION):
        return int(body.size)
    size, view = 0, memoryview(body)
    buffers = _inner(metadata, batch, _BUFFERS)
    for number in range(struct.unpack_from("<I", metadata, buffers)[0]):
        offset, length = struct.unpack_from("<qq", metadata, buffers + 4 + number * _BUFFER_BYTES)
        if length:
            told = struct.unpack_from("<q", view, offset)[0]
            size += length if told < 0 else told
    return size


def _field(metadata: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 where it has none."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, fields)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, fields + place)[0] if place < size else 0
    return table + offset if offset else 0


def _inner(metadata: bytes, table: int, number: int | None) -> int:
    """Where the table or vector begins that a field (None: the root) points to."""
    place = table if number is None else _field(metadata, table, number)
    if number is not None and not place:
        raise struct.error("a message without its table")
    return place + int(struct.unpack_from("<I", metadata, place)[0])


# Arrow IPC streams and files, validated before their rows are used.
#
# Bytes from outside may claim anything of their buffers, so every batch is validated in full. A stream has
# to end with its end mark: without one nobody could tell it from a stream that was cut off between batches.

_FILE_MAGIC = b"ARROW1"
_FILE_START = 8  # behind the magic bytes a file is a stream, and then its footer
_STREAM_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def streamed_arrow(file: Path, limits: UnpackLimits = UNLIMITED) -> pa.RecordBatchReader:
    """The rows of a file piece by piece, in types that a stream keeps; encodings are undone."""
    with reads_of(str(file)), file.open("rb") as content:
        schema = _schema(_open(content, str(file)), str(file))

    def batches() -> Iterator[pa.RecordBatch]:
        with reads_of(str(file)), file.open("rb") as content:
            for batch in arrow_batches(content, str(file), limits):
                yield from _supported_rows(pa.Table.from_batches([batch])).cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def read_arrow(file: Path, limits: UnpackLimits = UNLIMITED) -> pa.Table:
    """All rows of a file; errors as of ``streamed_arrow``."""
    return streamed_arrow(file, limits).read_all()


def require_arrow(content: IO[bytes], name: str, limits: UnpackLimits = UNLIMITED) -> None:
    """Validate all rows; the content is rewound afterwards."""
    _schema(_open(content, name), name)
    for _ in arrow_batches(content, name, limits):
        pass
    content.seek(0)


def arrow_batches(
    content: IO[bytes], name: str, limits: UnpackLimits = UNLIMITED
) -> Iterator[pa.RecordBatch]:
    """The batches of a stream or file, each validated in full; ``name`` is for messages."""
    unpacking = Unpacking(Path(name).name, content.seek(0, os.SEEK_END), limits)
    if limits is not UNLIMITED:
        _require_within(content, name, unpacking)
    reader = _open(content, name)
    if limits is not UNLIMITED and isinstance(reader, pa.ipc.RecordBatchFileReader):
        # Only the stream in the file was checked; its footer may point elsewhere.
        content.seek(_FILE_START)
        with _reading(name):
            reader = pa.ipc.open_stream(pa.PythonFile(content, mode="r"))
    is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
    with _reading(name):
        found = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
        for batch in found:
            batch.validate(full=True)
            yield from (batch,) if limits is UNLIMITED else unpacking.decode(batch)


def _require_within(content: IO[bytes], name: str, unpacking: Unpacking) -> None:
    """Check the sizes of all messages before one is unpacked."""
    content.seek(0)
    is_file = content.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    rows = size = 0
    with _reading(name):
        for some, more in message_sizes(content, _FILE_START if is_file else 0):
            rows, size = rows + some, size + more
            unpacking.expect(rows, size)


def _open(content: IO[bytes], name: str) -> Any:
    with reads_of(name):
        size = content.seek(0, os.SEEK_END)
        content.seek(max(0, size - len(_STREAM_END)))
        end = content.read()
        content.seek(0)
        is_file = content.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        content.seek(0)
    if not is_file and end != _STREAM_END:
        raise _unreadable(name, "It has no end mark: it was cut off, or is not an Arrow stream.")
    with _reading(name):
        source = pa.PythonFile(content, mode="r")
        return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _schema(reader: Any, name: str) -> pa.Schema:
    with _reading(name):
        _ = reader.schema.names  # a damaged name may not be UTF-8, which shows only on access
        return _supported_rows(pa.Table.from_batches([], reader.schema)).schema


def _supported_rows(table: pa.Table) -> pa.Table:
    return to_arrow(table.replace_schema_metadata())


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        with reads_of(name):
            yield
    except (pa.ArrowException, OSError, ValueError, MemoryError, struct.error) as error:
        raise _unreadable(name, str(error).split("\n", 1)[0][:300] or type(error).__name__) from error


def _unreadable(name: str, cause: str) -> UnreadableInput:
    return UnreadableInput(
        f"{name!r} cannot be read as Arrow.",
        cause=cause,
        remedy="Write it again, and close the writer.",
        file=name,
    )
