"""Models of streams, their rows and versions."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example

# Streams: their description, rows and changes.


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


# Rows of a stream: in order, compared, restored, imported, and what their columns hold.


class ChangedRow(ResponseModel):
    """A row that differs: `before` is empty for a new one, `after` for a deleted one."""

    fate: Literal["insert", "update", "delete"]
    before: dict[str, Any]
    after: dict[str, Any]
    changed: list[str] = Field(description="Of an update: the columns whose values are not the same.")


class RowDifference(ResponseModel):
    """Some of the rows of a stream that differ, and what became of all of them.

    Pages after the first one tell `changed` of their own rows.
    """

    key: list[str]
    columns: list[str] = Field(description="The key, then the others: most often changed first.")
    changed: dict[str, int] = Field(description="In how many updated rows each column changed.")
    columns_added: dict[str, str] = Field(description="Delta's types by name.")
    columns_dropped: dict[str, str]
    columns_retyped: dict[str, tuple[str, str]] = Field(description="The old type and the new one.")
    counts: Counts
    total: int = Field(description="How many rows differ, or at least.")
    is_total_exact: bool = Field(
        description="False: more rows differ than are counted unasked (`count=true`); `counts` are then 0, "
        "and `changed` is of the rows of this page."
    )
    before: int = Field(description="The tenant's version that is compared with `after`.")
    after: int
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")
    rows: list[ChangedRow]


KeyValue = str | int | float | bool | None


class RowRestorationOrder(RequestModel):
    """Bring single rows of a stream back to what they were at a version of the tenant."""

    model_config = ConfigDict(json_schema_extra=example(version=9, keys=[{"Id": "007"}], dry_run=True))

    version: int = Field(ge=0, le=2**53, description="The tenant's version.")
    keys: list[dict[str, KeyValue]] = Field(
        min_length=1, max_length=5000, description="For each row its key's columns and values."
    )
    columns: list[str] = Field(
        default=[], max_length=1000, description="Only these cells, of rows that were there then and are now."
    )
    dry_run: bool = False
    message: str = Field(default="", max_length=1000)


class RowRestoration(ResponseModel):
    """What a restoration of rows did, or would do: `committed` says which."""

    version: int
    tenant_version: int
    committed: bool
    key: list[str]
    counts: Counts = Field(description="Rows brought back (inserted), changed back and removed.")
    rows: list[ChangedRow] = Field(description="The rows that differ from what they were.")


class RowVersion(ResponseModel):
    """What one version of the tenant did to a row."""

    version: int
    timestamp: datetime
    kind: str = Field(description="What made the version: commit, restore and so on, as in the history.")
    restored: int | None = Field(description="Of a restoration, the version that it brought back.")
    who: str
    job_id: str | None
    message: str
    row: ChangedRow


class RowHistory(ResponseModel):
    """A row and the versions that inserted, updated or deleted it, the newest first."""

    key: dict[str, Any] = Field(description="The key's columns and values.")
    row: dict[str, Any] | None = Field(description="Its values at the newest version looked at.")
    versions: list[RowVersion]
    following: int | None = Field(description="Pass it as `until` for older versions; null: that is all.")
    is_whole: bool = Field(description="False: older versions are not kept, or had another key.")


class ImportColumn(ResponseModel):
    """A column of the file, of the stream, or of both; a type that is null is not there or not decided."""

    name: str
    fate: Literal["known", "new", "other type", "not in the file"]
    file_type: str | None
    stream_type: str | None
    is_key: bool


class ImportProblem(ResponseModel):
    """Why the import would be refused."""

    title: str = Field(validation_alias="problem")
    cause: str
    remedy: str
    code: str


class ImportPreview(ResponseModel):
    """What the import would do to the stream as it is now; nothing was kept."""

    columns: list[ImportColumn]
    key: list[str]
    rows: int = Field(description="Rows of the file, or of the part that was sent.")
    counts: Counts | None = Field(description="Null where rows were not counted.")
    uncounted: str = Field(description="Why rows were not counted; empty where they were.")
    examples: list[ChangedRow] = Field(description="At most ten rows, those whose cells change first.")
    problem: ImportProblem | None


class ColumnStatistics(ResponseModel):
    """One column; its figures are of `rows_read` rows where they are not of all."""

    name: str
    type: str
    rows_read: int = Field(description="0: the column was not read in time; ask for it by name.")
    nulls: int | None
    nulls_of_all: bool = Field(description="Whether `nulls` counts all rows.")
    distinct: int | None = Field(description="Different values in the rows that were read.")
    low: Any
    high: Any
    ends_of_all: bool = Field(description="Whether `low` and `high` are those of all rows.")


class StreamStatistics(ResponseModel):
    """A stream's columns at one version."""

    version: int = Field(description="The version of the tenant that made the stream so.")
    stream_version: int = Field(description="The stream's own version.")
    rows: int
    columns: list[ColumnStatistics]


