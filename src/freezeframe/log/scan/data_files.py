"""Data files of a table and their deletion vectors."""

from __future__ import annotations

import hashlib
import posixpath
import re
import struct
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from freezeframe.errors import (
    CorruptData,
    CorruptLog,
    FreezeframeError,
    InvalidName,
    UnsupportedTable,
)
from freezeframe.log.format.actions import DeletionVector
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.log.primitives.listing import StoredFile
from freezeframe.log.primitives.paths import SCHEME, canonical_path
from freezeframe.storage.base import Storage
from freezeframe.storage.read_ahead import deletion_of, passing_failure

# Locations of a table's data files, and their opening for Arrow.
#
# Paths in the log are URIs: percent-encoded, relative to the table's folder, or absolute
# (``file:/...``, as shallow clones have them).

_WHOLE_BYTES_MAX = 1024 * 1024

_S3 = re.compile(r"s3[an]:", re.IGNORECASE)  # Hadoop's names for s3:, by which Spark writes

SHA256_TAG = "freezeframe.sha256"


def file_name(storage: Storage, table: str, path: str) -> str | Path:
    """Resolve a path of the log to a name in the storage, or to an absolute path outside of it.

    Reading, replay and garbage collection use it, so every spelling of a file has the same name.
    """
    path = canonical_path(path)
    if match := SCHEME.fullmatch(path):
        root = storage.root.rstrip("/")
        if match[1] != "file":
            location, own = _S3.sub("s3:", path), _S3.sub("s3:", root)
            if location.startswith(f"{own}/"):
                return unquote(location[len(own) + 1 :])
            raise UnsupportedTable(
                f"The table refers to a file on another storage: {path!r}.",
                cause=f"This table is read through {storage.root}.",
                remedy="Copy the table with its files, or read it where they are.",
                path=path,
            )
        absolute = Path("/" + unquote(match[2]).lstrip("/"))
        for base, found in ((Path(root), absolute), (Path(root).resolve(), absolute.resolve())):
            if found.is_relative_to(base):
                return str(found.relative_to(base))
        return absolute
    folder = f"{table}/" if table else ""
    name = posixpath.normpath(folder + unquote(path))
    if not name.startswith(folder) or name.split("/", 1)[0] == "..":
        raise CorruptLog(
            f"The log names a file outside of the table: {path!r}.",
            cause="A relative path must stay in the table's folder.",
            remedy="Restore the log from a copy.",
        )
    return name


def file_uri(storage: Storage, table: str, path: str) -> str:
    """Return the file of a path of the log, as an engine opens it; errors as of ``file_name``."""
    name = file_name(storage, table, path)
    return str(name) if isinstance(name, Path) else storage.uri(name)


