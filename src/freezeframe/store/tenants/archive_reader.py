"""Reads an archive sequentially, with limits enforced before memory is used."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO

from freezeframe.errors import InvalidOption
from freezeframe.store.tenants.archive_index import ArchiveIndex, Member, parse_index, refused_archive_error

ARCHIVE_BYTES_MAX = 64 * 1024**3
ARCHIVE_RATIO_MAX = 200.0
INDEX_NAME = "index.json"
INDEX_BYTES_MAX = 256 * 1024 * 1024
_HEADER_BYTES_MAX = 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_RATIO_FREE_BYTES = 16 * 1024 * 1024  # below this a high ratio is harmless
_BROKEN = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of the unpacked size of an archive: total bytes, and ratio to its own size."""

    bytes_max: int = ARCHIVE_BYTES_MAX
    ratio_max: float = ARCHIVE_RATIO_MAX

    def __post_init__(self) -> None:
        if self.bytes_max < 1 or self.ratio_max < 1:
            raise InvalidOption(
                f"{self!r} lets nothing in.", remedy="Use at least one byte and a ratio of at least 1."
            )


class ArchiveReader:
    """Sequential reader of an archive's index and members."""

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._source = _Guarded(file, limits)
        try:
            self._tar = tarfile.open(fileobj=self._source, mode="r|", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
        except _BROKEN as error:
            raise _broken(error) from error
        self.index: ArchiveIndex = parse_index(self._whole_index())
        total = sum(member.size for member in self.index.members)
        if total > limits.bytes_max:
            raise refused_archive_error(f"It would unpack to {total} bytes; {limits.bytes_max} are allowed.")

    def members(self) -> Iterator[tuple[Member, Iterator[bytes]]]:
        """Each member and its bytes, which must be read before the next member.

        Raises:
            UnreadableInput: the archive is damaged, is not what its index says, or holds more.
        """
        for number, member in enumerate(self.index.members):
            found = self._next(f"{number:08d}")
            if found.size != member.size:
                raise refused_archive_error(
                    f"Its member {number} has {found.size} bytes, its index says {member.size}."
                )
            yield member, self._content(found, member)
        self._source.allow(_HEADER_BYTES_MAX)
        try:
            rest = self._tar.next()
        except _BROKEN as error:
            raise _broken(error) from error
        if rest is not None:
            raise refused_archive_error(f"It holds {rest.name!r}, which its index does not name.")

    def _whole_index(self) -> bytes:
        found = self._next(INDEX_NAME)
        if found.size > INDEX_BYTES_MAX:
            raise refused_archive_error(f"Its index has {found.size} bytes.")
        return b"".join(self._chunks(found))

    def _next(self, name: str) -> tarfile.TarInfo:
        # A header can claim any length for names and attributes; this limits the bytes per header.
        self._source.allow(_HEADER_BYTES_MAX)
        try:
            found = self._tar.next()
        except _BROKEN as error:
            raise _broken(error) from error
        if found is None:
            raise refused_archive_error(f"It ends before its member {name!r}.")
        if found.name != name or found.type != tarfile.REGTYPE:
            raise refused_archive_error(f"It has {found.name!r} where the plain file {name!r} should be.")
        return found

    def _content(self, found: tarfile.TarInfo, member: Member) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for chunk in self._chunks(found):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != member.sha256:
            raise refused_archive_error(
                f"The SHA-256 of its member {found.name!r} is not the one in its index."
            )

    def _chunks(self, found: tarfile.TarInfo) -> Iterator[bytes]:
        self._source.allow(found.size + _HEADER_BYTES_MAX)
        file: IO[bytes] | None = self._tar.extractfile(found)
        assert file is not None  # noqa: S101 - a plain file always has content
        left = found.size
        while left:
            try:
                chunk = file.read(min(_CHUNK_BYTES, left))
            except _BROKEN as error:
                raise _broken(error) from error
            if not chunk:
                raise refused_archive_error(f"Its member {found.name!r} is cut off.")
            left -= len(chunk)
            yield chunk


class _Guarded(io.RawIOBase):
    """The unpacked bytes, until more come than are allowed for now, in all, or for the archive's size."""

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._packed = _Counted(file)
        self._unpacked = gzip.GzipFile(fileobj=self._packed, mode="rb")
        self._limits = limits
        self._allowed = _HEADER_BYTES_MAX
        self._total = 0

    def allow(self, count: int) -> None:
        """Allow this number of bytes from now on."""
        self._allowed = count

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        chunk = self._unpacked.read(min(size, _CHUNK_BYTES) if size >= 0 else _CHUNK_BYTES)
        self._allowed -= len(chunk)
        self._total += len(chunk)
        if self._allowed < 0:
            raise refused_archive_error("A header in it is longer than any of ours.")
        if self._total > self._limits.bytes_max + INDEX_BYTES_MAX:
            raise refused_archive_error(f"It unpacks to more than {self._limits.bytes_max} bytes.")
        if self._total > max(_RATIO_FREE_BYTES, self._limits.ratio_max * self._packed.count):
            raise refused_archive_error(f"It unpacks to more than {self._limits.ratio_max:g} times its size.")
        return chunk


class _Counted:
    """A file that counts what was read from it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        chunk = self._file.read(size)
        self.count += len(chunk)
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _broken(error: Exception) -> Exception:
    return refused_archive_error(f"It is damaged, cut off, or no archive ({error}).")
