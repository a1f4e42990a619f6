"""A file of a storage as a seekable Python file, read by ranges."""

from __future__ import annotations

import io
import os
from typing import Any

from freezeframe.storage.base import Storage


class StoredFile(io.RawIOBase):
    """Read-only, seekable file object over a stored file of known size."""

    def __init__(self, storage: Storage, name: str, size: int) -> None:
        super().__init__()
        self._storage = storage
        self._name = name
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """True: the file is readable."""
        return True

    def seekable(self) -> bool:
        """True: the file is seekable."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position; see ``io.IOBase.seek``."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """The current position."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read bytes into the buffer; fewer at the end of the file."""
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._size - self._at)
        if wanted <= 0:
            return 0
        found = self._storage.read(self._name, self._at, wanted)
        view[: len(found)] = found
        self._at += len(found)
        return len(found)
