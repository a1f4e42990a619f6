"""Operations on what a tenant holds: an overview, restorations, rows that differ, and dry runs."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from freezeframe.control.groups import find_group, jobs_of_group
from freezeframe.control.job import FAILURES, JobStatus
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import EnvironmentName, FilePath, TenantId
from freezeframe.service.group_effects import DryRunChanges, GroupEffects, dry_run_changes, group_effects
from freezeframe.service.operations.jobs import GroupId, JobId, visible_tenants
from freezeframe.service.operations.operation import (
    VERSION_MAX,
    Cursor,
    Limit,
    NamedStream,
    SeenVersion,
    about,
    example,
    operation,
)
from freezeframe.service.operations.tenants import TenantVersion
from freezeframe.service.overview import StreamOverview
from freezeframe.service.rows.differences import (
    KEYS_MAX,
    DifferenceCursor,
    DifferenceRequest,
    RowChange,
    RowDifference,
    RowHistory,
    RowOrigin,
    RowRestoration,
    change_cells,
    restored_rows,
    row_difference,
    row_history,
    row_origin,
    select_rows,
)
from freezeframe.service.rows.erasures import RowErasure, erase, erased_keys, erasure_preview
from freezeframe.service.rows.reversions import Reversion, reverted_keys
from freezeframe.store.maintenance.restore import Restoration
from freezeframe.store.model.update_options import Author

if TYPE_CHECKING:
    from freezeframe.service.operations.caller import Caller, TenantCaller
    from freezeframe.store import Tenant

of_streams = partial(operation, tag="streams")

KeyValue = str | int | float | bool | None
Restored = Annotated[int, about(ge=0, le=VERSION_MAX)]
RestoredVersion = Annotated[int, about("The tenant's version.", ge=0, le=VERSION_MAX)]
Names = Annotated[list[str] | None, about(max_length=1000)]
RowKey = Annotated[
    str,
    about(
        "The key's value as text; of several columns, or where the text begins with `[`, a JSON array of "
        "the values.",
        max_length=8000,
        examples=["007"],
    ),
]
Until = Annotated[int | None, about("The newest version that is looked at.", ge=0, le=VERSION_MAX)]
IsDryRun = Annotated[bool, about()]
Reason = Annotated[str, about(max_length=1000)]


@dataclass(frozen=True, slots=True)
class Overview:
    """A tenant at one version of it, from logs alone."""

    __pydantic_config__: ClassVar = example(
        environment="default",
        tenant="acme",
        version=12,
        timestamp="2026-11-20T14:05:00Z",
        streams=[],
        files=3,
        file_bytes=4711,
        last=None,
        days=[0, 0, 15],
        etag='"12-9f86d081884c7d659a2feaa0c55ad015"',
    )
    environment: str
    tenant: str
    version: Annotated[int, Field(description="-1 before the first change.")]
    timestamp: datetime | None
    streams: list[StreamOverview]
    files: int
    file_bytes: int
    last: TenantVersion | None
    days: Annotated[
        list[int], Field(description="Rows changed on each of the last days (UTC), today's last.")
    ]
    etag: Annotated[
        str | None,
        Field(description="The tenant's `ETag` at that version; null before the first change."),
    ]


@operation("GET /overview", "snapshots:read", tag="tenants")
def show_overview(tenant: "Tenant", caller: "TenantCaller", version: SeenVersion = None) -> Overview:
    """Show a tenant's streams with rows, sizes and last changes, now or at a version of the tenant."""
    seen = tenant.scope.reading(lambda: caller.service.overviews.of(tenant, version))
    return Overview(
        caller.environment,
        tenant.context.tenant_id,
        seen.version,
        seen.timestamp,
        list(seen.streams),
        seen.files,
        seen.file_bytes,
        None if seen.last is None else TenantVersion.of(seen.last),
        list(seen.days),
        seen.etag,
    )


