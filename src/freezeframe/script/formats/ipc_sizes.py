"""The unpacked size of an Arrow stream's messages, read from their metadata.

A message's metadata is a flatbuffer (Arrow's Message.fbs): a table is an offset to its fields, a compressed
buffer begins with the length that it had.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

import pyarrow as pa

_MESSAGE_HEADER, _BATCH_OF_DICTIONARY = 2, 1
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3
_BUFFER_BYTES = 16


def message_sizes(content: IO[bytes], start: int) -> Iterator[tuple[int, int]]:
    """Rows and bytes of each batch of rows from ``start`` on; those of a dictionary are not rows.

    Raises:
        pa.ArrowException, OSError, struct.error: it is damaged.
    """
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
