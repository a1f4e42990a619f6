"""Opens files beneath a directory without following links or ``..``.

A path check before the open is a race: a folder may be replaced by a link in between. The kernel
therefore confines the resolution to the directory, by ``openat2(2)`` where available (Linux 5.6).
Elsewhere the walk opens one folder at a time, relative to the last one and without following links.
Refusals have the error number ``ELOOP``.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, BinaryIO

_OPENAT2 = 437  # the same number on every architecture
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_TRIES_MAX = 8
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NOT_THERE = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG})


class _How(ctypes.Structure):
    """``struct open_how`` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@contextmanager
def open_folder(root: int, name: str) -> Iterator[int]:
    """Open the folder ``name`` beneath the open folder ``root``; an empty name is ``root`` itself."""
    folder = open_beneath(root, name, _FOLDER_FLAGS)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def open_root(path: str | os.PathLike[str]) -> Iterator[int]:
    """Open a root directory by its path; links in that path are followed."""
    root = os.open(path, _FOLDER_FLAGS)
    try:
        yield root
    finally:
        os.close(root)


def open_below(path: str | os.PathLike[str], name: str, flags: int) -> int:
    """``open_beneath`` of a root directory, given by its path; links in that path are followed."""
    root = os.open(path, _FOLDER_FLAGS)
    try:
        return open_beneath(root, name, flags)
    finally:
        os.close(root)


def open_beneath(root: int, name: str, flags: int) -> int:
    """Open an existing file or folder beneath ``root`` and return its descriptor."""
    call = _openat2()
    if call is None:
        return open_stepwise(root, name, flags)
    return open_by_kernel(call, root, name, flags)


@contextmanager
def open_regular(folder: str | os.PathLike[str], name: str, *, appending: bool = False) -> Iterator[BinaryIO]:
    """Open an existing regular file beneath a known folder; a pipe or a device never blocks.

    Links in the path of ``folder`` itself are followed.
    """
    access = os.O_WRONLY | os.O_APPEND if appending else os.O_RDONLY
    handle = open_below(folder, name, access | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.ELOOP, "Not a regular file", name)
    with os.fdopen(handle, "ab" if appending else "rb") as file:
        yield file


def remove_beneath(folder: str | os.PathLike[str], name: str) -> None:
    """Remove a file or link beneath a known folder, if it is there, without following links."""
    above, _, own = name.rpartition("/")
    with suppress(FileNotFoundError), open_root(folder) as root, open_folder(root, above) as parent:
        os.unlink(own, dir_fd=parent)


def open_by_kernel(call: Any, root: int, name: str, flags: int) -> int:
    """``open_beneath`` by ``openat2(2)``."""
    how = _How(flags | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_BENEATH)
    path = os.fsencode(name or ".")
    for _ in range(_TRIES_MAX):
        found = int(call(_OPENAT2, root, path, ctypes.byref(how), ctypes.sizeof(how)))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number not in {errno.EAGAIN, errno.EINTR}:  # a folder was renamed meanwhile, or a signal came
            break
    raise OSError(errno.ELOOP if number == errno.EXDEV else number, os.strerror(number), name)


def open_stepwise(root: int, name: str, flags: int) -> int:
    """``open_beneath`` one folder at a time, for kernels without openat2."""
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts or name.startswith("/"):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    if name.rpartition("/")[2] in {"", "."}:
        flags |= os.O_DIRECTORY  # ``file/`` and ``file/.`` name a folder
    here = os.open(".", _FOLDER_FLAGS, dir_fd=root)
    try:
        for part in parts[:-1]:
            below = _open_plain(here, part, _FOLDER_FLAGS)
            os.close(here)
            here = below
        return _open_plain(here, parts[-1] if parts else ".", flags)
    finally:
        os.close(here)


def make_beneath(root: int, name: str) -> int:
    """Open the folder ``name`` beneath ``root``, created if absent, each level fsynced into its parent."""
    parts = [part for part in name.split("/") if part]
    here, made = _nearest(root, parts)
    try:
        for part in parts[made:]:
            with suppress(FileExistsError):
                os.mkdir(part, stat.S_IRWXU, dir_fd=here)
                os.fsync(here)
            below = _open_plain(here, part, _FOLDER_FLAGS)
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here


def _nearest(root: int, parts: list[str]) -> tuple[int, int]:
    """Return the descriptor of the deepest existing folder of the path, and its depth below ``root``."""
    for count in range(len(parts), 0, -1):  # usually at most the last folder is missing
        with suppress(FileNotFoundError):
            return open_beneath(root, "/".join(parts[:count]), _FOLDER_FLAGS), count
    return os.open(".", _FOLDER_FLAGS, dir_fd=root), 0


def files_below(folder: int, prefix: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield each file at any depth, by its name relative to ``folder``; links are not followed."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
        for entry in entries:
            # Files and folders deleted during the walk are left out.
            with suppress(FileNotFoundError):
                if not entry.is_dir(follow_symlinks=False):
                    yield f"{prefix}{entry.name}", entry.stat(follow_symlinks=False)
                    continue
                with open_folder(folder, entry.name) as below:
                    yield from files_below(below, f"{prefix}{entry.name}/")


def remove_empty_below(folder: int) -> None:
    """Remove the folders below ``folder`` that hold no file at any depth."""
    with os.scandir(folder) as found:
        names = [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
    for name in names:
        with suppress(FileNotFoundError):
            with open_folder(folder, name) as below:
                remove_empty_below(below)
            remove_if_empty(folder, name)


def remove_if_empty(parent: int, name: str) -> bool:
    """Remove a folder if it is empty; whether it no longer exists."""
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            return False
        raise
    return True


def _open_plain(folder: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except NotADirectoryError:
        # For a link opened as a folder the kernel reports only ENOTDIR.
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


@cache
def _openat2() -> Any:
    """Return the C library's ``syscall``, if the kernel (and its sandbox) allows openat2; else None."""
    if sys.platform != "linux":
        return None
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    with open_root("/") as root:
        try:
            os.close(open_by_kernel(call, root, ".", _FOLDER_FLAGS))
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            raise
    return call
