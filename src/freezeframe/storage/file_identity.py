"""Identity of a file on disk, which distinguishes it from other files of the same name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from freezeframe.storage.local import failure


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file's identity and state at one moment; a replacement or appended bytes change it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def file_identity(path: str | Path) -> FileIdentity | None:
    """The identity of the current file, or None without one.

    Uses ``lstat``: the file is not opened and links are not followed.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise failure("look at", os.path.basename(path), error) from error  # noqa: PTH119 - no Path is at hand
    return FileIdentity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
