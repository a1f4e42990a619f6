"""Local file storage with atomic create-if-absent and durable writes.

Create-if-absent is ``link(2)``: the bytes are first written and fsynced under a temporary
name, and the link either appears whole or fails because the name exists. Durability is an
fsync of the file *and* of its folder; a new folder is fsynced into its parent as well.
Every open is confined to the directory, so that planted links are not followed (``safe_open``).
Stock Delta on a local disk loses acknowledged commits between processes and never fsyncs:
measured in ``docs/decisions/0001``.
"""

import errno
import os
import re
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from freezeframe.errors import (
    FreezeframeError,
    OutcomeUnknown,
    PlatformUnsupported,
    StorageFull,
    StorageUnavailable,
    UnsafePath,
)
from freezeframe.storage.base import FileStatus, check_name
from freezeframe.storage.safe_open import (
    files_below,
    make_beneath,
    open_below,
    open_root,
    remove_empty_below,
    remove_if_empty,
)

_FULL = {errno.ENOSPC, errno.EDQUOT}
_NO_FILE = {errno.EISDIR, errno.ENXIO}  # of a folder, and of a socket that is opened
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")
_ENCODING, _ENCODE_ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
_LOOK_ONLY = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_OPEN_FILES = Path("/proc/self/fd")  # macOS has none


