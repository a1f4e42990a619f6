"""Operations on a tenant's files and folders."""

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from freezeframe.errors import FileNotFound
from freezeframe.identifiers import FilePath
from freezeframe.service.operations.operation import (
    AsOf,
    Cursor,
    Limit,
    Message,
    NamedFile,
    SeenVersion,
    about,
    operation,
    seen_version,
)
from freezeframe.store.model.json_fields import FileEntry, FileRevision
from freezeframe.store.model.update_options import Author

if TYPE_CHECKING:
    from freezeframe.service.operations.caller import TenantCaller
    from freezeframe.store import Tenant

of_files = partial(operation, tag="files")

NewPath = Annotated[FilePath, about("The new path, which must not exist.", min_length=1, max_length=800)]
Paths = Annotated[list[Annotated[str, Field(min_length=1, max_length=800)]], about(max_length=10_000)]
NamedFolder = Annotated[FilePath, about("The folder's path.", min_length=1, max_length=800)]


@dataclass(frozen=True, slots=True)
class File(FileEntry):
    """A file; size and SHA-256 are of what is stored, which for a sealed file is its ciphertext.

    `version` is the tenant's version that brought these bytes.
    """

    @classmethod
    def of(cls, entry: FileEntry) -> Self:
        """Return the file of an entry of the tenant's log."""
        return cls(**{name: getattr(entry, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class FilePage:
    """What a folder holds, at one version of the tenant; the folders come with the first page."""

    version: int
    folder: str
    folders: list[str]
    files: list[File]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A stream or file that was removed; its past can be read and restored."""

    tenant_version: int


@dataclass(frozen=True, slots=True)
class FilesDeleted:
    """The version without them, and every path that went."""

    tenant_version: int
    paths: list[str]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder."""

    path: str


@dataclass(frozen=True, slots=True)
class FolderMoved:
    """The folder's new path, and how many files are below it, the marks of empty folders included."""

    path: str
    files: int


@dataclass(frozen=True, slots=True)
class FileHistory:
    """A file's versions, the newest first."""

    path: str
    revisions: list[FileRevision]


def _files() -> Any:
    from freezeframe.service import files

    return files


@of_files(
    "GET /files",
    "snapshots:read",
    command="file list",
    columns=("path", "size", "modified", "sealed", "version"),
    empty="There are no files here; those in folders are shown by --recursive.",
)
def list_files(
    tenant: "Tenant",
    caller: "TenantCaller",
    folder: Annotated[
        str, about("A folder; the tenant's own without it.", is_argument=True, max_length=800)
    ] = "",
    version: SeenVersion = None,
    recursive: Annotated[bool, about("Those below it as well.")] = False,  # noqa: FBT002 - a query
    as_of: AsOf = None,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> FilePage:
    """List what a folder holds, now or earlier."""
    listing = caller.list_name("files", folder, recursive)
    # All pages are of the same version.
    begin = caller.cursors.read_as(tuple[int, str], listing, cursor)
    seen, after = begin or (seen_version(tenant, version, as_of), "")
    if seen < 0:
        return FilePage(seen, folder, [], [], None)
    page = _files().folder_page(tenant.files, folder, after, limit, recursive=recursive, tenant_version=seen)
    following = caller.cursors.encode(listing, [seen, page.files[-1].path] if page.has_more else None)
    return FilePage(seen, folder, list(page.folders), list(map(File.of, page.files)), following)


@of_files("DELETE /files/{path}", "snapshots:delete", "file.delete", "file delete", noun="file")
def delete_file(tenant: "Tenant", caller: "TenantCaller", path: NamedFile, message: Message = "") -> Dropped:
    """Remove a file; its older versions can still be read and brought back."""
    return Dropped(_files().delete_file(tenant, path, Author(caller.who, message)))


@of_files(
    "POST /file-deletions",
    "snapshots:delete",
    "file.delete",
    body="FileDeletion",
    example={"paths": ["a.csv"], "folders": ["exports"]},
    audits_itself=True,
)
def delete_many(
    tenant: "Tenant",
    caller: "TenantCaller",
    paths: Paths = [],  # noqa: B006 - never changed
    folders: Paths = [],  # noqa: B006 - never changed
    message: Annotated[str, about(max_length=1000)] = "",
) -> FilesDeleted:
    """Remove files and folders in one version of the tenant, all of them or none; the past stays.

    `If-Match` is the tenant's `ETag`.
    """
    named = _files().select_paths(tenant.files, paths, folders)
    author = caller.author(message)
    with caller.audit_change("file.delete", *named, **({"folders": folders} if folders else {})):
        version, gone = _files().delete_files(tenant, paths, folders, author)
    return FilesDeleted(version, gone)


@of_files(
    "POST /file-moves",
    "snapshots:write",
    "file.move",
    "file move",
    noun="file",
    details=("target",),
    body="FileMove",
)
def move_file(
    tenant: "Tenant", caller: "TenantCaller", path: NamedFile, target: NewPath, message: Message = ""
) -> File:
    """Give a file another path, in one change; a request's conditions are of the file that is moved."""
    return File.of(_files().move_file(tenant, path, target, Author(caller.who, message)))


@of_files(
    "GET /file-history",
    "snapshots:read",
    command="file history",
    columns=tuple(FileRevision.__dataclass_fields__),
)
def file_history(
    tenant: "Tenant", _caller: "TenantCaller", path: NamedFile, limit: Limit = 100
) -> FileHistory:
    """List a file's versions, the newest first, deletions included."""
    found = list(islice(tenant.files.history(path), limit))
    if not found:
        raise FileNotFound(
            f"There is and was no file {path!r}.", remedy="Check the path; a list of the files shows all."
        )
    return FileHistory(path, found)


@of_files("POST /folders", "snapshots:write", "folder.create", status=201, body="NewFolder")
def create_folder(tenant: "Tenant", caller: "TenantCaller", path: NamedFolder) -> Folder:
    """Make a folder that holds nothing yet."""
    return Folder(_files().create_folder(tenant, path, Author(caller.who)))


@of_files("POST /folder-moves", "snapshots:write", "folder.move", details=("target",), body="FolderMove")
def move_folder(
    tenant: "Tenant", caller: "TenantCaller", path: NamedFolder, target: NewPath, message: Message = ""
) -> FolderMoved:
    """Give a folder another path with all that is below it, in one version of the tenant.

    `If-Match` is the tenant's `ETag`.
    """
    move = _files().FolderMove(path, target)
    return FolderMoved(target, _files().move_folder(tenant, move, Author(caller.who, message)))


@operation("DELETE /blobs/{blob_id}", "snapshots:write", tag="uploads", status=204)
def remove_blob(
    _tenant: "Tenant",
    caller: "TenantCaller",
    blob_id: Annotated[str, about("The blob's id.", min_length=1, max_length=64)],
) -> None:
    """Give up a staged blob."""
    caller.service.blobs.remove(caller.service.blobs.get(caller.folder(), blob_id))


OPERATIONS = (
    *(list_files, delete_file, delete_many, move_file, file_history, create_folder, move_folder),
    remove_blob,
)
