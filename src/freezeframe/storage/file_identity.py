"""The identity of a file on disk, which distinguishes it from any other of its name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from freezeframe.storage.local import failure


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """One file as it is at one moment; a file that replaces it, or bytes added to it, make another one."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def file_identity(path: str | Path) -> FileIdentity | None:
    """The identity of the current file; None: there is none.

    It is looked at and not opened: where a link leads does not matter.

    Raises:
        StorageUnavailable: the disk could not be asked.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise failure("look at", os.path.basename(path), error) from error  # noqa: PTH119 - no Path is at hand
    return FileIdentity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
