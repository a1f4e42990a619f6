"""A folder of a storage as a separate storage.

The folder prefixes every name, and the inner storage refuses names with parent folders, so this
view cannot access files outside of the folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from freezeframe.errors import InvalidName
from freezeframe.storage.base import FileStatus, Storage
from freezeframe.storage.relative_name import check_name


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
