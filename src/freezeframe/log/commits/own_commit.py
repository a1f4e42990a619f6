"""A commit that this process has just written, kept so that remote storage is not read again.

A file of a log never changes once it is there. It is given once, for the update that finds it listed;
from then on the state has it. What is long is not kept: many logs may be open.
"""

from __future__ import annotations

from freezeframe.log.primitives.paths import Kind, LogFile

KEPT_BYTES_MAX = 32 * 1024


class OwnCommit:
    """The newest commit that this process has added to one log, until somebody takes it."""

    def __init__(self) -> None:
        self._known: tuple[int, bytes] | None = None

    def note(self, version: int, content: bytes) -> None:
        """``content`` was added as ``version`` just now, durably."""
        self._known = (version, content) if len(content) <= KEPT_BYTES_MAX else None

    def taken(self, file: LogFile) -> bytes | None:
        """The content of a listed commit, if it is the one that was noted; only once."""
        known = self._known
        if known is None or file.kind is not Kind.COMMIT or known[0] != file.version:
            return None
        self._known = None
        return known[1] if len(known[1]) == file.size else None
