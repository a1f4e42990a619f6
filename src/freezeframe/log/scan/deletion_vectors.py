"""Deletion vectors: bitmaps of a data file's deleted rows.

The format is the protocol's ("Deletion Vector Format"): a magic number and a 64-bit Roaring
bitmap, as Z85 text in the log (``i``), or in a file of the table (``u``) or elsewhere (``p``) with
its length and CRC-32. A vector that fails one of its checks raises an error.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap64

from freezeframe.errors import CorruptData
from freezeframe.log.actions.actions import DeletionVector

_MAGIC = 1_681_511_377  # the portable format, the only one in the protocol
_MAGIC_BYTES = 4
_FILE_VERSION = 1
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUES = {letter: value for value, letter in enumerate(_Z85)}
_UUID_LETTERS = 20


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A new vector file: the name below the table's folder, its bytes, and the descriptor for the log."""

    name: str
    content: bytes
    vector: DeletionVector


def vector_file(rows: BitMap64, prefix: str = "") -> VectorFile:
    """A file that holds ``rows`` (positions from 0), with a unique name of the protocol's form."""
    return vector_files([rows], prefix)[0]


def vector_files(many: list[BitMap64], prefix: str = "") -> list[VectorFile]:
    """One file for several vectors: the results share name and content and differ in the descriptor."""
    identity = uuid.uuid4()
    folder = f"{prefix}/" if prefix else ""
    content = bytearray([_FILE_VERSION])
    descriptors = []
    for rows in many:
        bitmap = bitmap_bytes(rows)
        path = prefix + z85_encode(identity.bytes)
        descriptors.append(DeletionVector("u", path, len(bitmap), len(rows), offset=len(content)))
        content += struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    name = f"{folder}deletion_vector_{identity}.bin"
    return [VectorFile(name, bytes(content), vector) for vector in descriptors]


def bitmap_bytes(rows: BitMap64) -> bytes:
    """The rows in the protocol's format, magic number first."""
    return struct.pack("<i", _MAGIC) + bytes(rows.serialize())


def vector_name(vector: DeletionVector) -> str:
    """The file of a ``u`` vector, relative to the table's folder."""
    text = vector.path_or_inline_dv
    prefix, encoded = text[:-_UUID_LETTERS], text[-_UUID_LETTERS:]
    identity = uuid.UUID(bytes=z85_decode(encoded, 16))
    return f"{prefix}/deletion_vector_{identity}.bin" if prefix else f"deletion_vector_{identity}.bin"


def inline_rows(vector: DeletionVector) -> np.ndarray:
    """The positions of an inline (``i``) vector, ascending, as uint64."""
    return _rows(z85_decode(vector.path_or_inline_dv, vector.size_in_bytes), vector, "inline")


def stored_rows(vector: DeletionVector, block: bytes, name: str) -> np.ndarray:
    """The positions in a vector file's ``block``: the bytes from the vector's offset on."""
    size = vector.size_in_bytes
    if len(block) < size + 8 or struct.unpack(">i", block[:4])[0] != size:
        raise damaged_vector_error(
            name, f"It does not hold a vector of {size} bytes at {vector.offset or 0}."
        )
    bitmap = block[4 : 4 + size]
    if zlib.crc32(bitmap) != struct.unpack(">I", block[4 + size : 8 + size])[0]:
        raise damaged_vector_error(name, "Its checksum differs from its bytes.")
    return _rows(bitmap, vector, name)


def require_file_version(first: bytes, name: str) -> None:
    """Refuse a vector file with an unknown format version in its first byte."""
    if first != bytes([_FILE_VERSION]):
        raise damaged_vector_error(name, f"It begins with {first!r} and not with the format's version.")


def _rows(bitmap: bytes, vector: DeletionVector, name: str) -> np.ndarray:
    if len(bitmap) < _MAGIC_BYTES or struct.unpack("<i", bitmap[:_MAGIC_BYTES])[0] != _MAGIC:
        raise damaged_vector_error(name, "Its bytes do not begin with the format's number.")
    try:
        rows = BitMap64.deserialize(bitmap[_MAGIC_BYTES:])
    except (ValueError, MemoryError) as error:
        raise damaged_vector_error(name, f"Its bytes are not a Roaring bitmap: {error}") from error
    if len(rows) != vector.cardinality:
        raise damaged_vector_error(name, f"It names {len(rows)} rows and should name {vector.cardinality}.")
    return np.fromiter(rows, dtype=np.uint64, count=len(rows))


def z85_encode(raw: bytes) -> str:
    """Encode bytes, a multiple of four, as Z85: five characters for four bytes."""
    words = [int.from_bytes(raw[at : at + 4], "big") for at in range(0, len(raw), 4)]
    return "".join(_Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def z85_decode(text: str, size: int) -> bytes:
    """Decode the first ``size`` bytes of a Z85 text."""
    if len(text) % 5 or len(text) // 5 * 4 < size or any(letter not in _Z85_VALUES for letter in text):
        raise damaged_vector_error("inline", f"The text {text[:40]!r} does not stand for {size} bytes.")
    raw = bytearray()
    for at in range(0, len(text), 5):
        word = 0
        for letter in text[at : at + 5]:
            word = word * 85 + _Z85_VALUES[letter]
        if word >= 2**32:
            raise damaged_vector_error("inline", f"The text {text[:40]!r} stands for no bytes.")
        raw += word.to_bytes(4, "big")
    return bytes(raw[:size])


def damaged_vector_error(name: str, cause: str) -> CorruptData:
    """The error for a damaged deletion vector."""
    return CorruptData(
        f"The deletion vector {name!r} is damaged.",
        cause=cause,
        remedy="Restore the file from a copy, or read a version of the table that does not use it.",
        file=name,
    )
