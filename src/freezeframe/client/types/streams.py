"""What the service says and is told of streams.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from freezeframe.client.types.versions import ChangedRow, Counts


class Bar(TypedDict):
    """How many values lie from ``low`` to ``high``; of a single value both are that value."""

    low: Any
    high: Any
    count: int


class Column(TypedDict):
    """A column of a stream."""

    name: str
    type: str
    is_undecided: bool


class ColumnStatistics(TypedDict):
    """One column; its figures are of ``rows_read`` rows where they are not of all."""

    name: str
    type: str
    rows_read: int
    nulls: int | None
    nulls_of_all: bool
    distinct: int | None
    low: Any
    high: Any
    ends_of_all: bool
    bars: list[Bar]


class ImportColumn(TypedDict):
    """A column of the file, of the stream, or of both."""

    name: str
    fate: Literal["known", "new", "other type", "not in the file"]
    file_type: str | None
    stream_type: str | None
    is_key: bool


class ImportPreview(TypedDict):
    """What the import would do to the stream as it is now; nothing was kept."""

    columns: list[ImportColumn]
    key: list[str]
    rows: int
    counts: Counts | None
    uncounted: str
    examples: list[ChangedRow]
    problem: ImportProblem | None


class ImportProblem(TypedDict):
    """Why the import would be refused."""

    title: str
    cause: str
    remedy: str
    code: str


class RowHistory(TypedDict):
    """A row and the versions that inserted, updated or deleted it, the newest first."""

    key: dict[str, Any]
    row: dict[str, Any] | None
    versions: list[RowVersion]
    following: int | None
    is_whole: bool


class RowRestoration(TypedDict):
    """What a restoration of rows did, or would do: ``committed`` says which."""

    version: int
    tenant_version: int
    committed: bool
    key: list[str]
    counts: Counts
    rows: list[ChangedRow]


class RowRestorationOrder(TypedDict):
    """Bring single rows of a stream back to what they were at a version of the tenant."""

    version: int
    keys: list[dict[str, str | int | float | bool | None]]
    columns: NotRequired[list[str]]
    dry_run: NotRequired[bool]
    message: NotRequired[str]


class RowVersion(TypedDict):
    """What one version of the tenant did to a row."""

    version: int
    timestamp: str
    kind: str
    restored: int | None
    who: str
    job_id: str | None
    message: str
    row: ChangedRow


class Rows(TypedDict):
    """Some rows of a stream; what JSON has no value for (dates, decimals) is text."""

    total: int
    is_total_exact: bool
    version: int
    stream_version: int
    next_cursor: str | None
    columns: list[str]
    rows: list[dict[str, Any]]


class SortedRows(TypedDict):
    """Some rows in order; what JSON has no value for (dates, decimals) is text."""

    total: int
    columns: list[str]
    rows: list[dict[str, Any]]


class StreamDetail(TypedDict):
    """A stream now."""

    stream: str
    version: int
    stream_version: int
    key: list[str]
    rows: int
    columns: list[Column]


class StreamList(TypedDict):
    """A tenant's streams at one version of it."""

    version: int
    streams: list[str]


class StreamRestoration(TypedDict):
    """Bring a stream back to what it was at a version of the tenant."""

    version: int
    dry_run: NotRequired[bool]
    message: NotRequired[str]


class StreamStatistics(TypedDict):
    """A stream's columns at one version."""

    version: int
    stream_version: int
    rows: int
    columns: list[ColumnStatistics]
