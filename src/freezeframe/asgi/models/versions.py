"""A tenant's versions: history, differences, restorations, tags, policy."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example
from freezeframe.asgi.models.streams import Counts


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