@operation("GET /streams/{stream}/diff", "snapshots:read", tag="versions")
def show_row_difference(
    tenant: "Tenant",
    caller: "TenantCaller",
    stream: NamedStream,
    before: Annotated[int, about("A version of the tenant.", ge=0, le=VERSION_MAX)],
    after: Annotated[int | None, about("Without it: now.", ge=0, le=VERSION_MAX)] = None,
    offset: Annotated[int, about(ge=0, le=VERSION_MAX)] = 0,
    limit: Limit = 100,
    cursor: Cursor = None,
    count: Annotated[
        bool | None, about("Whether to count all rows that differ; without it where it is quick.")
    ] = None,
) -> RowDifference:
    """Show which rows of a stream differ between two versions of the tenant, with each changed cell.

    Rows are in the order of the key. A cursor goes on between the versions that the first page was of.
    """
    listing = caller.list_name("diff", stream, before, after)
    position = caller.cursors.read_as(DifferenceCursor, listing, cursor)
    requested = DifferenceRequest(limit, 0 if cursor else offset, count)
    page, following = row_difference(tenant, stream, before, after, requested, position)
    return replace(page, next_cursor=caller.cursors.encode(listing, following))


@of_streams("GET /streams/{stream}/rows/{key}/origin", "snapshots:read")
def show_row_origin(
    tenant: "Tenant", caller: "TenantCaller", stream: NamedStream, key: RowKey, until: Until = None
) -> RowOrigin:
    """Show where each cell of a row comes from: the version that gave it its value, its job and author.

    With `jobs:read` also the file and the line, where the job's input is kept, or that the script computed
    the value. A cell whose version is no longer kept, or made the stream's key another one, has none.
    """
    return row_origin(tenant, stream, key, until, shows_inputs=caller.may("jobs:read"))


@of_streams("GET /streams/{stream}/rows/{key}/history", "snapshots:read")
def show_row_history(
    tenant: "Tenant",
    _caller: "TenantCaller",
    stream: NamedStream,
    key: RowKey,
    until: Until = None,
    limit: Limit = 100,
) -> RowHistory:
    """Show a row and the versions that inserted, updated or deleted it, the newest first.

    `following` is where the next page begins (`until`). `is_whole` is false where older versions are not
    kept any more, or knew the stream by another key; the last page knows.
    """
    return row_history(tenant, stream, key, until, limit)


@of_streams(
    "POST /streams/{stream}/row-changes",
    "snapshots:write",
    "rows.change",
    body="RowChangeOrder",
    example={"key": {"Id": "007"}, "values": {"City": "Basel"}, "message": "typed wrong"},
    audits_itself=True,
)
def change_row(
    tenant: "Tenant",
    caller: "TenantCaller",
    stream: NamedStream,
    key: Annotated[dict[str, KeyValue], about("The key's columns and values.")],
    values: Annotated[dict[str, KeyValue], about(min_length=1, max_length=1000)],
    message: Reason = "",
) -> RowChange:
    """Change cells of a row that is there, as one version. `If-Match` is the tenant's `ETag`."""
    author = caller.author(message)
    with caller.audit_change("rows.change", stream, columns=sorted(values)) as undertaking:
        done = change_cells(tenant, stream, key, values, author)
        undertaking.outcome = "" if done.committed else "unchanged"
    return done


_RESTORED_ROWS = {"version": 9, "keys": [{"Id": "007"}], "dry_run": True}


@operation(
    *("POST /restorations", "snapshots:write", "tenant.restore", "tenant restore"),
    tag="versions",
    body="RestorationOrder",
    example={"version": 9, "streams": ["Account"], "dry_run": True},
    details=("version",),
    noun="absent",
)
def restore_tenant(
    tenant: "Tenant",
    caller: "TenantCaller",
    version: Restored,
    streams: Names = None,
    files: Names = None,
    dry_run: IsDryRun = False,  # noqa: FBT002 - a member of a body
    message: Reason = "",
) -> Restoration:
    """Bring everything, or the streams and files that are named, back, as one new version.

    With `dry_run` the effect is returned, nothing is changed. `If-Match` is the tenant's `ETag`;
    `If-None-Match: *` brings back what is named only if none of it is there now.
    """
    how: dict[str, Any] = {"dry_run": dry_run, "message": message, "who": caller.who}
    return tenant.restore(version, streams=streams, files=files, **how)