class SortedRows(ResponseModel):
    """Some rows in order; what JSON has no value for (dates, decimals) is text."""

    model_config = ConfigDict(
        json_schema_extra=example(total=2, columns=["Id", "City"], rows=[{"Id": "1", "City": "Basel"}])
    )

    total: int = Field(description="How many rows meet the conditions.")
    columns: list[str]
    rows: list[dict[str, Any]]


# A tenant's versions: history, differences, restorations, tags, policy.


class TenantVersion(ResponseModel):
    """One version of a tenant: when, by whom and which job, and what it changed."""

    version: int
    timestamp: datetime
    kind: str = Field(description="What made it: commit, restore, policy, external, revoke or erase.")
    restored: int | None = Field(description="Of a restoration, the version that it brought back.")
    who: str
    job_id: str | None
    message: str
    streams: dict[str, Counts]
    streams_dropped: list[str]
    files_written: list[str]
    files_deleted: list[str]
    is_idle: bool = Field(
        description="Whether a job ran and changed nothing; its id must not run again, so it has a version."
    )
    tags: list[str]
    request_id: str


class HistoryPage(ResponseModel):
    """Versions, the newest first."""

    versions: list[TenantVersion]
    next_cursor: str | None


class StreamDifference(ResponseModel):
    """How a stream differs."""

    fate: Literal["added", "changed", "removed"]
    inserted: int
    updated: int
    unchanged: int
    deleted: int


class FileDifference(ResponseModel):
    """How a file differs; `text` is a unified diff, null where there is none to show."""

    fate: Literal["added", "changed", "removed"]
    sealed: bool
    text: str | None = None


class Difference(ResponseModel):
    """What differs between two versions of a tenant."""

    before: int
    after: int
    streams: dict[str, StreamDifference]
    files: dict[str, FileDifference]


class RestorationOrder(RequestModel):
    """Bring everything, or what is named, back to what it was at a version; a dry run only tells."""

    model_config = ConfigDict(json_schema_extra=example(version=9, streams=["Account"], dry_run=True))

    version: int = Field(ge=0, le=2**53)
    streams: list[str] | None = Field(default=None, max_length=1000)
    files: list[str] | None = Field(default=None, max_length=1000)
    dry_run: bool = False
    message: str = Field(default="", max_length=1000)


class RestoredStream(ResponseModel):
    """What restoring does to a stream."""

    fate: Literal["changed", "brought back", "removed"]
    rows_before: int
    rows_after: int
    files_added: int
    files_removed: int


class Restoration(ResponseModel):
    """What a restoration did, or would do: `committed` says which."""

    version: int
    tenant_version: int
    committed: bool
    streams: dict[str, RestoredStream]
    files_written: list[str]
    files_deleted: list[str]


class TagList(ResponseModel):
    """A tenant's tags, and the versions that they keep."""

    model_config = ConfigDict(json_schema_extra=example(tags={"before-migration": 9}))

    tags: dict[str, int]


class NewTag(RequestModel):
    """The version that a tag names; without one the newest."""

    model_config = ConfigDict(json_schema_extra=example(version=9))

    version: int | None = Field(default=None, ge=0, le=2**53)


class Tag(ResponseModel):
    """A tag."""

    name: str
    version: int


class Policy(ResponseModel):
    """How long versions are kept; null is no limit."""

    model_config = ConfigDict(json_schema_extra=example(keep_versions=100, keep_days=30))

    keep_versions: int | None
    keep_days: float | None


class NewPolicy(RequestModel):
    """How long versions are to be kept; with both limits a version is kept if either says so."""

    model_config = ConfigDict(json_schema_extra=example(keep_versions=100, keep_days=30))

    keep_versions: int | None = Field(default=None, ge=1, le=2**53)
    keep_days: float | None = Field(default=None, ge=0, le=365_000)
