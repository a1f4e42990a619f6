"""Write-through buffer of the newest own commit, which spares an update its read from the storage.

A log file is immutable once created. The next update takes the content once, when it lists the
file; afterwards the state includes it. Long commits are not buffered, since many logs may be open.
"""

from __future__ import annotations

from freezeframe.log.primitives.paths import Kind, LogFile

KEPT_BYTES_MAX = 32 * 1024


class OwnCommit:
    """The newest commit that this process added to one log, until an update takes it."""

    def __init__(self) -> None:
        self._known: tuple[int, bytes] | None = None

    def note(self, version: int, content: bytes) -> None:
        """Record that ``content`` was durably added as ``version``."""
        self._known = (version, content) if len(content) <= KEPT_BYTES_MAX else None

    def is_of(self, file: LogFile) -> bool:
        """Whether a listed file is the recorded commit."""
        known = self._known
        return known is not None and file.kind is Kind.COMMIT and known[0] == file.version

    def take(self, file: LogFile) -> bytes | None:
        """The content of a listed commit if it is the recorded one, once; else None."""
        known = self._known
        if known is None or not self.is_of(file):
            return None
        self._known = None
        return known[1] if len(known[1]) == file.size else None
