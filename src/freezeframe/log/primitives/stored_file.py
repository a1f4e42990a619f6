"""A file of a storage as a seekable Python file, read by ranges."""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from freezeframe.storage.base import Readable
from freezeframe.storage.concurrency import map_concurrently

_READERS_MAX = 16
_GAP_BYTES_MAX = 64 << 10
_RANGE_BYTES_MAX = 8 << 20


class StoredFile(io.RawIOBase):
    """Read-only, seekable file object over a stored file of known size."""

    def __init__(self, storage: Readable, name: str, size: int) -> None:
        super().__init__()
        self._storage = storage
        self._name = name
        self._size = size
        self._at = 0
        self._held: dict[int, bytes] = {}
        self._starts: list[int] = []

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Read ranges (offset, length) side by side; later reads within them ask the storage no more.

        Neighbours with a small gap between them are read together.
        """
        wanted = _joined(ranges)
        parts = map_concurrently(lambda one: self._storage.read(self._name, *one), wanted, _READERS_MAX)
        self._held = {offset: part for (offset, _), part in zip(wanted, parts, strict=True)}
        self._starts = sorted(self._held)

    def _read(self, offset: int, length: int) -> bytes:
        at = bisect_right(self._starts, offset) - 1
        if at >= 0:
            begin = offset - self._starts[at]
            held = self._held[self._starts[at]]
            if begin + length <= len(held):
                return held[begin : begin + length]
        return self._storage.read(self._name, offset, length)

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
        found = self._read(self._at, wanted)
        view[: len(found)] = found
        self._at += len(found)
        return len(found)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, neighbours as one, none longer than a request should be unless it was."""
    found: list[tuple[int, int]] = []
    for offset, length in sorted(ranges):
        if found:
            begin, held = found[-1]
            gap, whole = offset - begin - held, max(held, offset + length - begin)
            if gap <= _GAP_BYTES_MAX and whole <= _RANGE_BYTES_MAX:
                found[-1] = (begin, whole)
                continue
        found.append((offset, length))
    return found
