"""Detects new log entries by two file lookups in place of a full listing.

Entries have no gaps, so a log without the next entry has not grown, provided that its newest entry is
still the same file: after an erasure, or a restore from a backup, it is not. In a bucket a listing is
one request and two look-ups are two, so there a log is always listed.
"""

from __future__ import annotations

from freezeframe.log.primitives.paths import commit_name
from freezeframe.storage import FileStatus, Storage
from freezeframe.storage.file_identity import FileIdentity, file_identity


class LogTail:
    """The newest known entry of one log.

    Safe from several threads: what was seen is replaced as a whole, and read once in each method. A thread
    that writes a checkpoint forgets it while another one looks.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        path = storage.local_path(folder)
        self._folder = None if path is None else str(path)
        self._seen: tuple[int, FileIdentity] | None = None

    def is_at(self, version: int) -> bool:
        """Whether ``version`` is certain to be the newest; if unknown, the log must be listed."""
        seen = self._seen
        if seen is None or seen[0] != version:
            return False
        # The next one first: what is deleted goes in ascending order, so an entry that is still there
        # afterwards says that the next one was not deleted before either.
        return self._identity(version + 1) is None and self._identity(version) == seen[1]

    def note(self, version: int) -> None:
        """Record ``version`` as the newest of a listing."""
        found = self._identity(version) if version >= 0 else None
        self._seen = None if found is None else (version, found)

    def forget(self) -> None:
        """Discard the record, so that the next update lists the log."""
        self._seen = None

    def note_added(self, version: int) -> FileStatus | None:
        """Record an entry of this process at ``version``, directly after the recorded newest one.

        The file as a listing would tell it. None: it cannot be told, or the log is not what it was, so it
        has to be listed.
        """
        seen = self._seen
        if seen is None or seen[0] != version - 1 or self._identity(version - 1) != seen[1]:
            return None
        found = self._identity(version)
        if found is None:
            return None
        self._seen = (version, found)
        return FileStatus(commit_name(version), found.size, found.modified_ns // 1_000_000)

    def _identity(self, version: int) -> FileIdentity | None:
        return None if self._folder is None else file_identity(f"{self._folder}/{commit_name(version)}")
