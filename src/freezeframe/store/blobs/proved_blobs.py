"""Cache of verified blobs, which allows partial reads of them.

A verification is valid for some minutes and for the identical file: a replaced or changed file is verified
again. Remote storages have no file identity, so every read verifies.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from freezeframe.storage.file_identity import FileIdentity, file_identity

_HOLDS_SECONDS = 600.0
_REMEMBERED_MAX = 10_000


class ProvedBlobs:
    """The verified files and the times of their verification. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._proved: dict[Path, tuple[FileIdentity, float]] = {}

    def holds(self, path: Path | None) -> bool:
        """Whether the file was verified recently and is unchanged since."""
        if path is None:
            return False
        with self._lock:
            found = self._proved.get(path)
        return found is not None and found[1] > time.monotonic() and found[0] == file_identity(path)

    def note(self, path: Path | None, before: FileIdentity | None) -> None:
        """Record a verified file; ``before`` is its identity at the start of the read."""
        if path is None or before is None or before != file_identity(path):
            return
        with self._lock:
            if len(self._proved) >= _REMEMBERED_MAX:
                self._proved.clear()
            self._proved[path] = (before, time.monotonic() + _HOLDS_SECONDS)