class LocalStorage:
    """The files below one directory, which need not exist yet."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        if sys.platform == "win32":
            raise PlatformUnsupported(
                "freezeframe does not run on Windows.",
                cause="Its commits require POSIX link(2) and fsync of folders.",
                remedy="Use Linux (WSL is fine) or macOS.",
            )
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - symlinks stay as the user wrote them

    def sendable(self) -> "LocalStorage":
        """Return the directory, as another process opens it."""
        return LocalStorage(self._root)

    @property
    def root(self) -> str:
        """The absolute path of the directory."""
        return str(self._root)

    def __repr__(self) -> str:
        return f"LocalStorage({self.root!r})"

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``; temporary files of writers (a leading dot) and links are left out.

        Each file is examined during the iteration, so stopping early costs the names only.
        """
        try:
            with self._open_folder(folder) as handle:
                for name in _names_from(handle, start):
                    status = _status_of(handle, name)
                    if status is not None:
                        yield status
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise failure("list", folder, error) from error

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """See ``Storage.list_below``; temporary files and links are included."""
        try:
            with self._open_folder(folder) as handle:
                found = [
                    FileStatus(name, info.st_size, info.st_mtime_ns // 1_000_000)
                    for name, info in files_below(handle)
                ]
        except (FileNotFoundError, NotADirectoryError):
            return iter(())
        except OSError as error:
            raise failure("list", folder, error) from error
        return iter(found)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        try:
            with self._open_file(name) as file:
                if offset:
                    file.seek(offset)
                return file.read() if length is None else file.read(length)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
        except OSError as error:
            raise failure("read", name, error) from error

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``: temporary file, fsync, ``link(2)``, fsync of the folder."""
        try:
            with self._make_folder(name) as (folder, own), _temporary(folder, content) as temporary:
                try:
                    # The atomic step: it fails if another writer was first.
                    os.link(temporary, own, src_dir_fd=folder, dst_dir_fd=folder)
                except FileExistsError:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
                _sync_after_publish(folder, name)
        except FileExistsError:
            raise
        except OSError as error:
            raise failure("create", name, error) from error

    def replace(self, name: str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
        """See ``Storage.replace``: temporary file, fsync, ``rename(2)``, fsync of the folder."""
        try:
            with (
                self._make_folder(name) as (folder, own),
                _temporary(folder, content, durable=durable) as temporary,
            ):
                os.rename(temporary, own, src_dir_fd=folder, dst_dir_fd=folder)
                if durable:
                    _sync_after_publish(folder, name)
        except OSError as error:
            raise failure("replace", name, error) from error

    def delete(self, name: str, *, durable: bool = True) -> None:
        """See ``Storage.delete``; of a link the link is removed."""
        folder, _, own = self._check_name(name).rpartition("/")
        try:
            with self._open_folder(folder) as handle:
                os.unlink(own, dir_fd=handle)
                if durable:
                    os.fsync(handle)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise failure("delete", name, error) from error

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``."""
        above, _, own = self._check_name(folder).strip("/").rpartition("/")
        try:
            with self._open_folder(folder) as handle:
                remove_empty_below(handle)
            while own:
                with self._open_folder(above) as parent:
                    if not remove_if_empty(parent, own):
                        return
                    os.fsync(parent)
                above, _, own = above.rpartition("/")
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise failure("prune", folder, error) from error

    def local_path(self, name: str) -> Path | None:
        """Return the file's absolute path, without links below the root.

        Raises:
            UnsafePath: the path contains a link.
        """
        return self._plain_path(name)

    def uri(self, name: str) -> str:
        """Return the file's absolute path for Spark; refuses links like ``local_path``."""
        return str(self._plain_path(name))

    @contextmanager
    def _open_folder(self, folder: str) -> Iterator[int]:
        handle = open_below(self._root, self._check_name(folder).strip("/"), os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield handle
        finally:
            os.close(handle)

    def _open_file(self, name: str) -> BinaryIO:
        # Without O_NONBLOCK, opening a named pipe would block until it has a writer.
        handle = open_below(self._root, self._check_name(name), os.O_RDONLY | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise failure("read", name, IsADirectoryError(errno.EISDIR, "not a regular file"))
        return os.fdopen(handle, "rb")

    @contextmanager
    def _make_folder(self, name: str) -> Iterator[tuple[int, str]]:
        """The open parent folder of a file, created if absent, and the file's name in it."""
        folder, _, own = self._check_name(name).rpartition("/")
        make_folder(self._root)
        with open_root(self._root) as root:
            handle = make_beneath(root, folder)
        try:
            yield handle, own
        finally:
            os.close(handle)

    def _plain_path(self, name: str) -> Path:
        path = self._root / self._check_name(name)
        try:
            os.close(open_below(self._root, name, _LOOK_ONLY))
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise failure("open", name, error) from error
            # A missing or unreadable file raises where the path is used.
        return path

    def _check_name(self, name: str) -> str:
        return check_name(name, self.root)


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its missing parents, mode 0700, each fsynced into its parent."""
    for new in make_private(folder):
        sync_folder(new.parent)


def keep_private() -> None:
    """Set the umask of this process and its children to owner-only access."""
    os.umask(stat.S_IRWXG | stat.S_IRWXO)


def make_private(folder: Path) -> list[Path]:
    """Create ``folder`` and its missing parents, mode 0700 whatever the umask; returns the new ones."""
    missing, above = [], folder
    while not above.is_dir():
        missing.append(above)
        above = above.parent
    for new in reversed(missing):
        try:
            new.mkdir(stat.S_IRWXU, exist_ok=True)
        except FileNotFoundError:  # another process pruned the empty folder above
            new.parent.mkdir(stat.S_IRWXU, exist_ok=True)
            new.mkdir(stat.S_IRWXU, exist_ok=True)
    return missing[::-1]


def write_durably(
    path: str | os.PathLike[str],
    content: bytes | Iterable[bytes],
    folder: int | None = None,
    *,
    synced: bool = True,
) -> None:
    """Write a new file (below the open ``folder``, if one is given) and fsync it; it must not exist."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR, dir_fd=folder)
    try:
        for chunk in (content,) if isinstance(content, bytes) else content:
            rest = memoryview(chunk)
            while rest:  # a full disk causes a short write first
                rest = rest[os.write(file, rest) :]
        if synced:
            os.fsync(file)
    finally:
        os.close(file)


def temporary_file(held: ExitStack, path: Path, content: Iterable[bytes]) -> Path:
    """Write a new file in a temporary folder, to be read by its path until ``held`` ends; return the path.

    Its bytes have no name, and go with this process, however that ends. On a system without a folder of open
    files it is a plain file of its owner, which goes with its folder.
    """
    if _OPEN_FILES.is_dir():
        nameless = held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - it is one
        path.symlink_to(_OPEN_FILES / str(nameless.fileno()))
    else:
        path.touch(0o600, exist_ok=False)
    with path.open("wb") as file:
        file.writelines(content)
    return path


def sync_file(path: Path) -> None:
    """Fsync a file that another process wrote (Spark does not)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# A folder is opened and fsynced just as a file is.
sync_folder = sync_file


def failure(verb: str, name: str, error: OSError) -> FreezeframeError:
    """Return the typed error for a failed operating system call: ``verb`` on ``name``."""
    if error.errno in _FULL:
        return StorageFull(
            f"There is no space left to {verb} {name!r}.",
            cause=str(error),
            remedy="Free space or raise the quota, then run the same call again; nothing was changed.",
        )
    if verb == "read" and error.errno in _NO_FILE:
        return UnsafePath(
            f"{name!r} is not a regular file.",
            cause="The name belongs to a folder, pipe, socket or device.",
            remedy="Find its origin, and remove it.",
            name=name,
        )
    if error.errno == errno.ELOOP:
        return UnsafePath(
            f"The storage did not {verb} {name!r}.",
            cause="Its path contains a symbolic link; freezeframe neither creates nor follows links.",
            remedy="Find the origin of the link, and remove it.",
            name=name,
        )
    return StorageUnavailable(
        f"The storage could not {verb} {name!r}.",
        cause=str(error),
        remedy="Check the disk and its permissions, then run the same call again.",
    )


def _names_from(handle: int, start: str) -> list[str]:
    """Return the names in an open folder from ``start`` on, in the order of their bytes."""
    if start.isascii():
        # Most of a long log is before the start. A name compares with ASCII text as its bytes do.
        found = [name for name in os.listdir(handle) if name >= start]
    else:
        found = [name for name in os.listdir(handle) if _as_bytes(name) >= start.encode()]
    return sorted((name for name in found if not name.startswith(".")), key=_as_bytes)


def _as_bytes(name: str) -> bytes:
    return name.encode(_ENCODING, _ENCODE_ERRORS)  # os.fsencode, for long listings


def _status_of(handle: int, name: str) -> FileStatus | None:
    """What the folder holds under a name; None for all but regular files, and where it is gone by now."""
    try:
        info = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(info.st_mode):
        return None
    return FileStatus(name, info.st_size, info.st_mtime_ns // 1_000_000)


@contextmanager
def _temporary(folder: int, content: bytes | Iterable[bytes], *, durable: bool = True) -> Iterator[str]:
    """A temporary file of that content in the open folder, under a hidden name, deleted on exit."""
    name = f".{uuid.uuid4().hex}.tmp"  # as ``is_temporary`` knows it
    try:
        write_durably(name, content, folder, synced=durable)
        yield name
    finally:
        # A left-over temporary file is hidden and harmless; it must not mask the call's outcome.
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def is_temporary(name: str) -> bool:
    """Return whether a file is one that is being written; if its writer was killed, it stays."""
    return _TEMPORARY.fullmatch(name.rpartition("/")[2]) is not None


def _sync_after_publish(folder: int, name: str) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        # The name is already visible, but not yet safe from a power loss.
        raise OutcomeUnknown(
            f"It is not known whether {name!r} will survive a power loss.",
            cause=str(error),
            remedy="Read it back before deciding; do not delete what it refers to.",
        ) from error


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file's identity and state at one moment; a replacement or appended bytes change it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def file_identity(path: str | Path) -> FileIdentity | None:
    """Return the identity of the current file, or None without one.

    Uses ``lstat``: the file is not opened and links are not followed.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise failure("look at", os.path.basename(path), error) from error  # noqa: PTH119 - no Path is at hand
    return FileIdentity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
