"""The service's operations on uploads.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import TENANT, Connection, Content, path_of
from freezeframe.client.types import (
    FileBatch,
    FilesWritten,
    UploadState,
)


class UploadsOperations:
    """Operations on uploads; see ``Client``."""

    _connection: Connection

    def write_batch(
        self, environment: str, tenant: str, body: FileBatch, *, idempotency_key: str | None = None
    ) -> FilesWritten:
        """Make finished uploads of the purpose `batch` files.

        In one version of the tenant, all of them or none.

        Where conditions do not hold `paths` of the problem names the files. The uploads are then gone.
        """
        place = path_of(TENANT + "/file-batches", environment, tenant)
        headers = {"idempotency-key": idempotency_key}
        return cast("FilesWritten", self._connection.json("POST", place, headers=headers, body=body))

    def tus_options(self, environment: str, tenant: str) -> dict[str, str]:
        """What of tus the service speaks, and the largest upload."""
        place = path_of(TENANT + "/uploads", environment, tenant)
        return self._connection.headers("OPTIONS", place)

    def begin_upload(
        self,
        environment: str,
        tenant: str,
        *,
        upload_length: int,
        upload_metadata: str,
        tus_resumable: str | None = None,
        idempotency_key: str | None = None,
    ) -> UploadState:
        """Begin an upload; `Location` takes its bytes.

        It becomes a file with its last byte. One for a batch or an import waits for the request that
        names it.
        """
        place = path_of(TENANT + "/uploads", environment, tenant)
        headers = {
            "upload-length": upload_length,
            "upload-metadata": upload_metadata,
            "tus-resumable": tus_resumable,
            "idempotency-key": idempotency_key,
        }
        return cast("UploadState", self._connection.json("POST", place, headers=headers))

    def upload_offset(
        self, environment: str, tenant: str, upload_id: str, *, tus_resumable: str | None = None
    ) -> dict[str, str]:
        """How far an upload has come."""
        place = path_of(TENANT + "/uploads/{upload_id}", environment, tenant, upload_id)
        headers = {"tus-resumable": tus_resumable}
        return self._connection.headers("HEAD", place, headers=headers)

    def continue_upload(
        self,
        environment: str,
        tenant: str,
        upload_id: str,
        content: Content,
        *,
        upload_offset: int,
        tus_resumable: str | None = None,
    ) -> dict[str, str]:
        """Add bytes to an upload; with the last of them the file appears, and `ETag` is its own.

        One for a batch or an import is then complete, and waits.
        """
        place = path_of(TENANT + "/uploads/{upload_id}", environment, tenant, upload_id)
        headers = {"upload-offset": upload_offset, "tus-resumable": tus_resumable}
        return self._connection.headers(
            "PATCH", place, headers=headers, content=content, content_type="application/offset+octet-stream"
        )

    def give_up_upload(
        self, environment: str, tenant: str, upload_id: str, *, tus_resumable: str | None = None
    ) -> dict[str, str]:
        """Give an upload up; its bytes are removed."""
        place = path_of(TENANT + "/uploads/{upload_id}", environment, tenant, upload_id)
        headers = {"tus-resumable": tus_resumable}
        return self._connection.headers("DELETE", place, headers=headers)
