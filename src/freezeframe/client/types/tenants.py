"""What the service says and is told of tenants.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from freezeframe.client.types.versions import Counts, TenantVersion


JobStatus = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "dead"]


class Certificate(TypedDict):
    """What was removed with a tenant, and that nothing is left of it."""

    environment: str
    tenant: str
    requested: str
    finished: str
    versions: int
    streams: int
    files: int
    objects: int
    size_bytes: int
    keys: int
    listing_sha256: str
    files_left: int


class EnvironmentList(TypedDict):
    """The environments that have tenants."""

    environments: list[str]


class LastChange(TypedDict):
    """A stream's last change, and the version of the tenant that it made."""

    version: int
    timestamp: str
    job_id: str | None
    counts: Counts


class LastJob(TypedDict):
    """The job of a tenant that was submitted last."""

    job_id: str
    status: JobStatus
    created: str
    finished: str | None


class NewTenant(TypedDict):
    """A tenant that is to be made."""

    tenant: str


class Overview(TypedDict):
    """A tenant at one version of it, from logs alone."""

    environment: str
    tenant: str
    version: int
    timestamp: str | None
    streams: list[StreamOverview]
    files: int
    file_bytes: int
    last: TenantVersion | None
    days: list[int]


class Problem(TypedDict):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    cause: str
    remedy: str
    request_id: str
    errors: NotRequired[list[dict[str, Any]] | None]


class StreamOverview(TypedDict):
    """A stream at one version of the tenant."""

    stream: str
    stream_version: int
    key: list[str]
    rows: int
    size_bytes: int
    last: LastChange | None


class TenantDetail(TypedDict):
    """A tenant now."""

    environment: str
    tenant: str
    version: int
    streams: list[str]
    files: int
    size_bytes: int


class TenantPage(TypedDict):
    """A page of tenants' ids, in order."""

    tenants: list[str]
    next_cursor: str | None


class TenantSummaries(TypedDict):
    """The tenants that were asked for and are there, in the order in which they were asked for."""

    tenants: list[TenantSummary]


class TenantSummary(TypedDict):
    """What a list of tenants shows of one."""

    tenant: str
    version: int
    streams: int
    rows: int
    size_bytes: int
    changed: str | None
    last_job: LastJob | None
    days: list[int]
