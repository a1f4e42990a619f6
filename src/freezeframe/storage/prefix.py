"""Storages that show a part of another one, or two as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from freezeframe.errors import InvalidName
from freezeframe.storage.base import FileStatus, Storage, check_name

# A folder of a storage as a separate storage.
#
# The folder prefixes every name, and the inner storage refuses names with parent folders, so this
# view cannot access files outside of the folder.


class PrefixStorage:
    """The files of ``inner`` below ``folder``, which need not exist yet."""

    def __init__(self, inner: Storage, folder: str) -> None:
        self._inner = inner
        self._folder = folder.strip("/")
        if not self._folder:
            raise InvalidName(
                "The name of a folder is required.", remedy="Use the inner storage itself.", name=folder
            )

    @property
    def root(self) -> str:
        """The inner storage's root plus the folder, equal to the root of a storage opened there."""
        return f"{self._inner.root}/{self._folder}"

    @property
    def access(self) -> str:
        """See ``ObjectStorage.access``; empty for every other storage."""
        return getattr(self._inner, "access", "")

    @property
    def is_trusted(self) -> bool:
        """See ``ObjectStorage.is_trusted``; true of every other storage."""
        return getattr(self._inner, "is_trusted", True)

    def __repr__(self) -> str:
        return f"PrefixStorage({self.root!r})"

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
        checked = check_name(name, self.root)
        return f"{self._folder}/{checked}" if checked.strip("/") else self._folder


# A storage with additional files in memory, visible to one reader.
#
# The tenant log may be ahead of a table's own log for a moment (on a read-only disk permanently). A
# reader overlays the pending commits on the table and reads them as if they were stored; nothing is
# written.


class OverlayStorage:
    """``inner`` plus ``files``; ``inner`` wins on equal names, because the file was stored meanwhile."""

    def __init__(self, inner: Storage, files: Mapping[str, bytes], modified_ms: int) -> None:
        self._inner = inner
        self._files = dict(files)
        self._modified_ms = modified_ms

    @property
    def root(self) -> str:
        """The inner storage's root."""
        return self._inner.root

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """The files of both, in order; see ``Storage.list_from``."""
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
        """The files of both, the inner storage's first; see ``Storage.list_below``."""
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

    def replace(self, name: str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
        """Write to the inner storage."""
        self._inner.replace(name, content, durable=durable)

    def delete(self, name: str, *, durable: bool = True) -> None:
        """Delete from the inner storage."""
        self._inner.delete(name, durable=durable)

    def prune(self, folder: str) -> None:
        """Prune the inner storage."""
        self._inner.prune(folder)

    def local_path(self, name: str) -> Path | None:
        """The inner storage's local path; None for an overlaid file."""
        return None if name in self._files else self._inner.local_path(name)

    def uri(self, name: str) -> str:
        """The inner storage's URI."""
        return self._inner.uri(name)
