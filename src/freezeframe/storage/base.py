"""Interface of all storages, and the names and locations of their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from freezeframe.errors import InvalidName

# The storage interface: a few verbs with exact guarantees.
#
# Names are relative to the storage's root, with ``/`` between folders. The Delta log and the tenant
# log depend on these guarantees only, so the same code runs on a local disk, on an object store, in
# memory and under injected faults. One contract test covers all implementations.
#
# Errors: ``FileNotFoundError`` and ``FileExistsError`` are regular outcomes. Every other failure is a
# ``StorageUnavailable`` (nothing happened) or an ``OutcomeUnknown`` (it may have happened: read back
# before deciding).


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One listed file: its name without the folder, size in bytes, modification time in ms since 1970."""

    name: str
    size: int
    modified_ms: int


class Readable(Protocol):
    """The verbs of a ``Storage`` that read one file."""

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""

    def local_path(self, name: str) -> Path | None:
        """See ``Storage.local_path``."""


class Storage(Protocol):
    """Files by name. Reads see every completed write; a write is durable when it returns."""

    @property
    def root(self) -> str:
        """The location of this storage, a path or a URL; used in messages and as a cache key."""

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """The files directly in ``folder`` whose names are >= ``start``, in order of their UTF-8 bytes.

        An absent folder is empty. Incomplete writes are never listed.
        """

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's bytes, or ``length`` of them from ``offset`` on (fewer at the end).

        Raises:
            FileNotFoundError: there is no such file.
        """

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Create the file atomically: of any number of concurrent writers exactly one succeeds.

        Raises:
            FileExistsError: the name is taken; the existing file is unchanged.
            OutcomeUnknown: the response was lost; the file exists whole or not at all.
        """

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """The files below ``folder`` at any depth, in undefined order; names are relative to ``folder``.

        For counting, verification and deletion, not for reading a log: the listing includes
        left-overs of incomplete writes.
        """

    def replace(self, name: str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
        """Create or overwrite the file atomically. Only for hints and derived copies, never for commits.

        Without ``durable`` the file is visible to all readers, but may be missing or empty after a
        power loss.
        """

    def delete(self, name: str, *, durable: bool = True) -> None:
        """Delete the file if it exists. Without ``durable`` it may reappear after a power loss."""

    def prune(self, folder: str) -> None:
        """Remove empty folders at and below ``folder``, and parents of it that become empty.

        A storage without real folders does nothing.
        """

    def local_path(self, name: str) -> Path | None:
        """The file's local path, if any, from which Arrow reads directly."""

    def uri(self, name: str) -> str:
        """The file's name for Spark: an absolute path or an ``s3a://`` URL."""


# Validation of storage names: relative, and inside the root.


def check_name(name: str, root: str) -> str:
    """Validate a name and return it; ``root`` is for the message."""
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise InvalidName(
            f"{name!r} is not a name below {root}.",
            cause="It is absolute, holds a NUL, or refers to a parent folder.",
            remedy="Use a relative name without '..'.",
            name=name,
        )
    return name
