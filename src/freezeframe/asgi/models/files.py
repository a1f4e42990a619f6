"""Files and folders."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example

_PATH = "A path such as `mappings/a.csv`."


class File(ResponseModel):
    """A file; size and SHA-256 are of what is stored, which for a sealed file is its ciphertext."""

    model_config = ConfigDict(
        json_schema_extra=example(
            path="mappings/a.csv",
            size=42,
            modified="2026-11-20T14:05:00Z",
            sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            sealed=False,
            version=12,
        )
    )

    path: str
    size: int
    modified: datetime
    sha256: str
    sealed: bool
    version: int = Field(description="The tenant's version that brought these bytes.")


class FilePage(ResponseModel):
    """What a folder holds, at one version of the tenant; the folders come with the first page."""

    version: int
    folder: str
    folders: list[str]
    files: list[File]
    next_cursor: str | None


class FileRevision(ResponseModel):
    """One version of a file."""

    version: int
    modified: datetime
    deleted: bool
    size: int
    sha256: str
    sealed: bool
    job_id: str | None
    author: str
    message: str


class FileHistory(ResponseModel):
    """A file's versions, the newest first."""

    path: str
    revisions: list[FileRevision]


class NewFolder(RequestModel):
    """A folder that is to be made."""

    model_config = ConfigDict(json_schema_extra=example(path="mappings"))

    path: str = Field(min_length=1, max_length=800, description=_PATH)


class Folder(ResponseModel):
    """A folder."""

    path: str


class FileMove(RequestModel):
    """A file that is to get another path."""

    model_config = ConfigDict(json_schema_extra=example(path="a.csv", target="mappings/a.csv"))

    path: str = Field(min_length=1, max_length=800, description=_PATH)
    target: str = Field(min_length=1, max_length=800, description=_PATH)
    message: str = Field(default="", max_length=1000)


class FileReturn(RequestModel):
    """A file that is to be brought back as it was at a version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(path="mappings/a.csv", version=9))

    path: str = Field(min_length=1, max_length=800, description=_PATH)
    version: int = Field(ge=0, le=2**53)
    message: str = Field(default="", max_length=1000)


class StagedBlob(ResponseModel):
    """Bytes that wait for the request that publishes them."""

    id: str
    size: int
    sha256: str
    expires: datetime


_Path = Annotated[str, Field(min_length=1, max_length=800)]


class BatchedFile(RequestModel):
    """A staged blob, and the file that it becomes."""

    blob: str = Field(default="", max_length=64, description="The blob's id; none for `only_check`.")
    path: _Path
    sealed: bool | None = Field(default=None, description="Encrypted at rest; as it is without it.")
    if_match: str | None = Field(default=None, max_length=1000, description="As the header `If-Match`.")
    if_none_match: str | None = Field(
        default=None, max_length=1000, description="As the header `If-None-Match`."
    )


_BATCH_MAX = 1000


class FileBatch(RequestModel):
    """Staged blobs that become files together, in one version of the tenant."""

    model_config = ConfigDict(
        json_schema_extra=example(files=[{"blob": "0" * 32, "path": "mappings/a.csv", "if_none_match": "*"}])
    )

    files: list[BatchedFile] = Field(min_length=1, max_length=_BATCH_MAX)
    only_check: bool = Field(default=False, description="Check the conditions, and write nothing.")
    message: str = Field(default="", max_length=1000)


class FilesWritten(ResponseModel):
    """The version that has the files, and each of them in the order of the request."""

    tenant_version: int
    files: list[File]


class FolderMove(RequestModel):
    """A folder that is to get another path, with all that is below it, in one version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(path="exports", target="archive/exports"))

    path: _Path
    target: _Path
    message: str = Field(default="", max_length=1000)


class FolderMoved(ResponseModel):
    """The folder's new path, and how many files are below it, the marks of empty folders included."""

    path: str
    files: int


_NAMES_MAX = 10_000


class FileDeletion(RequestModel):
    """Files, and folders with all below them, that are to go in one version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(paths=["a.csv"], folders=["exports"]))

    paths: list[_Path] = Field(default_factory=list, max_length=_NAMES_MAX)
    folders: list[_Path] = Field(default_factory=list, max_length=_NAMES_MAX)
    message: str = Field(default="", max_length=1000)


class FilesDeleted(ResponseModel):
    """The version without them, and every path that went."""

    tenant_version: int
    paths: list[str]
