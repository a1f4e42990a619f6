"""Whether a log has grown, told by two small reads instead of a listing of all of it.

Entries follow each other without a gap, so a log whose next entry is not there has not grown, as long as
its newest one is still the same: after an erasure, or a restore from a backup, it is not.
"""

from __future__ import annotations

from freezeframe.log.paths import commit_name
from freezeframe.storage import Storage

# An entry's beginning holds its random id, which no other entry has.
_BEGINNING_BYTES = 256


class LogTail:
    """The newest entry of one log, as far as somebody has seen it. For one thread at a time."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._seen: tuple[int, bytes] | None = None

    def is_at(self, version: int) -> bool:
        """Whether ``version`` is the newest for sure; where it is not known, the log has to be listed.

        Raises:
            StorageUnavailable: the storage could not be asked.
        """
        if self._seen is None or self._seen[0] != version:
            return False
        # The next one first: what is deleted goes in ascending order, so an entry that is still there
        # afterwards says that the next one was not deleted before either.
        return self._beginning(version + 1) is None and self._beginning(version) == self._seen[1]

    def note(self, version: int) -> None:
        """A listing has found ``version`` to be the newest.

        Raises:
            StorageUnavailable: the storage could not be asked.
        """
        found = self._beginning(version) if version >= 0 else None
        self._seen = None if found is None else (version, found)

    def _beginning(self, version: int) -> bytes | None:
        try:
            return self._storage.read(f"{self._folder}/{commit_name(version)}", 0, _BEGINNING_BYTES)
        except FileNotFoundError:
            return None