def open_parquet(storage: Storage, name: str | Path, size: int, digest: str | None = None) -> pq.ParquetFile:
    """Open a data file; verify its SHA-256 if ``digest`` is given, and page checksums on reading."""
    try:
        return ForeignParquetFile(
            parquet_source(storage, name, size, digest),
            memory_map=False,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise read_failure(name, error, storage) from error


def parquet_source(storage: Storage, name: str | Path, size: int, digest: str | None = None) -> Any:
    """Return the source for Arrow: a local path, the file's bytes, or a file object read by ranges."""
    is_small = size <= _WHOLE_BYTES_MAX
    path = None
    if digest is None or not is_small:
        path = name if isinstance(name, Path) else storage.local_path(name)
    if path is None and (digest is not None or is_small):
        # One request instead of several, and the verified bytes are the parsed ones.
        content = read_range(storage, name, 0, None)
        _require_size(name, len(content), size)
        if digest is not None:
            require_digest(content, digest, name)
        return pa.BufferReader(content)
    if path is None:
        return pa.PythonFile(StoredFile(_TypedReads(storage), str(name), size), mode="r")
    if digest is not None:
        require_digest(read_range(storage, name, 0, None), digest, name)
    try:
        found = path.stat().st_size
    except OSError as error:
        raise read_failure(name, error, storage) from error
    _require_size(name, found, size)
    return str(path)


def _require_size(name: str | Path, found: int, size: int) -> None:
    if found != size:
        raise damaged_file_error(name, f"It has {found} bytes and should have {size}.")


@dataclass(frozen=True, slots=True)
class _TypedReads:
    """Reads whose errors are typed also where Arrow makes them, while a file is read by ranges."""

    storage: Storage

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        return read_range(self.storage, name, offset, length)

    def local_path(self, name: str) -> Path | None:
        """See ``Storage.local_path``."""
        return self.storage.local_path(name)


def read_range(storage: Storage, name: str | Path, offset: int, length: int | None) -> bytes:
    """Read ``length`` bytes of a file from ``offset`` on (None: to its end)."""
    try:
        if isinstance(name, str):
            return storage.read(name, offset, length)
        with name.open("rb") as file:
            file.seek(offset)
            return file.read() if length is None else file.read(length)
    except (OSError, InvalidName) as error:
        raise read_failure(name, error, storage) from error


def require_digest(found: bytes, expected: str, name: str | Path) -> None:
    """Refuse bytes whose SHA-256 differs from the log's."""
    if hashlib.sha256(found).hexdigest() != expected:
        raise damaged_file_error(name, "Its SHA-256 is not the one that was recorded when it was written.")


def read_failure(name: str | Path, error: Exception, storage: Storage | None = None) -> FreezeframeError:
    """Return the typed error for a failed read of a data file in ``storage`` (None: the file is open)."""
    if isinstance(error, FreezeframeError):
        return error
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        deleted = deletion_of(storage, name) if storage is not None and isinstance(name, str) else None
        return deleted or CorruptData(
            f"The data file {str(name)!r} is missing.",
            cause="The table's log names it, but it is not there.",
            remedy="Restore the file from a copy, or read a version of the table that does not use it.",
            code="FAILED_READ_FILE.FILE_NOT_EXIST",
            file=str(name),
        )
    return passing_failure(str(name), error) or damaged_file_error(name, str(error).split("\n", 1)[0][:300])


def damaged_file_error(name: str | Path, cause: str) -> CorruptData:
    """Return the error for a data file whose bytes cannot be trusted."""
    return CorruptData(
        f"The data file {str(name)!r} is damaged.",
        cause=cause,
        remedy="Restore the file from a copy, or read a version of the table that does not use it.",
        file=str(name),
    )


# Deletion vectors: bitmaps of a data file's deleted rows.
#
# The format is the protocol's ("Deletion Vector Format"): a magic number and a 64-bit Roaring
# bitmap, as Z85 text in the log (``i``), or in a file of the table (``u``) or elsewhere (``p``) with
# its length and CRC-32. A vector that fails one of its checks raises an error.

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
    """Return a file that holds ``rows`` (positions from 0), with a unique name of the protocol's form."""
    return vector_files([rows], prefix)[0]


def vector_files(many: list[BitMap64], prefix: str = "") -> list[VectorFile]:
    """Make one file of several vectors: the results differ in the descriptor only."""
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
    """Return the rows in the protocol's format, magic number first."""
    return struct.pack("<i", _MAGIC) + bytes(rows.serialize())


def vector_name(vector: DeletionVector) -> str:
    """Return the file of a ``u`` vector, relative to the table's folder."""
    text = vector.path_or_inline_dv
    prefix, encoded = text[:-_UUID_LETTERS], text[-_UUID_LETTERS:]
    identity = uuid.UUID(bytes=z85_decode(encoded, 16))
    return f"{prefix}/deletion_vector_{identity}.bin" if prefix else f"deletion_vector_{identity}.bin"


def inline_rows(vector: DeletionVector) -> np.ndarray:
    """Return the positions of an inline (``i``) vector, ascending, as uint64."""
    return _rows(z85_decode(vector.path_or_inline_dv, vector.size_in_bytes), vector, "inline")


def stored_rows(vector: DeletionVector, block: bytes, name: str) -> np.ndarray:
    """Return the positions in a vector file's ``block``: the bytes from the vector's offset on."""
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
            raise damaged_vector_error("inline", f"The text {text[:40]!r} cannot be decoded.")
        raw += word.to_bytes(4, "big")
    return bytes(raw[:size])


def damaged_vector_error(name: str, cause: str) -> CorruptData:
    """Return the error for a damaged deletion vector."""
    return CorruptData(
        f"The deletion vector {name!r} is damaged.",
        cause=cause,
        remedy="Restore the file from a copy, or read a version of the table that does not use it.",
        file=name,
    )
