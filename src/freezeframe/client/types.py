"""What the service says and is told, as typed dictionaries.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AuditEntry(TypedDict):
    """One thing that was done; ``hash`` is of all the rest, with the hash of the entry before."""

    number: int
    moment: str
    principal: str
    action: str
    subject: str
    request_id: str
    details: dict[str, Any]
    previous_hash: str
    hash: str


class AuditPage(TypedDict):
    """Entries, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditProof(TypedDict):
    """Whether the chain is whole."""

    is_whole: bool
    broken_at: int | None


class Bar(TypedDict):
    """How many values lie from ``low`` to ``high``; of a single value both are that value."""

    low: Any
    high: Any
    count: int


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


class ChangedRow(TypedDict):
    """A row that differs: ``before`` is empty for a new one, ``after`` for a deleted one."""

    fate: Literal["insert", "update", "delete"]
    before: dict[str, Any]
    after: dict[str, Any]
    changed: list[str]


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


class Dropped(TypedDict):
    """A stream or file that was removed; its past can be read and restored."""

    tenant_version: int


class EnvironmentList(TypedDict):
    """The environments that have tenants."""

    environments: list[str]


class File(TypedDict):
    """A file; size and SHA-256 are of what is stored, which for a sealed file is its ciphertext."""

    path: str
    size: int
    modified: str
    sha256: str
    sealed: bool
    version: int


class FileDeletion(TypedDict):
    """Files, and folders with all below them, that are to go in one version of the tenant."""

    paths: NotRequired[list[str]]
    folders: NotRequired[list[str]]
    message: NotRequired[str]


class FileDifference(TypedDict):
    """How a file differs; ``text`` is a unified diff, null where there is none to show."""

    fate: Literal["added", "changed", "removed"]
    sealed: bool
    text: NotRequired[str | None]


class FileDone(TypedDict):
    """A file that was written or removed."""

    file: str


class FileHistory(TypedDict):
    """A file's versions, the newest first."""

    path: str
    revisions: list[FileRevision]


class FileMove(TypedDict):
    """A file that is to get another path."""

    path: str
    target: str
    message: NotRequired[str]


class FilePage(TypedDict):
    """What a folder holds, at one version of the tenant; the folders come with the first page."""

    version: int
    folder: str
    folders: list[str]
    files: list[File]
    next_cursor: str | None


class FileReturn(TypedDict):
    """A file that is to be brought back as it was at a version of the tenant."""

    path: str
    version: int
    message: NotRequired[str]


class FileRevision(TypedDict):
    """One version of a file."""

    version: int
    modified: str
    deleted: bool
    size: int
    sha256: str
    sealed: bool
    job_id: str | None
    author: str
    message: str


class FilesDeleted(TypedDict):
    """The version without them, and every path that went."""

    tenant_version: int
    paths: list[str]


class Folder(TypedDict):
    """A folder."""

    path: str


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


class Health(TypedDict):
    """The service answers."""

    status: NotRequired[Literal["ok"]]


class HistoryPage(TypedDict):
    """Versions, the newest first."""

    versions: list[TenantVersion]
    next_cursor: str | None


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


class Job(TypedDict):
    """A job at this moment."""

    job_id: str
    environment: str
    tenant: str
    status: Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "dead"]
    schedule: str | None
    priority: int
    attempts: int
    attempts_max: int
    cancel_requested: bool
    worker: str | None
    created: str
    run_at: str | None
    started: str | None
    finished: str | None
    outcome: dict[str, Any] | None


class JobPage(TypedDict):
    """Jobs, the newest first."""

    jobs: list[Job]
    next_cursor: str | None


class Key(TypedDict):
    """A key without its secret."""

    id: str
    name: str
    scopes: list[
        Literal[
            "tenants:read",
            "snapshots:read",
            "snapshots:write",
            "snapshots:delete",
            "jobs:read",
            "jobs:run",
            "admin",
        ]
    ]
    environments: list[str] | None
    tenants: list[str] | None
    created: str
    created_by: str
    expires: str | None
    revoked: str | None
    last_used: str | None


class KeyPage(TypedDict):
    """Keys by id."""

    keys: list[Key]
    next_cursor: str | None


class KeySignIn(TypedDict):
    """A key that its owner looks at the console with."""

    key: str


class KeyWithSecret(TypedDict):
    """A key with what a client sends, ``id.secret``; it is told this once."""

    id: str
    name: str
    scopes: list[
        Literal[
            "tenants:read",
            "snapshots:read",
            "snapshots:write",
            "snapshots:delete",
            "jobs:read",
            "jobs:run",
            "admin",
        ]
    ]
    environments: list[str] | None
    tenants: list[str] | None
    created: str
    created_by: str
    expires: str | None
    revoked: str | None
    last_used: str | None
    key: str


class LastChange(TypedDict):
    """A stream's last change, and the version of the tenant that it made."""

    version: int
    timestamp: str
    job_id: str | None
    counts: Counts


class LastJob(TypedDict):
    """The job of a tenant that was submitted last."""

    job_id: str
    status: Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "dead"]
    created: str
    finished: str | None


class NewFolder(TypedDict):
    """A folder that is to be made."""

    path: str


