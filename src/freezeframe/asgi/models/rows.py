"""Rows of a stream: in order, compared, restored, imported, and what their columns hold."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example
from freezeframe.asgi.models.streams import Counts


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
