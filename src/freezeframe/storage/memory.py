"""A storage in a dictionary: for tests, examples, and entries that are laid over a real one."""

from __future__ import annotations

import errno
import itertools
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from freezeframe.clock import now_ms
from freezeframe.storage.base import FileStatus

_numbers = itertools.count()


class MemoryStorage:
    """Files in this process; every instance is a place of its own."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, int]] = {}
        self._lock = threading.Lock()
        self._root = f"memory://{next(_numbers)}"

    @property
    def root(self) -> str:
        """A name that no other instance of this process has."""
        return self._root

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``."""
        prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
        with self._lock:
            found = [
                FileStatus(path[len(prefix) :], len(content), modified_ms)
                for path, (content, modified_ms) in self._files.items()
                if path.startswith(prefix) and "/" not in path[len(prefix) :]
            ]
        wanted = (status for status in found if status.name.encode() >= start.encode())
        return iter(sorted(wanted, key=lambda status: status.name.encode()))

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """See ``Storage.list_below``."""
        prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
        with self._lock:
            files = list(self._files.items())
        return iter(
            [
                FileStatus(path[len(prefix) :], len(content), modified_ms)
                for path, (content, modified_ms) in files
                if path.startswith(prefix)
            ]
        )

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        with self._lock:
            if name not in self._files:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            content = self._files[name][0]
        return content[offset:] if length is None else content[offset : offset + length]

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``."""
        whole = content if isinstance(content, bytes) else b"".join(content)
        with self._lock:
            if name in self._files:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            self._files[name] = (whole, now_ms())

    def replace(
        self,
        name: str,
        content: bytes | Iterable[bytes],
        *,
        durable: bool = True,  # noqa: ARG002 - the protocol's signature
    ) -> None:
        """See ``Storage.replace``."""
        whole = content if isinstance(content, bytes) else b"".join(content)
        with self._lock:
            self._files[name] = (whole, now_ms())

    def delete(self, name: str, *, durable: bool = True) -> None:  # noqa: ARG002 - the protocol's signature
        """See ``Storage.delete``."""
        with self._lock:
            self._files.pop(name, None)

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``: there are no folders."""

    def local_path(self, name: str) -> Path | None:  # noqa: ARG002 - the protocol's signature
        """There is none."""
        return None

    def uri(self, name: str) -> str:
        """A name for messages; no engine can open it."""
        return f"{self.root}/{name}"
