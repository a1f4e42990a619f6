"""What the service says and is told of versions.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class ChangedRow(TypedDict):
    """A row that differs: ``before`` is empty for a new one, ``after`` for a deleted one."""

    fate: Literal["insert", "update", "delete"]
    before: dict[str, Any]
    after: dict[str, Any]
    changed: list[str]


class Counts(TypedDict):
    """What became of rows."""

    inserted: NotRequired[int]
    updated: NotRequired[int]
    unchanged: NotRequired[int]
    deleted: NotRequired[int]


class Difference(TypedDict):
    """What differs between two versions of a tenant."""

    before: int
    after: int
    streams: dict[str, StreamDifference]
    files: dict[str, FileDifference]


class FileDifference(TypedDict):
    """How a file differs; ``text`` is a unified diff, null where there is none to show."""

    fate: Literal["added", "changed", "removed"]
    sealed: bool
    text: NotRequired[str | None]


class Growth(TypedDict):
    """The newest versions that are kept, the oldest first."""

    points: list[GrowthPoint]


class GrowthPoint(TypedDict):
    """A version of the tenant, and what it held."""

    version: int
    timestamp: str
    rows: int
    stream_bytes: int
    file_bytes: int


class HistoryPage(TypedDict):
    """Versions, the newest first."""

    versions: list[TenantVersion]
    next_cursor: str | None


class NewPolicy(TypedDict):
    """How long versions are to be kept; with both limits a version is kept if either says so."""

    keep_versions: NotRequired[int | None]
    keep_days: NotRequired[float | None]


class NewTag(TypedDict):
    """The version that a tag names; without one the newest."""

    version: NotRequired[int | None]


class Policy(TypedDict):
    """How long versions are kept; null is no limit."""

    keep_versions: int | None
    keep_days: float | None


class RestorationOrder(TypedDict):
    """Bring everything, or what is named, back to what it was at a version; a dry run only tells."""

    version: int
    streams: NotRequired[list[str] | None]
    files: NotRequired[list[str] | None]
    dry_run: NotRequired[bool]
    message: NotRequired[str]


class RowDifference(TypedDict):
    """Some of the rows of a stream that differ, and what became of all of them."""

    key: list[str]
    columns: list[str]
    changed: dict[str, int]
    columns_added: dict[str, str]
    columns_dropped: dict[str, str]
    columns_retyped: dict[str, list[Any]]
    counts: Counts
    total: int
    is_total_exact: bool
    before: int
    after: int
    next_cursor: str | None
    rows: list[ChangedRow]


class StreamDifference(TypedDict):
    """How a stream differs."""

    fate: Literal["added", "changed", "removed"]
    inserted: int
    updated: int
    unchanged: int
    deleted: int


class Tag(TypedDict):
    """A tag."""

    name: str
    version: int


class TagList(TypedDict):
    """A tenant's tags, and the versions that they keep."""

    tags: dict[str, int]


class TenantVersion(TypedDict):
    """One version of a tenant: when, by whom and which job, and what it changed."""

    version: int
    timestamp: str
    kind: str
    restored: int | None
    who: str
    job_id: str | None
    message: str
    streams: dict[str, Counts]
    streams_dropped: list[str]
    files_written: list[str]
    files_deleted: list[str]
    tags: list[str]
    request_id: str
