"""The storage interface: a few verbs with exact guarantees.

Names are relative to the storage's root, with ``/`` between folders. Everything above this
seam (the Delta log, the tenant log) is written against these promises only, so the same code
runs on a local disk, on an object store, in memory and under injected faults; one contract
test holds all of them to it.

Errors: ``FileNotFoundError`` and ``FileExistsError`` are answers, not accidents. Everything
else that goes wrong is a ``StorageUnavailable`` (nothing happened) or an ``OutcomeUnknown``
(it may have happened: read back before deciding).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One listed file: its name without the folder, its size in bytes, its age in ms since 1970."""

    name: str
    size: int
    modified_ms: int


class Storage(Protocol):
    """Bytes under names. Reads see every finished write; a write is durable when it returns."""

    @property
    def root(self) -> str:
        """Where this storage is, for messages and as the key of caches: a path or a URL."""

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """The files directly in ``folder`` whose names are >= ``start``, in order of their UTF-8 bytes.

        An absent folder is an empty one. Unfinished writes are never listed.
        """

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's bytes, or ``length`` of them from ``offset`` on (fewer at the end).

        Raises:
            FileNotFoundError: there is no such file.
        """

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Create the file whole, or change nothing: of any number of writers exactly one succeeds.

        Raises:
            FileExistsError: the name is taken; what it holds is untouched.
            OutcomeUnknown: the answer was lost; the file is there whole or not at all.
        """

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """The files below ``folder`` at any depth, in no promised order; names are from ``folder`` on.

        For counting, proving and removing, not for reading a log: left-overs of unfinished writes
        are told too.
        """

    def replace(self, name: str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
        """Create or overwrite the file atomically. For hints and derived copies only, never for truth.

        What matters no longer than this machine runs need not be ``durable``: everybody sees it, but it
        may be gone, or empty, after a power loss.
        """

    def delete(self, name: str, *, durable: bool = True) -> None:
        """Remove the file; an absent one is fine. If not ``durable`` it may be back after a power loss."""

    def prune(self, folder: str) -> None:
        """Remove the folders at and below ``folder`` that hold nothing, and those above it that then do.

        A place without folders of its own has nothing to do.
        """

    def local_path(self, name: str) -> Path | None:
        """The file as a path of this machine, where there is one: Arrow then reads it directly."""

    def uri(self, name: str) -> str:
        """The same file as Spark names it: an absolute path or an ``s3a://`` URL."""
