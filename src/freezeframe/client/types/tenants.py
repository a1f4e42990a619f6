"""What the service says and is told of tenants.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

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


class ColumnChanges(TypedDict):
    """Columns by name with Delta's types."""

    added: dict[str, str]
    dropped: dict[str, str]
    retyped: dict[str, list[Any]]


class EnvironmentList(TypedDict):
    """The environments that have tenants."""

    environments: list[str]


class EnvironmentOverview(TypedDict):
    """What somebody should look at in an environment; the first page has the failed jobs."""

    failed_jobs: list[FailedJob]
    tenants: list[TenantWithFindings]
    unreadable: list[UnreadableTenant]
    next_cursor: str | None


class FailedJob(TypedDict):
    """A job that failed, ran too long or died."""

    tenant: str
    job_id: str
    status: JobStatus
    finished: str
    error: str
    error_code: str | None


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


class ProofReport(TypedDict):
    """The report of the last ``freezeframe prove`` on the store."""

    verdict: Literal["kept", "broken"]
    seed: int
    finished: str
    proofs: list[ProofResult]


class ProofResult(TypedDict):
    """What one proof tried, and what it saw that breaks its promise."""

    name: str
    verdict: Literal["kept", "broken"]
    promise: str
    counts: dict[str, int]
    violations: list[str]
    seconds: float


class SchemaDrift(TypedDict):
    """A version that changed the columns of a stream."""

    stream: str
    version: int
    timestamp: str
    columns: ColumnChanges


class StaleTenant(TypedDict):
    """A tenant whose last sync is longer ago than usual: than twice the median gap, and than each gap."""

    last_sync: str
    usual_seconds: float


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


class TenantWithFindings(TenantSummary):
    """A tenant with what somebody should look at; at most 20 of each kind."""

    stale: StaleTenant | None
    unusual: list[UnusualChange]
    drift: list[SchemaDrift]
    unsealed: list[str]


class UnreadableTenant(TypedDict):
    """A tenant whose logs cannot be read."""

    tenant: str
    code: str


class UnusualChange(TypedDict):
    """A version that deleted a quarter of a stream's rows or doubled them, unlike the versions around it."""

    stream: str
    version: int
    timestamp: str
    kind: Literal["deletion", "growth"]
    rows: int
    rows_before: int
