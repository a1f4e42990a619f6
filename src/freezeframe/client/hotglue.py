"""The service's operations on hotglue.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Any, cast

from freezeframe.client.connection import Connection, Content, path_of
from freezeframe.client.types import (
    FileDone,
)


class HotglueOperations:
    """Operations on hotglue; see ``Client``."""

    _connection: Connection

    def hotglue_config(self, env_id: str, tenant: str) -> dict[str, Any]:
        """The tenant's configuration: its file `tenant-config.json`."""
        place = path_of("/tenant/{env_id}/{tenant}/config", env_id, tenant)
        return cast("dict[str, Any]", self._connection.json("GET", place))

    def hotglue_set_config(self, env_id: str, tenant: str, body: dict[str, Any]) -> dict[str, Any]:
        """Replace the tenant's configuration, all of it."""
        place = path_of("/tenant/{env_id}/{tenant}/config", env_id, tenant)
        return cast("dict[str, Any]", self._connection.json("PUT", place, body=body))

    def hotglue_patch_config(self, env_id: str, tenant: str, body: dict[str, Any]) -> dict[str, Any]:
        """Change the tenant's configuration by a merge patch (RFC 7396)."""
        place = path_of("/tenant/{env_id}/{tenant}/config", env_id, tenant)
        return cast("dict[str, Any]", self._connection.json("PATCH", place, body=body))

    def hotglue_mapping(self, env_id: str, tenant: str) -> dict[str, Any]:
        """The field mappings of all of the tenant's flows."""
        place = path_of("/tenant/{env_id}/{tenant}/mapping", env_id, tenant)
        return cast("dict[str, Any]", self._connection.json("GET", place))

    def hotglue_set_mapping(self, env_id: str, tenant: str, body: dict[str, Any]) -> dict[str, Any]:
        """Replace the field mapping of one flow: `{"config": {"mapping": {…}}, "flow": FLOW, …}`."""
        place = path_of("/tenant/{env_id}/{tenant}/mapping", env_id, tenant)
        return cast("dict[str, Any]", self._connection.json("PUT", place, body=body))

    def hotglue_metadata(self, env_id: str, tenant: str) -> dict[str, Any]:
        """The tenant's metadata."""
        place = path_of("/tenant/{env_id}/{tenant}/metadata", env_id, tenant)
        return cast("dict[str, Any]", self._connection.json("GET", place))

    def hotglue_set_metadata(self, env_id: str, tenant: str, body: dict[str, Any]) -> dict[str, Any]:
        """Replace the tenant's metadata, all of it."""
        place = path_of("/tenant/{env_id}/{tenant}/metadata", env_id, tenant)
        return cast("dict[str, Any]", self._connection.json("PUT", place, body=body))

    def hotglue_snapshots(
        self, env_id: str, tenant: str, *, file: str | None = None, folder: str | None = None
    ) -> list[str] | dict[str, Any]:
        """List the names of a tenant's snapshot files, or give one of them as base64.

        A stream appears as `{stream}.snapshot.csv`.
        """
        place = path_of("/tenant/{env_id}/{tenant}/snapshots", env_id, tenant)
        query = {"file": file, "folder": folder}
        return cast("list[str] | dict[str, Any]", self._connection.json("GET", place, query=query))

    def hotglue_write(
        self,
        env_id: str,
        tenant: str,
        content: Content,
        *,
        file: str | None = None,
        content_type: str = "application/octet-stream",
    ) -> FileDone:
        """Upload a snapshot file.

        One named `{stream}.snapshot.csv` or `.parquet` replaces the stream's rows.

        The tenant is made if it is not there.
        """
        place = path_of("/tenant/{env_id}/{tenant}/snapshots", env_id, tenant)
        query = {"file": file}
        return cast(
            "FileDone",
            self._connection.json("PUT", place, query=query, content=content, content_type=content_type),
        )

    def hotglue_delete(self, env_id: str, tenant: str, *, file: str) -> FileDone:
        """Remove a snapshot file, or the stream that its name means."""
        place = path_of("/tenant/{env_id}/{tenant}/snapshots", env_id, tenant)
        query = {"file": file}
        return cast("FileDone", self._connection.json("DELETE", place, query=query))

    def hotglue_tenants(self, env_id: str) -> list[str]:
        """List the ids of all tenants of an environment."""
        place = path_of("/tenants/{env_id}", env_id)
        return cast("list[str]", self._connection.json("GET", place))
