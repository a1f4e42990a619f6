"""Models of tenants and the overview."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from freezeframe.asgi.models.base import RequestModel, ResponseModel, example
from freezeframe.asgi.models.streams import Counts, TenantVersion
from freezeframe.control.job import JobStatus

# Environments and tenants.


class EnvironmentList(ResponseModel):
    """The environments that have tenants."""

    model_config = ConfigDict(json_schema_extra=example(environments=["default", "staging"]))

    environments: list[str]


class TenantPage(ResponseModel):
    """A page of tenants' ids, in order."""

    model_config = ConfigDict(json_schema_extra=example(tenants=["acme", "globex"], next_cursor=None))

    tenants: list[str]
    next_cursor: str | None = Field(description="Where the next page begins; null: there is none.")


class NewTenant(RequestModel):
    """A tenant that is to be made."""

    model_config = ConfigDict(json_schema_extra=example(tenant="acme"))

    tenant: str = Field(min_length=1, max_length=200, description="The tenant's id, as its owner writes it.")


class TenantDetail(ResponseModel):
    """A tenant now."""

    model_config = ConfigDict(
        json_schema_extra=example(
            environment="default", tenant="acme", version=12, streams=["Account"], files=3, size_bytes=4711
        )
    )

    environment: str
    tenant: str
    version: int = Field(description="The newest tenant version; -1 before the first change.")
    streams: list[str]
    files: int
    size_bytes: int = Field(description="Bytes of the files, as they are stored.")


class Deletion(ResponseModel):
    """What was removed with a tenant; nothing is left of it."""

    environment: str
    tenant: str
    versions: int
    streams: int
    files: int
    objects: int
    size_bytes: int
    keys: int


# A tenant at a glance.


class ProofResult(ResponseModel):
    """What one proof tried, and what it saw that breaks its promise."""

    name: str
    verdict: Literal["kept", "broken"]
    promise: str
    counts: dict[str, int]
    violations: list[str]
    seconds: float


class ProofReport(ResponseModel):
    """The report of the last `freezeframe prove` on the store."""

    verdict: Literal["kept", "broken"]
    seed: int
    finished: datetime
    proofs: list[ProofResult]


class LastChange(ResponseModel):
    """A stream's last change, and the version of the tenant that it made."""

    version: int
    timestamp: datetime
    job_id: str | None
    counts: Counts


class StreamOverview(ResponseModel):
    """A stream at one version of the tenant."""

    stream: str
    stream_version: int = Field(description="The stream's own version.")
    key: list[str]
    rows: int
    size_bytes: int
    last: LastChange | None = Field(description="Null: further back than is looked.")


class Overview(ResponseModel):
    """A tenant at one version of it, from logs alone."""

    model_config = ConfigDict(
        json_schema_extra=example(
            environment="default",
            tenant="acme",
            version=12,
            timestamp="2026-11-20T14:05:00Z",
            streams=[],
            files=3,
            file_bytes=4711,
            last=None,
            days=[0, 0, 15],
        )
    )

    environment: str
    tenant: str
    version: int = Field(description="-1 before the first change.")
    timestamp: datetime | None
    streams: list[StreamOverview]
    files: int
    file_bytes: int
    last: TenantVersion | None
    days: list[int] = Field(description="Rows changed on each of the last days (UTC), today's last.")


class LastJob(ResponseModel):
    """The job of a tenant that was submitted last."""

    job_id: str
    status: JobStatus
    created: datetime
    finished: datetime | None


class TenantSummary(ResponseModel):
    """What a list of tenants shows of one."""

    model_config = ConfigDict(
        json_schema_extra=example(
            tenant="acme",
            version=12,
            streams=2,
            rows=4711,
            size_bytes=80_000,
            changed="2026-11-20T14:05:00Z",
            last_job=None,
            days=[0, 0, 15],
        )
    )

    tenant: str
    version: int = Field(description="-1 before the first change.")
    streams: int
    rows: int
    size_bytes: int = Field(description="Of streams and files.")
    changed: datetime | None = Field(description="When the newest version was made.")
    last_job: LastJob | None = Field(description="Null: none, or the caller may not read jobs.")
    days: list[int] = Field(description="Rows changed on each of the last days (UTC), today's last.")


class TenantSummaries(ResponseModel):
    """The tenants that were asked for and are there, in the order in which they were asked for."""

    tenants: list[TenantSummary]


class StaleTenant(ResponseModel):
    """A tenant whose last sync is longer ago than usual: than twice the median gap, and than each gap."""

    last_sync: datetime
    usual_seconds: float = Field(description="The median time between two syncs.")


class UnusualChange(ResponseModel):
    """A version that deleted a quarter of a stream's rows or doubled them, unlike the versions around it."""

    stream: str
    version: int
    timestamp: datetime
    kind: Literal["deletion", "growth"]
    rows: int = Field(description="Deleted or inserted.")
    rows_before: int


class ColumnChanges(ResponseModel):
    """Columns by name with Delta's types."""

    added: dict[str, str]
    dropped: dict[str, str]
    retyped: dict[str, tuple[str, str]] = Field(description="The old type and the new one.")


class SchemaDrift(ResponseModel):
    """A version that changed the columns of a stream."""

    stream: str
    version: int
    timestamp: datetime
    columns: ColumnChanges


class TenantWithFindings(TenantSummary):
    """A tenant with what somebody should look at; at most 20 of each kind."""

    stale: StaleTenant | None
    unusual: list[UnusualChange]
    drift: list[SchemaDrift]
    unsealed: list[str] = Field(description="Configurations that lie in the store as they are.")


class FailedJob(ResponseModel):
    """A job that failed, ran too long or died."""

    tenant: str
    job_id: str
    status: JobStatus
    finished: datetime
    error: str = Field(description="Its first line.")
    error_code: str | None


class UnreadableTenant(ResponseModel):
    """A tenant whose logs cannot be read."""

    tenant: str
    code: str


class EnvironmentOverview(ResponseModel):
    """What somebody should look at in an environment; the first page has the failed jobs."""

    failed_jobs: list[FailedJob]
    tenants: list[TenantWithFindings]
    unreadable: list[UnreadableTenant]
    next_cursor: str | None
