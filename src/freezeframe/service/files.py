"""A tenant's files: listed, written, moved and deleted under the preconditions of a request."""

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TypeVar

from freezeframe.errors import AlreadyExists, ConflictError, FileNotFound, InvalidOption, PreconditionFailed
from freezeframe.identifiers import FilePath, fold_path
from freezeframe.store import Tenant
from freezeframe.store.files import Content, Files, committed_entry
from freezeframe.store.model.json_fields import FileEntry
from freezeframe.store.model.update_options import Author
from freezeframe.store.snapshot_files import require_own_file
from freezeframe.store.tenant import Job, with_check
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import CommitCheck
from freezeframe.store.transaction.conditions import Conditions, file_tag

# A folder exists by its files; one that was made empty holds this file, which no list shows.
FOLDER_MARK = "_folder"
_TRIES_MAX = 10
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FolderPage:
    """A page of a folder's content: folders and files by path, and whether more follow."""

    folders: tuple[str, ...]
    files: tuple[FileEntry, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class FileWrite:
    """A file of a batch; each call of ``content`` returns its bytes from their beginning."""

    path: FilePath
    content: Callable[[], Content]
    conditions: Conditions
    sealed: bool | None


def folder_page(
    files: Files, folder: str, after: str, limit: int, *, recursive: bool, tenant_version: int
) -> FolderPage:
    """Return a page of a folder (``""``: the top one) behind the path ``after``; folders come first.

    A page costs what is on it, however many files the tenant has.
    """
    below = files.page(folder, after, recursive=recursive, tenant_version=tenant_version)
    shown = (item for item in below if item.path.rpartition("/")[2] != FOLDER_MARK)
    found = tuple(itertools.islice(shown, limit + 1))
    folders = () if after else files.folders(folder, recursive=recursive, tenant_version=tenant_version)
    return FolderPage(folders, found[:limit], len(found) > limit)


def write_file(
    tenant: Tenant,
    path: str,
    content: Callable[[], Content],
    author: Author,
    *,
    sealed: bool | None = None,
) -> tuple[FileEntry, bool]:
    """Write the content as the file's new version; return the entry and whether the file is new.

    Each call of ``content`` returns it from its beginning.
    """
    known = str(FilePath(path))
    tenant = for_own_file(tenant, known)

    def change(job: Job) -> tuple[bool, FileEntry]:
        return not job.files.exists(known), job.files.write(known, content(), sealed=sealed)

    (is_new, staged), version = _change(tenant, author, change)
    return committed_entry(tenant.files, staged, version), is_new


def write_files(tenant: Tenant, writes: Sequence[FileWrite], author: Author) -> tuple[int, list[FileEntry]]:
    """Write several files as one version of the tenant, all or none; return the version and the files."""

    def change(job: Job) -> list[FileEntry]:
        return [job.files.write(str(write.path), write.content(), sealed=write.sealed) for write in writes]

    staged, version = _change(with_check(tenant, at_commit_of(writes)), author, change)
    return version, [committed_entry(tenant.files, file, version) for file in staged]


def at_commit_of(writes: Sequence[FileWrite]) -> CommitCheck:
    """Return the check of a batch's commit: that the conditions of all its files hold."""
    return lambda state, _: require_all_conditions(state, writes)


def require_all_conditions(state: TenantState, writes: Sequence[FileWrite]) -> None:
    """Refuse a batch whose conditions do not hold in a state, or that has a stream's file."""
    for write in writes:
        require_own_file(write.path, state)
    refused: list[tuple[str, PreconditionFailed]] = []
    etags = []
    for write in writes:
        etag = file_tag(str(write.path), state)
        try:
            write.conditions.require(etag)
        except PreconditionFailed as error:
            refused.append((str(write.path), error))
            etags.append(etag)
    if refused:
        first = refused[0][1]
        raise PreconditionFailed(
            f"{len(refused):,} of {len(writes):,} files do not meet their conditions; none was written.",
            cause=f"{refused[0][0]}: {first.problem} {first.cause}",
            remedy="Read those named in paths, or leave them out.",
            paths=[path for path, _ in refused],
            etags=etags,
        ) from first


def delete_file(tenant: Tenant, path: str, author: Author) -> int:
    """Remove the file and return the version; older ones can still be read. Errors as of ``write_file``."""
    known = str(FilePath(path))
    return _change(tenant, author, lambda job: job.files.delete(known))[1]


def move_file(tenant: Tenant, path: str, target: str, author: Author) -> FileEntry:
    """Give the file another path, in one change; errors as of ``Files.move`` and ``write_file``."""
    known = str(FilePath(target))
    tenant = for_own_file(tenant, known)
    staged, version = _change(tenant, author, lambda job: job.files.move(path, target))
    return committed_entry(tenant.files, staged, version)


def for_own_file(tenant: Tenant, path: str) -> Tenant:
    """Return the tenant for a write of that file, refused if a stream's content is under its name."""
    require_own_file(path, tenant.context.log.current_state())
    return with_check(tenant, lambda state, _: require_own_file(path, state))


def create_folder(tenant: Tenant, path: str, author: Author) -> str:
    """Create an empty folder and return its path."""
    known = str(FilePath(path))

    def change(job: Job) -> None:
        if job.files.list(known, recursive=True):
            raise AlreadyExists(f"There is a folder {known!r} already.", remedy="Use another name.")
        job.files.write(f"{known}/{FOLDER_MARK}", b"")

    _change(tenant, author, change)
    return known


def rewound(content: IO[bytes]) -> IO[bytes]:
    """Return the open file, at its beginning again."""
    content.seek(0)
    return content


def slice_bytes(chunks: Iterator[bytes], first: int, last: int) -> Iterator[bytes]:
    """Yield the bytes from ``first`` to ``last``, both included, of content that comes in chunks."""
    position = 0
    for chunk in chunks:
        start, end = max(first - position, 0), min(last + 1 - position, len(chunk))
        if start < end:
            yield chunk[start:end]
        position += len(chunk)
        if position > last:
            return


def _change(tenant: Tenant, author: Author, change: Callable[[Job], _T]) -> tuple[_T, int]:
    """Carry out a change as a job; retry it if the file was changed meanwhile.

    What ``change`` gave, and the version that it is in.
    """
    for tries_left in reversed(range(_TRIES_MAX)):
        try:
            with tenant.job(who=author.who, message=author.message) as job:
                done = change(job)
        except ConflictError:
            # The condition no longer holds; the next try raises.
            if not tries_left:
                raise
        else:
            return done, job.receipt.tenant_version
    raise AssertionError("unreachable")


def select_paths(files: Files, paths: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Return the named paths and those of all files in the folders now; unknown ones are left out."""
    found = {str(FilePath(path)) for path in paths}
    for folder in folders:
        found.update(item.path for item in files.list(folder, recursive=True))
    return sorted(found)


def delete_files(
    tenant: Tenant, paths: Sequence[str], folders: Sequence[str], author: Author
) -> tuple[int, list[str]]:
    """Remove files, and folders with all below them.

    Return the version and the removed paths, folder marks included.
    """
    known = {str(FilePath(path)) for path in paths}
    below_of = [str(FilePath(folder)) for folder in folders]
    if not (paths or folders):
        raise InvalidOption("Nothing is named.", remedy="Name at least one file or folder.")
    with tenant.job(who=author.who, message=author.message) as job:
        gone = set(known)
        for folder in below_of:
            below = [item.path for item in job.files.list(folder, recursive=True)]
            if not below:
                raise FileNotFound(f"There is no folder {folder!r}.", remedy="Check the path.", path=folder)
            gone.update(below)
        for path in sorted(gone):
            job.files.delete(path)
    return job.receipt.tenant_version, sorted(gone)


@dataclass(frozen=True, slots=True)
class FolderMove:
    """Which folder moves, and its new path; the two differ, and neither lies in the other's place."""

    source: str
    target: str

    def __post_init__(self) -> None:
        FilePath(self.source)
        FilePath(self.target)
        if self.source == self.target:
            raise InvalidOption("That is the folder's path already.", remedy="Name another path.")
        if self.target.startswith(f"{self.source}/"):
            raise InvalidOption(
                f"The folder {self.source!r} cannot be moved into itself.", remedy="Name another path."
            )

    @property
    def is_respelling(self) -> bool:
        """Whether the paths differ only by upper and lower case."""
        return fold_path(self.source) == fold_path(self.target)


def move_folder(tenant: Tenant, move: FolderMove, author: Author) -> int:
    """Move the folder with all that is below it, in one version; return how many files moved.

    Marks of empty folders move along. Sealed files are sealed anew, bound to their new paths.
    """
    with tenant.job(who=author.who, message=author.message) as job:
        below = _below(job.files, move.source)
        if not below:
            raise FileNotFound(
                f"There is no folder {move.source!r}.", remedy="Check the path.", path=move.source
            )
        if _below(job.files, move.target):
            raise AlreadyExists(
                f"There is a folder {move.target!r} already.", remedy="Use another path, or move its files."
            )
        source = move.source
        if move.is_respelling:
            # Names that differ in capitals alone cannot lie beside each other, not even half-way.
            source = f"{move.target}-{uuid.uuid4().hex}"
            _move_all(job.files, below, move.source, source)
        _move_all(job.files, below, source, move.target)
    return len(below)


def _below(files: Files, folder: str) -> list[str]:
    """Return the paths of all files below a folder, as seen from it."""
    return [item.path.removeprefix(f"{folder}/") for item in files.list(folder, recursive=True)]


def _move_all(files: Files, below: list[str], source: str, target: str) -> None:
    for path in below:
        files.move(f"{source}/{path}", f"{target}/{path}")
