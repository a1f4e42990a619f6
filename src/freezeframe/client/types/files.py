"""What the service says and is told of files.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from freezeframe.client.types.uploads import File


class Dropped(TypedDict):
    """A stream or file that was removed; its past can be read and restored."""

    tenant_version: int


class FileDeletion(TypedDict):
    """Files, and folders with all below them, that are to go in one version of the tenant."""

    paths: NotRequired[list[str]]
    folders: NotRequired[list[str]]
    message: NotRequired[str]


class FileHistory(TypedDict):
    """A file's versions, the newest first."""

    path: str
    revisions: list[FileRevision]


class FileMove(TypedDict):
    """A file that is to get another path."""

    path: str
    target: str
    message: NotRequired[str]


class FilePage(TypedDict):
    """What a folder holds, at one version of the tenant; the folders come with the first page."""

    version: int
    folder: str
    folders: list[str]
    files: list[File]
    next_cursor: str | None


class FileReturn(TypedDict):
    """A file that is to be brought back as it was at a version of the tenant."""

    path: str
    version: int
    message: NotRequired[str]


class FileRevision(TypedDict):
    """One version of a file."""

    version: int
    modified: str
    deleted: bool
    size: int
    sha256: str
    sealed: bool
    job_id: str | None
    author: str
    message: str


class FilesDeleted(TypedDict):
    """The version without them, and every path that went."""

    tenant_version: int
    paths: list[str]


class Folder(TypedDict):
    """A folder."""

    path: str


class FolderMove(TypedDict):
    """A folder that is to get another path, with all that is below it, in one version of the tenant."""

    path: str
    target: str
    message: NotRequired[str]


class FolderMoved(TypedDict):
    """The folder's new path, and how many files are below it, the marks of empty folders included."""

    path: str
    files: int


class NewFolder(TypedDict):
    """A folder that is to be made."""

    path: str


class Restoration(TypedDict):
    """What a restoration did, or would do: ``committed`` says which."""

    version: int
    tenant_version: int
    committed: bool
    streams: dict[str, RestoredStream]
    files_written: list[str]
    files_deleted: list[str]


class RestoredStream(TypedDict):
    """What restoring does to a stream."""

    fate: Literal["changed", "brought back", "removed"]
    rows_before: int
    rows_after: int
    files_added: int
    files_removed: int
