"""Streams: their description, rows and changes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example


class Column(ResponseModel):
    """A column of a stream."""

    name: str
    type: str = Field(description="Delta's name of the type.", examples=["string", "decimal(10,2)"])
    is_undecided: bool = Field(description="Whether no value has decided the type yet.")


class StreamDetail(ResponseModel):
    """A stream now."""

    model_config = ConfigDict(
        json_schema_extra=example(
            stream="Account",
            version=12,
            stream_version=4,
            key=["Id"],
            rows=120,
            columns=[{"name": "Id", "type": "string", "is_undecided": False}],
        )
    )

    stream: str
    version: int = Field(description="The version of the tenant that made the stream so.")
    stream_version: int = Field(description="The stream's own version, which its `ETag` holds.")
    key: list[str]
    rows: int
    columns: list[Column]


class StreamList(ResponseModel):
    """A tenant's streams at one version of it."""

    model_config = ConfigDict(json_schema_extra=example(version=12, streams=["Account", "Invoice"]))

    version: int
    streams: list[str]


class Rows(ResponseModel):
    """Some rows of a stream; what JSON has no value for (dates, decimals) is text."""

    model_config = ConfigDict(
        json_schema_extra=example(
            total=2,
            is_total_exact=True,
            version=12,
            stream_version=4,
            next_cursor=None,
            columns=["Id", "City"],
            rows=[{"Id": "007", "City": "Bern"}],
        )
    )

    total: int = Field(description="How many rows there are without the limit, or at least.")
    is_total_exact: bool = Field(description="False: there are at least `total` rows; `count=true` counts.")
    version: int = Field(description="The version of the tenant that made the rows.")
    stream_version: int = Field(description="The stream's own version that the rows are of.")
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")
    columns: list[str]
    rows: list[dict[str, Any]]


class Counts(ResponseModel):
    """What became of rows."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0


class Receipt(ResponseModel):
    """What an update did."""

    stream: str
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    tenant_version: int = Field(description="The tenant's version after the update.")
    stream_version: int
    committed: bool
    columns_added: list[str]
    columns_dropped: list[str]
    null_keys_dropped: int
    bytes_written: int
    seconds: float
    engine: str = Field(
        default="",
        description="Who searched or merged the stored rows: `spark`, `process`, or empty for neither.",
    )
    columns_missing: list[str] = Field(default=[], description="Stored columns that the rows did not have.")


class Dropped(ResponseModel):
    """A stream or file that was removed; its past can be read and restored."""

    tenant_version: int


class StreamRestoration(RequestModel):
    """Bring a stream back to what it was at a version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(version=9, dry_run=True))

    version: int = Field(ge=0, le=2**53, description="The tenant's version.")
    dry_run: bool = False
    message: str = Field(default="", max_length=1000)


class ImportSource(RequestModel):
    """Rows that lie in a staged blob, and of what kind they are."""

    model_config = ConfigDict(
        json_schema_extra=example(blob="0123456789abcdef0123456789abcdef", kind="parquet")
    )

    blob: str = Field(min_length=1, max_length=64)
    kind: Literal["csv", "parquet", "jsonl", "arrow"]
