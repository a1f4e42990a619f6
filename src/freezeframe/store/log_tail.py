"""Whether a log has grown, told by two looks at the disk instead of a listing of all of it.

Entries follow each other without a gap, so a log whose next entry is not there has not grown, as long as
its newest one is still the same file: after an erasure, or a restore from a backup, it is not.
In a bucket a listing is one request and two looks are two, so there a log is always listed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from freezeframe.log.paths import commit_name
from freezeframe.storage import Storage
from freezeframe.storage.local import failure


@dataclass(frozen=True, slots=True)
class _Identity:
    """What tells a file of the disk from any other one that was or will be under its name."""

    device: int
    inode: int
    size: int
    modified_ns: int


class LogTail:
    """The newest entry of one log, as far as somebody has seen it. For one thread at a time."""

    def __init__(self, storage: Storage, folder: str) -> None:
        # Only what files are there is looked at, and nothing is read: where a link leads does not matter.
        path = storage.local_path(folder)
        self._folder = None if path is None else str(path)
        self._seen: tuple[int, _Identity] | None = None

    def is_at(self, version: int) -> bool:
        """Whether ``version`` is the newest for sure; where it is not known, the log has to be listed.

        Raises:
            StorageUnavailable: the storage could not be asked.
        """
        if self._seen is None or self._seen[0] != version:
            return False
        # The next one first: what is deleted goes in ascending order, so an entry that is still there
        # afterwards says that the next one was not deleted before either.
        return self._identity(version + 1) is None and self._identity(version) == self._seen[1]

    def note(self, version: int) -> None:
        """A listing has found ``version`` to be the newest.

        Raises:
            StorageUnavailable: the storage could not be asked.
        """
        found = self._identity(version) if version >= 0 else None
        self._seen = None if found is None else (version, found)

    def _identity(self, version: int) -> _Identity | None:
        if self._folder is None:
            return None
        try:
            found = os.lstat(f"{self._folder}/{commit_name(version)}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise failure("look at", commit_name(version), error) from error
        return _Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
