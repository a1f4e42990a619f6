"""Interface of all storages, the names of their files, and a storage below a folder of another."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from freezeframe.errors import InvalidName

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
        """List the files directly in ``folder`` whose names are >= ``start``, by their UTF-8 bytes.

        An absent folder is empty. Incomplete writes are never listed.
        """

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the file's bytes, or ``length`` of them from ``offset`` on (fewer at the end).

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
        """List the files below ``folder`` at any depth, in no order; names are relative to ``folder``.

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
        """Return the file's local path, if any, from which Arrow reads directly."""

    def uri(self, name: str) -> str:
        """Return the file's name for Spark: an absolute path or an ``s3a://`` URL."""


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


def sendable(storage: Storage) -> Storage | None:
    """Return the stored files as another process opens them, keys of a bucket included; None if it cannot.

    What an overlay holds in memory is left out.
    """
    send = getattr(storage, "sendable", None)
    found: Storage | None = None if send is None else send()
    return found


class ForwardingStorage:
    """The files of ``inner``, under the names that ``_name`` gives them there."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    @property
    def root(self) -> str:
        """The inner storage's root."""
        return self._inner.root

    @property
    def access(self) -> str:
        """See ``ObjectStorage.access``; empty for every other storage."""
        return getattr(self._inner, "access", "")

    @property
    def is_trusted(self) -> bool:
        """See ``ObjectStorage.is_trusted``; true of every other storage."""
        return getattr(self._inner, "is_trusted", True)

    def sendable(self) -> Storage | None:
        """See the function of this name."""
        return sendable(self._inner)

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``."""
        return self._inner.list_from(self._name(folder), start)

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """See ``Storage.list_below``."""
        return self._inner.list_below(self._name(folder))

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        return self._inner.read(self._name(name), offset, length)

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``."""
        self._inner.put_if_absent(self._name(name), content)

    def replace(self, name: str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
        """See ``Storage.replace``."""
        self._inner.replace(self._name(name), content, durable=durable)

    def delete(self, name: str, *, durable: bool = True) -> None:
        """See ``Storage.delete``."""
        self._inner.delete(self._name(name), durable=durable)

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``."""
        self._inner.prune(self._name(folder))

    def local_path(self, name: str) -> Path | None:
        """See ``Storage.local_path``."""
        return self._inner.local_path(self._name(name))

    def uri(self, name: str) -> str:
        """See ``Storage.uri``."""
        return self._inner.uri(self._name(name))

    def _name(self, name: str) -> str:
        return name


# The folder prefixes every name, and the inner storage refuses names with parent folders, so this
# view cannot access files outside of the folder.


class PrefixStorage(ForwardingStorage):
    """The files of ``inner`` below ``folder``, which need not exist yet."""

    def __init__(self, inner: Storage, folder: str) -> None:
        super().__init__(inner)
        self._folder = folder.strip("/")
        if not self._folder:
            raise InvalidName(
                "The name of a folder is required.", remedy="Use the inner storage itself.", name=folder
            )

    @property
    def root(self) -> str:
        """The inner storage's root plus the folder, equal to the root of a storage opened there."""
        return f"{self._inner.root}/{self._folder}"

    def sendable(self) -> Storage | None:
        """See the function of this name."""
        inner = super().sendable()
        return None if inner is None else PrefixStorage(inner, self._folder)

    def __repr__(self) -> str:
        return f"PrefixStorage({self.root!r})"

    def _name(self, name: str) -> str:
        checked = check_name(name, self.root)
        return f"{self._folder}/{checked}" if checked.strip("/") else self._folder


# The tenant log may be ahead of a table's own log for a moment (on a read-only disk permanently). A
# reader overlays the pending commits on the table and reads them as if they were stored; nothing is
# written.


class OverlayStorage(ForwardingStorage):
    """``inner`` plus ``files``; ``inner`` wins on equal names, because the file was stored meanwhile."""

    def __init__(self, inner: Storage, files: Mapping[str, bytes], modified_ms: int) -> None:
        super().__init__(inner)
        self._files = dict(files)
        self._modified_ms = modified_ms

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """Return the files of both, in order; see ``Storage.list_from``."""
        prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
        merged = {
            path[len(prefix) :]: FileStatus(path[len(prefix) :], len(content), self._modified_ms)
            for path, content in self._files.items()
            if path.startswith(prefix) and "/" not in path[len(prefix) :]
        }
        merged = {name: status for name, status in merged.items() if name.encode() >= start.encode()}
        merged |= {status.name: status for status in self._inner.list_from(folder, start)}
        return iter(sorted(merged.values(), key=lambda status: status.name.encode()))

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """Return the files of both, the inner storage's first; see ``Storage.list_below``."""
        prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
        found = {status.name: status for status in self._inner.list_below(folder)}
        for path, content in self._files.items():
            name = path.removeprefix(prefix)
            if path.startswith(prefix) and name not in found:
                found[name] = FileStatus(name, len(content), self._modified_ms)
        return iter(found.values())

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        try:
            return self._inner.read(name, offset, length)
        except FileNotFoundError:
            if name not in self._files:
                raise
        content = self._files[name]
        return content[offset:] if length is None else content[offset : offset + length]

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Write to the inner storage; an overlaid name counts as taken."""
        if name in self._files:
            raise FileExistsError(name)
        self._inner.put_if_absent(name, content)

    def local_path(self, name: str) -> Path | None:
        """Return the inner storage's local path; None for an overlaid file."""
        return None if name in self._files else self._inner.local_path(name)