class NewJob(TypedDict):
    """A script that is to be run for the tenant."""

    script: str
    job_id: NotRequired[str | None]
    flow: NotRequired[str]
    parameters: NotRequired[dict[str, str | int | float | bool | None]]
    timeout_seconds: NotRequired[float | None]
    attempts_max: NotRequired[int]
    message: NotRequired[str]


class NewKey(TypedDict):
    """A key that is to be made."""

    name: NotRequired[str]
    scopes: NotRequired[
        list[
            Literal[
                "tenants:read",
                "snapshots:read",
                "snapshots:write",
                "snapshots:delete",
                "jobs:read",
                "jobs:run",
                "admin",
            ]
        ]
    ]
    environments: NotRequired[list[str] | None]
    tenants: NotRequired[list[str] | None]
    days: NotRequired[float | None]


class NewPolicy(TypedDict):
    """How long versions are to be kept; with both limits a version is kept if either says so."""

    keep_versions: NotRequired[int | None]
    keep_days: NotRequired[float | None]


class NewTag(TypedDict):
    """The version that a tag names; without one the newest."""

    version: NotRequired[int | None]


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


class Policy(TypedDict):
    """How long versions are kept; null is no limit."""

    keep_versions: int | None
    keep_days: float | None


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


class Restoration(TypedDict):
    """What a restoration did, or would do: ``committed`` says which."""

    version: int
    tenant_version: int
    committed: bool
    streams: dict[str, RestoredStream]
    files_written: list[str]
    files_deleted: list[str]


class RestorationOrder(TypedDict):
    """Bring everything, or what is named, back to what it was at a version; a dry run only tells."""

    version: int
    streams: NotRequired[list[str] | None]
    files: NotRequired[list[str] | None]
    dry_run: NotRequired[bool]
    message: NotRequired[str]


class RestoredStream(TypedDict):
    """What restoring does to a stream."""

    fate: Literal["changed", "brought back", "removed"]
    rows_before: int
    rows_after: int
    files_added: int
    files_removed: int


class Rotation(TypedDict):
    """How long the secret from before stays good."""

    overlap_hours: NotRequired[float]


class RowDifference(TypedDict):
    """Some of the rows of a stream that differ, and what became of all of them."""

    key: list[str]
    columns: list[str]
    changed: dict[str, int]
    columns_added: dict[str, str]
    columns_dropped: dict[str, str]
    counts: Counts
    total: int
    is_total_exact: bool
    before: int
    after: int
    next_cursor: str | None
    rows: list[ChangedRow]


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
    dry_run: NotRequired[bool]
    message: NotRequired[str]


class Rows(TypedDict):
    """Some rows of a stream; what JSON has no value for (dates, decimals) is text."""

    total: int
    is_total_exact: bool
    version: int
    next_cursor: str | None
    columns: list[str]
    rows: list[dict[str, Any]]


class SignIn(TypedDict):
    """A person's name and password."""

    name: str
    password: str


class SignInWays(TypedDict):
    """How people sign in: by name and password always, and with accounts of ``provider`` if there is one."""

    provider: str | None


class SortedRows(TypedDict):
    """Some rows in order; what JSON has no value for (dates, decimals) is text."""

    total: int
    columns: list[str]
    rows: list[dict[str, Any]]


class StreamDetail(TypedDict):
    """A stream now."""

    stream: str
    version: int
    key: list[str]
    rows: int
    columns: list[Column]


class StreamDifference(TypedDict):
    """How a stream differs."""

    fate: Literal["added", "changed", "removed"]
    inserted: int
    updated: int
    unchanged: int
    deleted: int


class StreamList(TypedDict):
    """A tenant's streams at one version of it."""

    version: int
    streams: list[str]


class StreamOverview(TypedDict):
    """A stream at one version of the tenant."""

    stream: str
    version: int
    key: list[str]
    rows: int
    size_bytes: int
    last: LastChange | None


class StreamRestoration(TypedDict):
    """Bring a stream back to what it was at a version of the tenant."""

    version: int
    dry_run: NotRequired[bool]
    message: NotRequired[str]


class StreamStatistics(TypedDict):
    """A stream's columns at one version of it."""

    version: int
    rows: int
    columns: list[ColumnStatistics]


class Tag(TypedDict):
    """A tag."""

    name: str
    version: int


class TagList(TypedDict):
    """A tenant's tags, and the versions that they keep."""

    tags: dict[str, int]


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


class TenantVersion(TypedDict):
    """One version of a tenant: when, by whom and which job, and what it changed."""

    version: int
    timestamp: str
    kind: str
    who: str
    job_id: str | None
    message: str
    streams: dict[str, Counts]
    streams_dropped: list[str]
    files_written: list[str]
    files_deleted: list[str]
    tags: list[str]
    request_id: str


class UploadState(TypedDict):
    """A resumable upload: what it becomes, and how far it has come."""

    id: str
    purpose: Literal["file", "import"]
    path: str
    length: int
    offset: int
    expires: str


class Who(TypedDict):
    """Who asks, and what they may do."""

    kind: Literal["key", "person"]
    id: str
    name: str
    scopes: list[
        Literal[
            "tenants:read",
            "snapshots:read",
            "snapshots:write",
            "snapshots:delete",
            "jobs:read",
            "jobs:run",
            "admin",
        ]
    ]
    environments: list[str] | None
    tenants: list[str] | None
