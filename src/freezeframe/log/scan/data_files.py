"""Locations of a table's data files, and their opening for Arrow.

Paths in the log are URIs: percent-encoded, relative to the table's folder, or absolute
(``file:/...``, as shallow clones have them).
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.errors import CorruptData, CorruptLog, FreezeframeError, InvalidName, UnsupportedTable
from freezeframe.log.primitives.canonical_paths import canonical_path
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.log.primitives.listing import StoredFile
from freezeframe.storage.base import Storage
from freezeframe.storage.passing_failures import passing_failure

_WHOLE_BYTES_MAX = 1024 * 1024

_S3 = re.compile(r"s3[an]:", re.IGNORECASE)  # Hadoop's names for s3:, by which Spark writes

SHA256_TAG = "freezeframe.sha256"


def file_name(storage: Storage, table: str, path: str) -> str | Path:
    """Resolve a path of the log to a name in the storage, or to an absolute path outside of it.

    Reading, replay and garbage collection all ask here, so a file has one name by whatever spelling.
    """
    path = canonical_path(path)
    scheme, colon, rest = path.partition(":")
    if colon and scheme.isalnum():
        return _absolute(storage, path, scheme, rest)
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
    """The file of a path of the log, as an engine opens it; errors as of ``file_name``."""
    name = file_name(storage, table, path)
    return str(name) if isinstance(name, Path) else storage.uri(name)


def _absolute(storage: Storage, path: str, scheme: str, rest: str) -> str | Path:
    root = storage.root.rstrip("/")
    if scheme != "file":
        place, own = _S3.sub("s3:", path), _S3.sub("s3:", root)
        if place.startswith(f"{own}/"):
            return unquote(place[len(own) + 1 :])
        raise UnsupportedTable(
            f"The table refers to a file on another storage: {path!r}.",
            cause=f"This table is read through {storage.root}.",
            remedy="Copy the table with its files, or read it where they are.",
            path=path,
        )
    absolute = Path("/" + unquote(rest).lstrip("/"))
    for base, found in ((Path(root), absolute), (Path(root).resolve(), absolute.resolve())):
        if found.is_relative_to(base):
            return str(found.relative_to(base))
    return absolute


def open_parquet(storage: Storage, name: str | Path, size: int, digest: str | None = None) -> pq.ParquetFile:
    """Open a data file with page checksums verified, and first its SHA-256 where ``digest`` is given."""
    try:
        return ForeignParquetFile(
            parquet_source(storage, name, size, digest),
            memory_map=False,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise read_failure(name, error) from error


def parquet_source(storage: Storage, name: str | Path, size: int, digest: str | None = None) -> Any:
    """The source for Arrow: a local path, the file's bytes, or a file object read by ranges."""
    is_small = size <= _WHOLE_BYTES_MAX
    path = None
    if digest is None or not is_small:
        path = name if isinstance(name, Path) else storage.local_path(name)
    if path is None and (digest is not None or is_small):
        # One read, where footer and columns would take several; and what was verified is what is parsed.
        content = read_range(storage, name, 0, None)
        _require_size(name, len(content), size)
        if digest is not None:
            require_digest(content, digest, name)
        return pa.BufferReader(content)
    if path is None:
        return pa.PythonFile(StoredFile(storage, str(name), size), mode="r")
    if digest is not None:
        require_digest(read_range(storage, name, 0, None), digest, name)
    _require_size(name, path.stat().st_size, size)
    return str(path)


def _require_size(name: str | Path, found: int, size: int) -> None:
    if found != size:
        raise damaged_file_error(name, f"It has {found} bytes and should have {size}.")


def read_range(storage: Storage, name: str | Path, offset: int, length: int | None) -> bytes:
    """Read ``length`` bytes of a file from ``offset`` on (None: to its end)."""
    try:
        if isinstance(name, str):
            return storage.read(name, offset, length)
        with name.open("rb") as file:
            file.seek(offset)
            return file.read() if length is None else file.read(length)
    except (OSError, InvalidName) as error:
        raise read_failure(name, error) from error


def require_digest(found: bytes, expected: str, name: str | Path) -> None:
    """Refuse bytes whose SHA-256 differs from the log's."""
    if hashlib.sha256(found).hexdigest() != expected:
        raise damaged_file_error(name, "Its SHA-256 is not the one that was recorded when it was written.")


def read_failure(name: str | Path, error: Exception) -> FreezeframeError:
    """The typed error for a failed read of a data file."""
    if isinstance(error, FreezeframeError):
        return error
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return CorruptData(
            f"The data file {str(name)!r} is missing.",
            cause="The table's log names it, but it is not there.",
            remedy="Restore the file from a copy, or read a version of the table that does not use it.",
            code="FAILED_READ_FILE.FILE_NOT_EXIST",
            file=str(name),
        )
    return passing_failure(str(name), error) or damaged_file_error(name, str(error).split("\n", 1)[0][:300])


def damaged_file_error(name: str | Path, cause: str) -> CorruptData:
    """The error for a data file whose bytes cannot be trusted."""
    return CorruptData(
        f"The data file {str(name)!r} is damaged.",
        cause=cause,
        remedy="Restore the file from a copy, or read a version of the table that does not use it.",
        file=str(name),
    )
