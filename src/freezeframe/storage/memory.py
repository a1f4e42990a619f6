"""An in-memory storage: for tests, examples, and overlays."""

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
    """Files in the memory of this process, separate for each instance."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, int]] = {}
        self._folders: dict[str, set[str]] = {}  # file names by folder, because log listings are frequent
        self._lock = threading.Lock()
        self._root = f"memory://{next(_numbers)}"

    @property
    def root(self) -> str:
        """A name unique to this instance within the process."""
        return self._root

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``."""
        inside, first = folder.strip("/"), start.encode()
        with self._lock:
            names = [name for name in self._folders.get(inside, ()) if name.encode() >= first]
            names.sort(key=str.encode)
            files = [(name, *self._files[f"{inside}/{name}" if inside else name]) for name in names]
        return iter([FileStatus(name, len(content), modified_ms) for name, content, modified_ms in files])

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
            self._keep(name, whole)

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
            self._keep(name, whole)

    def _keep(self, name: str, content: bytes) -> None:
        folder, _, last = name.rpartition("/")
        self._files[name] = (content, now_ms())
        self._folders.setdefault(folder, set()).add(last)

    def delete(self, name: str, *, durable: bool = True) -> None:  # noqa: ARG002 - the protocol's signature
        """See ``Storage.delete``."""
        folder, _, last = name.rpartition("/")
        with self._lock:
            if self._files.pop(name, None) is not None:
                self._folders[folder].discard(last)

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``: there are no folders."""

    def local_path(self, name: str) -> Path | None:  # noqa: ARG002 - the protocol's signature
        """None: the files are only in memory."""
        return None

    def uri(self, name: str) -> str:
        """A name for messages; no engine can open it."""
        return f"{self.root}/{name}"
