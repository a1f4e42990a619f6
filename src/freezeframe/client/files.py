"""The service's operations on files.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import TENANT, Connection, Content, path_of
from freezeframe.client.types import (
    Dropped,
    File,
    FileDeletion,
    FileHistory,
    FileMove,
    FilePage,
    FileReturn,
    FilesDeleted,
    Folder,
    FolderMove,
    FolderMoved,
    NewFolder,
    Restoration,
)


class FilesOperations:
    """Operations on files; see ``Client``."""

    _connection: Connection

    def download_bundle(
        self,
        environment: str,
        tenant: str,
        *,
        file: list[str] | None = None,
        folder: list[str] | None = None,
        stream: list[str] | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
    ) -> bytes:
        """Download files, folders and streams as one zip; sealed ones as by themselves."""
        place = path_of(TENANT + "/bundle", environment, tenant)
        query = {
            "file": file,
            "folder": folder,
            "stream": stream,
            "version": version,
            "tenant_version": tenant_version,
        }
        return self._connection.content("GET", place, query=query)

    def delete_many(
        self, environment: str, tenant: str, body: FileDeletion, *, idempotency_key: str | None = None
    ) -> FilesDeleted:
        """Remove files and folders in one version of the tenant, all of them or none; the past stays."""
        place = path_of(TENANT + "/file-deletions", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("FilesDeleted", self._connection.json("POST", place, headers=headers, body=body))

    def file_history(
        self, environment: str, tenant: str, *, path: str, limit: int | None = None
    ) -> FileHistory:
        """List a file's versions, the newest first, deletions included."""
        place = path_of(TENANT + "/file-history", environment, tenant)
        query = {"path": path, "limit": limit}
        return cast("FileHistory", self._connection.json("GET", place, query=query))

    def move_file(
        self, environment: str, tenant: str, body: FileMove, *, idempotency_key: str | None = None
    ) -> File:
        """Give a file another path, in one change."""
        place = path_of(TENANT + "/file-moves", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("File", self._connection.json("POST", place, headers=headers, body=body))

    def return_file(
        self, environment: str, tenant: str, body: FileReturn, *, idempotency_key: str | None = None
    ) -> Restoration:
        """Bring a file back as it was at a version of the tenant, deleted or changed since."""
        place = path_of(TENANT + "/file-returns", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("Restoration", self._connection.json("POST", place, headers=headers, body=body))

    def list_files(
        self,
        environment: str,
        tenant: str,
        *,
        folder: str | None = None,
        recursive: bool | None = None,
        as_of: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
    ) -> FilePage:
        """List what a folder holds, now or earlier."""
        place = path_of(TENANT + "/files", environment, tenant)
        query = {
            "folder": folder,
            "recursive": recursive,
            "as_of": as_of,
            "limit": limit,
            "cursor": cursor,
            "version": version,
            "tenant_version": tenant_version,
        }
        return cast("FilePage", self._connection.json("GET", place, query=query))

    def write_file(
        self,
        environment: str,
        tenant: str,
        path: str,
        content: Content,
        *,
        sealed: bool | None = None,
        message: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> File:
        """Upload a file, as its new version.

        `Content-Digest: sha-256=:…:` is checked before anything happens.
        """
        place = path_of(TENANT + "/files/{path}", environment, tenant, path)
        query = {"sealed": sealed, "message": message}
        headers = {"if-match": if_match, "if-none-match": if_none_match}
        return cast(
            "File",
            self._connection.json(
                "PUT",
                place,
                query=query,
                headers=headers,
                content=content,
                content_type="application/octet-stream",
            ),
        )

    def read_file(
        self,
        environment: str,
        tenant: str,
        path: str,
        *,
        as_of: str | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
        range_: str | None = None,
        if_range: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> bytes:
        """Download a file, or with `Range` a part of it; a sealed one needs `secrets:read` and is audited."""
        place = path_of(TENANT + "/files/{path}", environment, tenant, path)
        query = {"as_of": as_of, "version": version, "tenant_version": tenant_version}
        headers = {
            "range": range_,
            "if-range": if_range,
            "if-match": if_match,
            "if-none-match": if_none_match,
        }
        return self._connection.content("GET", place, query=query, headers=headers)

    def delete_file(
        self,
        environment: str,
        tenant: str,
        path: str,
        *,
        message: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> Dropped:
        """Remove a file; its older versions can still be read and brought back."""
        place = path_of(TENANT + "/files/{path}", environment, tenant, path)
        query = {"message": message}
        headers = {"if-match": if_match, "if-none-match": if_none_match}
        return cast("Dropped", self._connection.json("DELETE", place, query=query, headers=headers))

    def move_folder(
        self, environment: str, tenant: str, body: FolderMove, *, idempotency_key: str | None = None
    ) -> FolderMoved:
        """Give a folder another path with all that is below it, in one version of the tenant."""
        place = path_of(TENANT + "/folder-moves", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("FolderMoved", self._connection.json("POST", place, headers=headers, body=body))

    def create_folder(
        self, environment: str, tenant: str, body: NewFolder, *, idempotency_key: str | None = None
    ) -> Folder:
        """Make a folder that holds nothing yet."""
        place = path_of(TENANT + "/folders", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("Folder", self._connection.json("POST", place, headers=headers, body=body))