@operation(
    *("POST /reversions", "snapshots:read snapshots:write", "tenant.revert", "tenant revert"),
    tag="versions",
    body="ReversionOrder",
    example={"version": 9, "only": ["Account"], "dry_run": True},
    details=("version", "since", "job_id", "only"),
)
def revert_version(
    tenant: "Tenant",
    caller: "TenantCaller",
    version: Annotated[int | None, about("The version; or name its job.", ge=0, le=VERSION_MAX)] = None,
    job_id: Annotated[str | None, about("The job that made it.", min_length=1, max_length=500)] = None,
    since: Annotated[
        int | None,
        about("The first of several versions that go back as one, up to `version`.", ge=0, le=VERSION_MAX),
    ] = None,
    only: Annotated[list[str] | None, about("Only these streams and files.", max_length=1000)] = None,
    where: Annotated[
        str | None,
        about("Only rows of the one stream for which this SQL condition is true.", max_length=10_000),
    ] = None,
    keys: Annotated[
        list[dict[str, KeyValue]] | None,
        about("Only rows of the one stream: for each its key's columns and values.", max_length=KEYS_MAX),
    ] = None,
    dry_run: IsDryRun = False,  # noqa: FBT002 - a member of a body
    message: Reason = "",
) -> Reversion:
    """Take one version back, or several as one, as one new version, and keep what came after.

    Each cell that is still as the version made it becomes what it was before; what was changed again since
    stays and is named. With `dry_run` the effect is returned, nothing is changed. `If-Match` is the tenant's
    `ETag`.
    """
    if where is not None and keys is not None:
        raise InvalidOption("where and keys cannot be used together.", remedy="Send one of them.")
    rows = where if keys is None else reverted_keys(tenant, only, keys)
    chosen: dict[str, Any] = {"job_id": job_id, "only": only, "where": rows}
    if since is not None and version is None:
        raise InvalidOption("since needs a version.", remedy="Name the last of the versions, and no job.")
    named = version if since is None or version is None else (since, version)
    done = tenant.revert(named, **chosen, dry_run=dry_run, message=message, who=caller.who)
    return Reversion.of(done)


@of_streams(
    *("POST /streams/{stream}/restore", "snapshots:write", "stream.restore", "stream restore"),
    body="StreamRestorationOrder",
    example={"version": 9, "dry_run": True},
    details=("version",),
    noun="stream",
)
def restore_stream(
    tenant: "Tenant",
    caller: "TenantCaller",
    stream: NamedStream,
    version: RestoredVersion,
    dry_run: IsDryRun = False,  # noqa: FBT002 - a member of a body
    message: Reason = "",
) -> Restoration:
    """Bring a stream back to what it was at a version of the tenant, as a new version.

    Conditions are of the stream, by the `ETag` that showing it gives.
    """
    how: dict[str, Any] = {"dry_run": dry_run, "message": message, "who": caller.who}
    return tenant.restore(version, streams=[stream], files=[], **how)


@operation(
    *("POST /file-returns", "snapshots:write", "file.return"),
    tag="files",
    body="FileReturn",
    example={"path": "mappings/a.csv", "version": 9},
    details=("version",),
    noun="file",
)
def return_file(
    tenant: "Tenant",
    caller: "TenantCaller",
    path: Annotated[FilePath, about("A path such as `mappings/a.csv`.", min_length=1, max_length=800)],
    version: Restored,
    message: Reason = "",
) -> Restoration:
    """Bring a file back as it was at a version of the tenant, deleted or changed since.

    With `If-None-Match: *` a newer file of that path is left as it is, and the request refused.
    """
    return tenant.restore(version, streams=[], files=[path], message=message, who=caller.who)


