"""Contents of files, by their hash."""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from freezeframe.errors import CorruptData
from freezeframe.storage import Storage
from freezeframe.storage.file_identity import FileIdentity, file_identity
from freezeframe.store.directory.paths import blob_file

# Cache of verified blobs, which allows partial reads of them.
#
# A verification is valid for some minutes and for the identical file: a replaced or changed file is
# verified
# again. Remote storages have no file identity, so every read verifies.

_HOLDS_SECONDS = 600.0
_REMEMBERED_MAX = 10_000


class ProvedBlobs:
    """The verified files and the times of their verification. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._proved: dict[Path, tuple[FileIdentity, float]] = {}

    def holds(self, path: Path | None) -> bool:
        """Whether the file was verified recently and is unchanged since."""
        if path is None:
            return False
        with self._lock:
            found = self._proved.get(path)
        return found is not None and found[1] > time.monotonic() and found[0] == file_identity(path)

    def note(self, path: Path | None, before: FileIdentity | None) -> None:
        """Record a verified file; ``before`` is its identity at the start of the read."""
        if path is None or before is None or before != file_identity(path):
            return
        with self._lock:
            if len(self._proved) >= _REMEMBERED_MAX:
                self._proved.clear()
            self._proved[path] = (before, time.monotonic() + _HOLDS_SECONDS)


# Blobs: the stored bytes of a file's version, written once and verified at each read.
#
# A blob belongs to the one transaction that wrote it and is never shared with another, so that gc
# cannot race a new reference. The tenant log has the blob's SHA-256.

CHUNK_BYTES = 4 * 1024 * 1024
_PROVED = ProvedBlobs()


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored blob: its name, the SHA-256 and the size of its bytes."""

    name: str
    sha256: str
    size: int


class Measured:
    """Iterator over chunks that hashes and counts the bytes it returns."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._hash = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._hash.update(chunk)
            self.size += len(chunk)
            yield chunk

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the bytes so far."""
        return self._hash.digest()


def write_blob(storage: Storage, write_id: str, content: Iterable[bytes]) -> Blob:
    """Write a new blob of the transaction; it is durable when this returns."""
    name = f"{write_id}/{uuid.uuid4().hex}"
    measured = Measured(content)
    storage.put_if_absent(blob_file(name), measured)
    return Blob(name, measured.digest.hex(), measured.size)


def read_blob(storage: Storage, blob: Blob) -> bytes:
    """All bytes of the blob, verified by their SHA-256."""
    try:
        content = storage.read(blob_file(blob.name))
    except FileNotFoundError:
        raise _damage_error(blob, "It is gone.") from None
    if hashlib.sha256(content).hexdigest() != blob.sha256:
        raise _damage_error(blob, f"Its SHA-256 is not {blob.sha256}.")
    return content


def blob_chunks(storage: Storage, blob: Blob) -> Iterator[bytes]:
    """The bytes of the blob in chunks; the whole blob is verified before the first chunk is returned."""
    _prove(storage, blob)
    measured = Measured(_chunks(storage, blob))
    yield from measured
    if measured.digest.hex() != blob.sha256:
        raise _damage_error(blob, "It changed while it was read.")


def blob_part(storage: Storage, blob: Blob, first: int, last: int) -> Iterator[bytes]:
    """The bytes from ``first`` to ``last``, both included, in chunks.

    All of the blob is read and proved before, unless that was done some minutes ago and its file is
    the same since (see ``ProvedBlobs``).
    """
    path = storage.local_path(blob_file(blob.name))
    if not _PROVED.holds(path):
        before = None if path is None else file_identity(path)
        _prove(storage, blob)
        _PROVED.note(path, before)
    return _chunks(storage, blob, first, min(last + 1, blob.size))


def _prove(storage: Storage, blob: Blob) -> None:
    measured = Measured(_chunks(storage, blob))
    for _ in measured:
        continue
    if measured.digest.hex() != blob.sha256:
        raise _damage_error(blob, f"Its SHA-256 is not {blob.sha256}.")


def _chunks(storage: Storage, blob: Blob, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    offset, behind = start, blob.size if end is None else end
    while offset < behind:
        try:
            chunk = storage.read(blob_file(blob.name), offset, min(CHUNK_BYTES, behind - offset))
        except FileNotFoundError:
            raise _damage_error(blob, "It is gone.") from None
        if not chunk:
            raise _damage_error(blob, f"It ends after {offset} of {blob.size} bytes.")
        offset += len(chunk)
        yield chunk


def _damage_error(blob: Blob, cause: str) -> CorruptData:
    return CorruptData(
        f"The stored bytes of a file ({blob_file(blob.name)}) are damaged.",
        cause=cause,
        remedy="Restore an older version of the file, or the tenant's directory from a backup.",
        blob=blob.name,
    )
