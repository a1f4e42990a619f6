"""What the service says and is told of uploads.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class BatchedFile(TypedDict):
    """A finished upload of the purpose ``batch``, and the file that it becomes."""

    upload: str
    path: str
    sealed: NotRequired[bool | None]
    if_match: NotRequired[str | None]
    if_none_match: NotRequired[str | None]


class File(TypedDict):
    """A file; size and SHA-256 are of what is stored, which for a sealed file is its ciphertext."""

    path: str
    size: int
    modified: str
    sha256: str
    sealed: bool
    version: int


class FileBatch(TypedDict):
    """Finished uploads that become files together, in one version of the tenant."""

    files: list[BatchedFile]
    message: NotRequired[str]


class FilesWritten(TypedDict):
    """The version that has the files, and each of them in the order of the request."""

    tenant_version: int
    files: list[File]


class UploadState(TypedDict):
    """A resumable upload: what it becomes, and how far it has come."""

    id: str
    purpose: Literal["file", "batch", "import"]
    path: str
    length: int
    offset: int
    expires: str
