"""Cache of small commits: opening a log reads the same files for its heads and for its state."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from freezeframe.log.commits.commit_content import CommitContent
from freezeframe.log.primitives.paths import LogFile

KEPT_BYTES = 8 << 20


class CommitCache:
    """Thread-safe cache of parsed commits, limited to ``KEPT_BYTES`` in total."""

    def __init__(self) -> None:
        self._kept: dict[LogFile, tuple[CommitContent, ...]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, file: LogFile) -> tuple[CommitContent, ...] | None:
        """The pieces of a cached commit; None where it is not cached."""
        with self._lock:
            return self._kept.get(file)

    def has_room(self, file: LogFile) -> bool:
        """Whether the cache has room for a commit of that size."""
        with self._lock:
            return file.size + self._bytes <= KEPT_BYTES

    def keep(self, file: LogFile, contents: Sequence[CommitContent]) -> None:
        """Cache a commit until ``clear``."""
        with self._lock:
            self._bytes += 0 if file in self._kept else file.size
            self._kept[file] = tuple(contents)

    def clear(self) -> None:
        """Remove all commits."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0
