"""A job's working copy of the tenant's files, and the changes that a script made in it.

Files are copied, never linked, so that a script that writes in place changes only its own copy. A comparison
finds what it added, changed or deleted, which becomes part of the job.
Streams and what freezeframe keeps for itself are not files. Protocol: ``docs/reference/tenant-log.md``.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from freezeframe.errors import BadInput, InvalidOption
from freezeframe.identifiers import FilePath
from freezeframe.storage.local import failure, make_private
from freezeframe.storage.safe_open import open_regular
from freezeframe.store.files import Files
from freezeframe.store.model.directory import OURS, is_table_folder

# Error numbers of open(2) for a link, a socket, a missing file and an unreadable one.
_NOT_PLAIN = {errno.ELOOP, errno.ENXIO, errno.ENOENT, errno.ENOTDIR, errno.EACCES}


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file as it lay in the working copy at one moment. ``sealed``: it is to be sealed when captured."""

    size: int
    modified_ns: int
    inode: int
    sha256: str
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class WorkingChanges:
    """Changes of a working copy by path; ``sealed`` are those of sealed files."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    sealed: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not (self.added or self.changed or self.deleted)


def check_out(files: Files, folder: Path) -> dict[str, CopiedFile]:
    """Copy all files into ``folder`` (mode 0700), which must be empty; return their state by path.

    A sealed file lies there in the clear, as every file with mode 0600, until ``JobRoot.remove_secrets``.
    """
    try:
        make_private(folder)
        if any(folder.iterdir()):
            raise InvalidOption(
                f"{folder} is not empty.",
                cause="A working copy contains exactly the tenant's files.",
                remedy="Name a new folder.",
            )
        return {
            entry.path: _copy(files, entry.path, folder / entry.path, sealed=entry.sealed)
            for entry in files.list(recursive=True)
        }
    except OSError as error:
        raise failure("check out", str(folder), error) from error


def capture(folder: Path, before: Mapping[str, CopiedFile], derived: Collection[str] = ()) -> WorkingChanges:
    """Return the files added, changed and deleted in ``folder`` since ``before``.

    A file is looked into only where its size, time or identity differ. The content of ``derived`` paths is
    made of something else that is kept, so it is not a change.
    """
    # A link would lead to files outside the tenant.
    if folder.is_symlink() or not folder.is_dir():
        raise BadInput(
            f"The folder {folder.name} of the job is gone.",
            cause="The script deleted, moved or replaced it.",
            remedy="Let the script delete single files, and keep the folder.",
            path=str(folder),
        )
    try:
        now = dict(_plain_files(folder))
        changed = [
            path
            for path in now
            if path in before and path not in derived and _differs(folder, path, now[path], before[path])
        ]
    except OSError as error:
        raise failure("capture", str(folder), error) from error
    added = [str(FilePath(path)) for path in now if path not in before and path not in derived]
    gone = [path for path in before if path not in now]
    sealed = frozenset(path for path in changed if before[path].sealed)
    return WorkingChanges(tuple(sorted(added)), tuple(sorted(changed)), tuple(sorted(gone)), sealed)


def apply_changes(files: Files, folder: Path, changes: WorkingChanges) -> None:
    """Make the captured changes in ``files``, those of a job as a rule: then all of them or none."""
    for path in changes.deleted:
        files.delete(path)
    for path in (*changes.added, *changes.changed):
        with _opened(folder, path) as file:
            files.write(path, file, sealed=path in changes.sealed)


def _copy(files: Files, path: str, target: Path, *, sealed: bool) -> CopiedFile:
    make_private(target.parent)
    digest = hashlib.sha256()
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        for chunk in files.chunks(path):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        status = os.fstat(file.fileno())
    return CopiedFile(status.st_size, status.st_mtime_ns, status.st_ino, digest.hexdigest(), sealed)


def _plain_files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Return the files that are a script's, with what lies there; tables and our own folder are left out."""
    for place, folders, names in os.walk(folder, onerror=_raise):
        within = Path(place).relative_to(folder).as_posix()
        prefix = "" if within == "." else f"{within}/"
        if not prefix:
            folders[:] = [name for name in folders if name != OURS and not is_table_folder(name)]
        for name in (*folders, *names):
            path = Path(place) / name
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                yield f"{prefix}{name}", status
            elif not stat.S_ISDIR(status.st_mode):
                raise _not_plain(path)


def _differs(folder: Path, path: str, now: os.stat_result, before: CopiedFile) -> bool:
    if now.st_size != before.size:
        return True
    if (now.st_mtime_ns, now.st_ino) == (before.modified_ns, before.inode):
        return False
    with _opened(folder, path) as file:
        return hashlib.file_digest(cast("io.BufferedReader", file), "sha256").hexdigest() != before.sha256


@contextmanager
def _opened(folder: Path, path: str) -> Iterator[BinaryIO]:
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open_regular(folder, path))
        except OSError as error:
            if error.errno not in _NOT_PLAIN:
                raise failure("read", path, error) from error
            raise _not_plain(folder / path) from error
        yield file


def _raise(error: OSError) -> None:
    raise error


def _not_plain(path: Path) -> BadInput:
    return BadInput(
        f"{path} cannot be kept.",
        cause="It is a symbolic link, a pipe or a device, or was deleted; only plain files are kept.",
        remedy="Write a plain file in its place, or remove it.",
        path=str(path),
    )
