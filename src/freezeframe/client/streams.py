"""The service's operations on streams.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Literal, cast

from freezeframe.client.connection import Connection, Content, path_of
from freezeframe.client.types import (
    Dropped,
    HistoryPage,
    Job,
    Restoration,
    Rows,
    StreamDetail,
    StreamList,
    StreamRestoration,
)


class StreamsOperations:
    """Operations on streams; see ``Client``."""

    _connection: Connection

    def list_streams(self, environment: str, tenant: str, *, tenant_version: int | None = None) -> StreamList:
        """List a tenant's streams, now or at a version of the tenant."""
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams",
            {"environment": environment, "tenant": tenant},
        )
        query = {"tenant_version": tenant_version}
        return cast("StreamList", self._connection.json("GET", place, query=query))

    def show_stream(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> StreamDetail:
        """Show a stream: its version, key, columns and how many rows it has."""
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams/{stream}",
            {"environment": environment, "tenant": tenant, "stream": stream},
        )
        headers = {"if-match": if_match, "if-none-match": if_none_match}
        return cast("StreamDetail", self._connection.json("GET", place, headers=headers))

    def drop_stream(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        message: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> Dropped:
        """Remove a stream in a new version; its past can be read and restored."""
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams/{stream}",
            {"environment": environment, "tenant": tenant, "stream": stream},
        )
        query = {"message": message}
        headers = {"if-match": if_match, "if-none-match": if_none_match}
        return cast("Dropped", self._connection.json("DELETE", place, query=query, headers=headers))

    def list_changes(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
    ) -> Rows:
        """What became of the rows between two versions of the stream.

        `_change_type` is insert, update (with the old row in `_before`) or delete; without `since` from
        its
        beginning, without `until` to now.
        """
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams/{stream}/changes",
            {"environment": environment, "tenant": tenant, "stream": stream},
        )
        query = {"since": since, "until": until, "limit": limit}
        return cast("Rows", self._connection.json("GET", place, query=query))

    def export_stream(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        format_: Literal["csv", "parquet", "jsonl"] | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
        as_of: str | None = None,
    ) -> bytes:
        """Download all rows as a file."""
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams/{stream}/export",
            {"environment": environment, "tenant": tenant, "stream": stream},
        )
        query = {"format": format_, "version": version, "tenant_version": tenant_version, "as_of": as_of}
        return self._connection.content("GET", place, query=query)

    def stream_history(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> HistoryPage:
        """List the tenant's versions that changed the stream, the newest first."""
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams/{stream}/history",
            {"environment": environment, "tenant": tenant, "stream": stream},
        )
        query = {"limit": limit, "cursor": cursor}
        return cast("HistoryPage", self._connection.json("GET", place, query=query))

    def import_stream(
        self,
        environment: str,
        tenant: str,
        stream: str,
        content: Content,
        *,
        key: list[str] | None = None,
        mode: Literal["upsert", "full"] | None = None,
        job_id: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Bring a file's rows into a stream, as a job: CSV, Parquet or JSON Lines by `Content-Type`."""
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams/{stream}/import",
            {"environment": environment, "tenant": tenant, "stream": stream},
        )
        query = {"key": key, "mode": mode, "job_id": job_id, "message": message}
        headers = {"idempotency-key": idempotency_key}
        return cast(
            "Job",
            self._connection.json(
                "POST", place, query=query, headers=headers, content=content, content_type="text/csv"
            ),
        )

    def restore_stream(
        self,
        environment: str,
        tenant: str,
        stream: str,
        body: StreamRestoration,
        *,
        idempotency_key: str | None = None,
    ) -> Restoration:
        """Bring a stream back to what it was at a version of the tenant, as a new version."""
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams/{stream}/restore",
            {"environment": environment, "tenant": tenant, "stream": stream},
        )
        headers = {"idempotency-key": idempotency_key}
        return cast("Restoration", self._connection.json("POST", place, headers=headers, body=body))

    def preview_rows(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        columns: list[str] | None = None,
        where: list[str] | None = None,
        offset: int | None = None,
        limit: int | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
        as_of: str | None = None,
    ) -> Rows:
        """Read some rows, in the order of the key, as JSON or (by `Accept`) as an Arrow IPC stream."""
        place = path_of(
            "/api/v1/environments/{environment}/tenants/{tenant}/streams/{stream}/rows",
            {"environment": environment, "tenant": tenant, "stream": stream},
        )
        query = {
            "columns": columns,
            "where": where,
            "offset": offset,
            "limit": limit,
            "version": version,
            "tenant_version": tenant_version,
            "as_of": as_of,
        }
        return cast("Rows", self._connection.json("GET", place, query=query))
