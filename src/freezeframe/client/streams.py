"""The service's operations on streams.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast

from freezeframe.client.connection import TENANT, Connection, Content, path_of
from freezeframe.client.types import (
    Dropped,
    HistoryPage,
    ImportPreview,
    Job,
    Restoration,
    RowHistory,
    RowRestoration,
    RowRestorationOrder,
    Rows,
    SortedRows,
    StreamDetail,
    StreamList,
    StreamRestoration,
    StreamStatistics,
)


class StreamsOperations:
    """Operations on streams; see ``Client``."""

    _connection: Connection

    def find_rows(
        self, environment: str, *, text: str, tenant: list[str] | None = None, seconds: int | None = None
    ) -> Iterator[str]:
        """Find rows by a value of their key, or by a part of a text of three letters and more, as events.

        `row` tells one that was found: `tenant`, `stream`, its `key`, and the `column` and `value` that
        hold the text. `progress` tells how many tenants and bytes were read, `end` is the last. Rows
        that have the text as a key come first. At most 5 rows of a stream are told, and 100 in all; 1
        GiB of columns is read. `is_whole` is false where there may be more, or tenants (`unreadable`)
        are damaged.
        """
        place = path_of("/api/v1/environments/{environment}/found-rows", environment)
        query = {"text": text, "tenant": tenant, "seconds": seconds}
        return self._connection.lines("GET", place, query=query)

    def list_streams(
        self, environment: str, tenant: str, *, version: int | None = None, tenant_version: int | None = None
    ) -> StreamList:
        """List a tenant's streams, now or at a version of the tenant."""
        place = path_of(TENANT + "/streams", environment, tenant)
        query = {"version": version, "tenant_version": tenant_version}
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
        """Show a stream: its versions, key, columns and how many rows it has."""
        place = path_of(TENANT + "/streams/{stream}", environment, tenant, stream)
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
        place = path_of(TENANT + "/streams/{stream}", environment, tenant, stream)
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
        cursor: str | None = None,
        count: bool | None = None,
    ) -> Rows:
        """What became of the rows between two versions of the tenant, in the order of the key.

        `_change_type` is insert, update (with the old row in `_before`) or delete; without `since` from
        the stream's beginning, without `until` to now, which for all pages is the version that the
        first one was of.
        """
        place = path_of(TENANT + "/streams/{stream}/changes", environment, tenant, stream)
        query = {"since": since, "until": until, "limit": limit, "cursor": cursor, "count": count}
        return cast("Rows", self._connection.json("GET", place, query=query))

    def export_stream(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        format_: Literal["csv", "parquet", "jsonl"] | None = None,
        stream_version: int | None = None,
        as_of: str | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
    ) -> bytes:
        """Download all rows as a file.

        In the order of the key, or if they are many in that of their files.

        It is made while it is sent. Damage that is found on the way breaks the connection off.
        """
        place = path_of(TENANT + "/streams/{stream}/export", environment, tenant, stream)
        query = {
            "format": format_,
            "stream_version": stream_version,
            "as_of": as_of,
            "version": version,
            "tenant_version": tenant_version,
        }
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
        place = path_of(TENANT + "/streams/{stream}/history", environment, tenant, stream)
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
        job_id: str | None = None,
        message: str | None = None,
        mode: Literal["upsert", "full"] | None = None,
        override: bool | None = None,
        replace_where: str | None = None,
        deletes: Literal["remove", "flag"] | None = None,
        max_delete_ratio: float | None = None,
        nulls: Literal["keep", "overwrite"] | None = None,
        null_keys: Literal["error", "match", "drop"] | None = None,
        order_by: list[str] | None = None,
        drop_duplicates: bool | None = None,
        drop_column: list[str] | None = None,
        schema: Literal["evolve", "frozen"] | None = None,
        on_drift: Literal["error", "string"] | None = None,
        history: Literal["scd2", "none"] | None = None,
        idempotency_key: str | None = None,
        content_type: str = "text/csv",
    ) -> Job:
        """Bring a file's rows into a stream.

        As a job: CSV, Parquet, JSON Lines or Arrow by `Content-Type`.

        A JSON body names a finished upload of the purpose `import` instead, of any size; it is then
        gone.
        """
        place = path_of(TENANT + "/streams/{stream}/import", environment, tenant, stream)
        query = {
            "key": key,
            "job_id": job_id,
            "message": message,
            "mode": mode,
            "override": override,
            "replace_where": replace_where,
            "deletes": deletes,
            "max_delete_ratio": max_delete_ratio,
            "nulls": nulls,
            "null_keys": null_keys,
            "order_by": order_by,
            "drop_duplicates": drop_duplicates,
            "drop_column": drop_column,
            "schema": schema,
            "on_drift": on_drift,
            "history": history,
        }
        headers = {"idempotency-key": idempotency_key}
        return cast(
            "Job",
            self._connection.json(
                "POST", place, query=query, headers=headers, content=content, content_type=content_type
            ),
        )

    def preview_import(
        self,
        environment: str,
        tenant: str,
        stream: str,
        content: Content,
        *,
        key: list[str] | None = None,
        beginning: bool | None = None,
        mode: Literal["upsert", "full"] | None = None,
        override: bool | None = None,
        replace_where: str | None = None,
        deletes: Literal["remove", "flag"] | None = None,
        max_delete_ratio: float | None = None,
        nulls: Literal["keep", "overwrite"] | None = None,
        null_keys: Literal["error", "match", "drop"] | None = None,
        order_by: list[str] | None = None,
        drop_duplicates: bool | None = None,
        drop_column: list[str] | None = None,
        schema: Literal["evolve", "frozen"] | None = None,
        on_drift: Literal["error", "string"] | None = None,
        history: Literal["scd2", "none"] | None = None,
        idempotency_key: str | None = None,
        content_type: str = "text/csv",
    ) -> ImportPreview:
        """Tell what importing a file would do: its columns, how many rows are new or change, and examples.

        Nothing is kept. Of a CSV or JSON Lines file of more than 16 MiB send the beginning, with
        `beginning=true`: its columns and types are told, and rows are not counted. It needs the scopes
        `snapshots:write` and `snapshots:read`: counts and examples tell what the stream holds.
        """
        place = path_of(TENANT + "/streams/{stream}/import-preview", environment, tenant, stream)
        query = {
            "key": key,
            "beginning": beginning,
            "mode": mode,
            "override": override,
            "replace_where": replace_where,
            "deletes": deletes,
            "max_delete_ratio": max_delete_ratio,
            "nulls": nulls,
            "null_keys": null_keys,
            "order_by": order_by,
            "drop_duplicates": drop_duplicates,
            "drop_column": drop_column,
            "schema": schema,
            "on_drift": on_drift,
            "history": history,
        }
        headers = {"idempotency-key": idempotency_key}
        return cast(
            "ImportPreview",
            self._connection.json(
                "POST", place, query=query, headers=headers, content=content, content_type=content_type
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
        place = path_of(TENANT + "/streams/{stream}/restore", environment, tenant, stream)
        headers = {"idempotency-key": idempotency_key}
        return cast("Restoration", self._connection.json("POST", place, headers=headers, body=body))

    def restore_rows(
        self,
        environment: str,
        tenant: str,
        stream: str,
        body: RowRestorationOrder,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> RowRestoration:
        """Bring rows back by their keys, as one new version; rows that were not there then are removed.

        With `dry_run` the effect is told and nothing is done. `If-Match` is the tenant's version in
        quotes.
        """
        place = path_of(TENANT + "/streams/{stream}/row-restorations", environment, tenant, stream)
        headers = {"if-match": if_match, "if-none-match": if_none_match, "idempotency-key": idempotency_key}
        return cast("RowRestoration", self._connection.json("POST", place, headers=headers, body=body))

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
        cursor: str | None = None,
        count: bool | None = None,
        stream_version: int | None = None,
        as_of: str | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
    ) -> Rows:
        """Read some rows, in the order of the key, as JSON or (by `Accept`) as an Arrow IPC stream.

        Of a stream of any size little more than the page is read. A cursor goes on in the version that
        the first page was of. Rows without a key are in the order of their files.
        """
        place = path_of(TENANT + "/streams/{stream}/rows", environment, tenant, stream)
        query = {
            "columns": columns,
            "where": where,
            "offset": offset,
            "limit": limit,
            "cursor": cursor,
            "count": count,
            "stream_version": stream_version,
            "as_of": as_of,
            "version": version,
            "tenant_version": tenant_version,
        }
        return cast("Rows", self._connection.json("GET", place, query=query))

    def show_row_history(
        self,
        environment: str,
        tenant: str,
        stream: str,
        key: str,
        *,
        until: int | None = None,
        limit: int | None = None,
    ) -> RowHistory:
        """Show a row and the versions that inserted, updated or deleted it, the newest first.

        `following` is where the next page begins (`until`). `is_whole` is false where older versions
        are not kept any more, or knew the stream by another key; the last page knows.
        """
        place = path_of(TENANT + "/streams/{stream}/rows/{key}/history", environment, tenant, stream, key)
        query = {"until": until, "limit": limit}
        return cast("RowHistory", self._connection.json("GET", place, query=query))

    def list_sorted_rows(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        by: str,
        descending: bool | None = None,
        columns: list[str] | None = None,
        where: list[str] | None = None,
        offset: int | None = None,
        limit: int | None = None,
        stream_version: int | None = None,
        as_of: str | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
    ) -> SortedRows:
        """Read the first rows by a column, down to row 10,000; missing values come last either way.

        A stream that is too large to be sorted at once is refused (413): choose fewer columns, or
        filter.
        """
        place = path_of(TENANT + "/streams/{stream}/sorted-rows", environment, tenant, stream)
        query = {
            "by": by,
            "descending": descending,
            "columns": columns,
            "where": where,
            "offset": offset,
            "limit": limit,
            "stream_version": stream_version,
            "as_of": as_of,
            "version": version,
            "tenant_version": tenant_version,
        }
        return cast("SortedRows", self._connection.json("GET", place, query=query))

    def show_statistics(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        columns: list[str] | None = None,
        read: bool | None = None,
        stream_version: int | None = None,
        as_of: str | None = None,
        version: int | None = None,
        tenant_version: int | None = None,
    ) -> StreamStatistics:
        """Show what the columns hold: nulls, distinct values, smallest and greatest, and their shape.

        Of a stream of more than a million rows the first million are read; `rows_read` says so. Columns
        that were not read within some seconds have `rows_read` 0: ask for them by name.
        """
        place = path_of(TENANT + "/streams/{stream}/statistics", environment, tenant, stream)
        query = {
            "columns": columns,
            "read": read,
            "stream_version": stream_version,
            "as_of": as_of,
            "version": version,
            "tenant_version": tenant_version,
        }
        return cast("StreamStatistics", self._connection.json("GET", place, query=query))
