"""Files on a local disk, with the two promises that a plain ``open(..., "w")`` does not make.

Create-if-absent is ``link(2)``: the bytes are first written and fsynced under a temporary
name, and the link either appears whole or fails because somebody was first. Durability is an
fsync of the file *and* of its folder; a new folder is fsynced into its parent as well.
Measured against stock Delta on a local disk, which loses acknowledged commits between
processes and never fsyncs: see ``docs/decisions/0001``.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from freezeframe.errors import (
    FreezeframeError,
    InvalidName,
    OutcomeUnknown,
    PlatformUnsupported,
    StorageFull,
    StorageUnavailable,
)
from freezeframe.storage.base import FileStatus

_FULL = {errno.ENOSPC, errno.EDQUOT}


class LocalStorage:
    """The files below one directory, which need not exist yet."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        if sys.platform == "win32":
            raise PlatformUnsupported(
                "freezeframe does not run on Windows.",
                cause="Its commits rest on POSIX link(2) and on fsync of folders.",
                remedy="Use Linux (WSL is fine) or macOS.",
            )
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - symlinks stay as the user wrote them

    @property
    def root(self) -> str:
        """The absolute path of the directory."""
        return str(self._root)

    def __repr__(self) -> str:
        return f"LocalStorage({self.root!r})"

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``; temporary files of writers (a leading dot) are left out."""
        least = start.encode()
        found: list[tuple[bytes, FileStatus]] = []
        try:
            with os.scandir(self._path(folder)) as entries:
                for entry in entries:
                    name = os.fsencode(entry.name)
                    if name.startswith(b".") or name < least:
                        continue
                    status = _status_of(entry)
                    if status is not None:
                        found.append((name, status))
        except (FileNotFoundError, NotADirectoryError):
            return iter(())
        except OSError as error:
            raise failure("list", folder, error) from error
        found.sort(key=lambda pair: pair[0])
        return iter([status for _, status in found])

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        try:
            with self._path(name).open("rb") as file:
                if offset:
                    file.seek(offset)
                return file.read() if length is None else file.read(length)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
        except OSError as error:
            raise failure("read", name, error) from error

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``: temporary file, fsync, ``link(2)``, fsync of the folder."""
        path = self._path(name)
        temporary = _temporary_beside(path)
        try:
            make_folder(path.parent)
            write_durably(temporary, content)
            try:
                os.link(temporary, path)  # the one atomic step: it fails if somebody else was first
            except FileExistsError:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
            _sync_after_publish(path.parent, name)
        except FileExistsError:
            raise
        except OSError as error:
            raise failure("create", name, error) from error
        finally:
            _forget(temporary)

    def replace(self, name: str, content: bytes) -> None:
        """See ``Storage.replace``: temporary file, fsync, ``rename(2)``, fsync of the folder."""
        path = self._path(name)
        temporary = _temporary_beside(path)
        try:
            make_folder(path.parent)
            write_durably(temporary, content)
            temporary.replace(path)
            _sync_after_publish(path.parent, name)
        except OSError as error:
            raise failure("replace", name, error) from error
        finally:
            _forget(temporary)

    def delete(self, name: str) -> None:
        """See ``Storage.delete``."""
        path = self._path(name)
        try:
            path.unlink()
            sync_folder(path.parent)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise failure("delete", name, error) from error

    def local_path(self, name: str) -> Path | None:
        """The file's absolute path."""
        return self._path(name)

    def uri(self, name: str) -> str:
        """The file's absolute path, as Spark takes it."""
        return str(self._path(name))

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise InvalidName(
                f"{name!r} is no name below {self.root}.",
                cause="It is absolute, holds a NUL, or climbs to a parent folder.",
                remedy="Use a relative name without '..'.",
                name=name,
            )
        return self._root / name


def make_folder(folder: Path) -> None:
    """Make ``folder`` and what is missing above it, each fsynced into its parent."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        sync_folder(new.parent)


def write_durably(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a new file and fsync it; it must not exist."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
    try:
        for chunk in (content,) if isinstance(content, bytes) else content:
            rest = memoryview(chunk)
            while rest:  # a full disk shows as a short write first
                rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)


def sync_file(path: Path) -> None:
    """Fsync a file that somebody else wrote (Spark does not do it)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# A folder is opened and fsynced just as a file is.
sync_folder = sync_file


def failure(verb: str, name: str, error: OSError) -> FreezeframeError:
    """The typed error for what the operating system said while we tried to ``verb`` ``name``."""
    if error.errno in _FULL:
        return StorageFull(
            f"There is no space left to {verb} {name!r}.",
            cause=str(error),
            remedy="Free space or raise the quota, then run the same call again; nothing was changed.",
        )
    return StorageUnavailable(
        f"The storage could not {verb} {name!r}.",
        cause=str(error),
        remedy="Check the disk and its permissions, then run the same call again.",
    )


def _status_of(entry: os.DirEntry[str]) -> FileStatus | None:
    try:
        info = entry.stat()
    except FileNotFoundError:  # deleted between listing and looking
        return None
    if not stat.S_ISREG(info.st_mode):
        return None
    return FileStatus(entry.name, info.st_size, info.st_mtime_ns // 1_000_000)


def _temporary_beside(path: Path) -> Path:
    return path.parent / f".{uuid.uuid4().hex}.tmp"


def _sync_after_publish(folder: Path, name: str) -> None:
    try:
        sync_folder(folder)
    except OSError as error:
        # The name is visible already, but a power loss may still take it back.
        raise OutcomeUnknown(
            f"It is not known whether {name!r} will survive a power loss.",
            cause=str(error),
            remedy="Read it back before deciding; do not delete what it refers to.",
        ) from error


def _forget(temporary: Path) -> None:
    try:
        temporary.unlink(missing_ok=True)
    except OSError:
        # A left-over temporary file is hidden and harmless; the call's own outcome matters more.
        return