@of_streams(
    *("POST /streams/{stream}/row-restorations", "snapshots:write", "rows.restore"),
    body="RowRestorationOrder",
    example=_RESTORED_ROWS,
    audits_itself=True,
)
def restore_rows(
    tenant: "Tenant",
    caller: "TenantCaller",
    stream: NamedStream,
    version: RestoredVersion,
    keys: Annotated[
        list[dict[str, KeyValue]],
        about(
            "For each row its key's columns and values; none, with `after`: all rows that differ.",
            max_length=KEYS_MAX,
        ),
    ] = [],  # noqa: B006 - never changed
    after: Annotated[
        int | None,
        about(
            "The version whose changes are reverted; a dry run counts rows that changed later.",
            ge=0,
            le=VERSION_MAX,
        ),
    ] = None,
    columns: Annotated[
        list[str],
        about("Only these cells, of rows that were there then and are now.", max_length=1000),
    ] = [],  # noqa: B006 - never changed
    dry_run: IsDryRun = False,  # noqa: FBT002 - a member of a body
    message: Reason = "",
) -> RowRestoration:
    """Bring rows back by their keys, as one new version; rows that were not there then are removed.

    Without `keys`, with `after`, these are all rows that differ between `version` and `after`.

    With `dry_run` the effect is returned, nothing is changed. `If-Match` is the tenant's `ETag`.
    """
    chosen = select_rows(tenant, stream, version, keys, columns, after)
    if dry_run:
        return restored_rows(tenant, chosen, dry_run=True, author=Author(caller.who), after=after)
    author = caller.author(message)
    noted = {"version": version, **({"rows": len(keys)} if keys else {"after": after})}
    with caller.audit_change("rows.restore", stream, **noted) as undertaking:
        done = restored_rows(tenant, chosen, dry_run=False, author=author)
        undertaking.outcome = "" if done.committed else "unchanged"
    return done


@of_streams(
    *("POST /streams/{stream}/erasures", "snapshots:read snapshots:delete", "rows.erase", "tenant erase"),
    body="ErasureOrder",
    example={"keys": [{"Id": "007"}], "dry_run": True},
    audits_itself=True,
    noun="stream",
)
def erase_rows(
    tenant: "Tenant",
    caller: "TenantCaller",
    stream: NamedStream,
    keys: Annotated[
        list[dict[str, KeyValue]] | None,
        about("For each row its key's columns and values; or send `where`.", max_length=KEYS_MAX),
    ] = None,
    where: Annotated[
        str | None,
        about(
            "A SQL condition: the rows of now that meet it. Of a request that is sent again none do, so what "
            "is left is told for `keys` alone.",
            max_length=10_000,
        ),
    ] = None,
    dry_run: IsDryRun = False,  # noqa: FBT002 - a member of a body
    message: Reason = "",
) -> RowErasure:
    """Erase rows of a stream for good, from every version and all bytes: the tenant's history begins anew.

    With `dry_run` the rows are returned, nothing is changed. Conditions are of the stream, by the `ETag` that
    showing it gives. The audit and the history have the number of keys and the reason, never a key.
    """
    found = tenant.stream(stream)
    if dry_run:
        return erasure_preview(tenant, found, keys, where)
    chosen = erased_keys(found, keys, where)
    author = caller.author(message)
    with caller.audit_change("rows.erase", stream, keys=len(chosen)):
        return erase(tenant, found, chosen, author)


@operation("GET /jobs/{job_id}/changes", "snapshots:read jobs:read", place="job", tag="jobs")
def show_changes(caller: "TenantCaller", job_id: JobId) -> DryRunChanges:
    """Show rows and lines of files that a dry run would change; empty for any other job."""
    return dry_run_changes(caller.service.jobs.get(caller.job(job_id)), caller.service.settings)


_ENDED: tuple[JobStatus, ...] = ("succeeded", "held", *FAILURES)


@operation("GET /job-groups/{group}/effects", "snapshots:read jobs:read", place="environment", tag="jobs")
def show_effects(caller: "Caller", environment: EnvironmentName, group: GroupId) -> GroupEffects:
    """Sum up what the dry runs of a group would change, as far as they have ended."""
    tenants = visible_tenants(caller, environment)
    find_group(caller.service.database, environment, group, tenants)
    jobs = jobs_of_group(caller.service.database, environment, group, tenants, _ENDED)
    return group_effects(
        filter(caller.service.stores.is_current, jobs),
        lambda name: caller.access.tenant(environment, TenantId(name), "snapshots:read"),
        caller.service.overviews,
    )


OPERATIONS = (
    *(restore_tenant, revert_version, restore_stream, return_file, restore_rows),
    *(show_overview, show_row_difference, show_row_history, show_row_origin, change_row),
    *(erase_rows, show_changes, show_effects),
)
