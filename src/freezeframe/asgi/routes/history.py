"""A tenant's versions: history, differences, restorations, tags and the policy."""

import functools
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import ConfigDict, Field

from freezeframe.asgi.caller import CONDITIONAL, TenantCaller, TenantCalling
from freezeframe.asgi.routes.parameters import CursorText, Limit, StreamPath
from freezeframe.asgi.routing import TENANT_PATH, RequestModel, ResponseModel, api_router, example
from freezeframe.service.access.audit import UNCHANGED
from freezeframe.service.operations.operation import VERSION_MAX
from freezeframe.service.rows.differences import (
    DifferenceCursor,
    DifferenceRequest,
    RowDifference,
    row_difference,
)
from freezeframe.store import Tenant
from freezeframe.store.maintenance.restore import Restoration
from freezeframe.store.model.receipt import Counts
from freezeframe.store.transaction.conditions import TENANT, Subject, any_subject


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


router = api_router("versions")


@router.get(TENANT_PATH + "/history")
def list_history(
    caller: TenantCalling,
    limit: Limit = 100,
    cursor: CursorText = None,
    stream: Annotated[str | None, Query(max_length=200, description="Only versions that changed it.")] = None,
    path: Annotated[
        str | None, Query(max_length=800, description="Only versions that changed the file.")
    ] = None,
    job_id: Annotated[str | None, Query(max_length=500, description="Only the version of that job.")] = None,
) -> HistoryPage:
    """List a tenant's versions, the newest first; every one of them can be read and restored."""
    tenant = caller.tenant("snapshots:read")
    return history_page(caller, tenant, limit, cursor, stream=stream, path=path, job_id=job_id)


@router.get(TENANT_PATH + "/diff")
def show_difference(
    caller: TenantCalling,
    before: Annotated[int, Query(ge=0, le=VERSION_MAX)],
    after: Annotated[int | None, Query(ge=0, le=VERSION_MAX)] = None,
    texts: Annotated[bool, Query(description="With the differences of files as text.")] = False,  # noqa: FBT002 - a query
) -> Difference:
    """What differs between two versions of the tenant (without `after`: and now)."""
    difference = caller.tenant("snapshots:read").diff(before, after)
    fields = difference.to_json()
    return Difference(
        before=difference.before,
        after=difference.after,
        streams={name: StreamDifference(**item) for name, item in fields["streams"].items()},
        files={
            path: FileDifference(**fields["files"][path], text=item.text() if texts else None)
            for path, item in difference.files.items()
        },
    )


@router.post(TENANT_PATH + "/restorations", dependencies=CONDITIONAL)
def restore_tenant(caller: TenantCalling, order: RestorationOrder) -> Restoration:
    """Bring everything, or the streams and files that are named, back, as one new version.

    With `dry_run` the effect is returned, nothing is changed. `If-Match` is the tenant's `ETag`;
    `If-None-Match: *` brings back what is named only if none of it is there now.
    """
    named = (order.streams or (), order.files or ())
    is_absent_only = caller.conditions.if_none_match is not None and any(named)
    return restore(caller, order, "tenant.restore", any_subject(*named) if is_absent_only else TENANT)


def restore(
    caller: TenantCaller,
    order: RestorationOrder,
    action: str,
    subject: Subject,
    name: str = "",
) -> Restoration:
    """Carry out a restoration, or with ``dry_run`` tell what it would do.

    Conditions are about ``subject``, which the audit calls ``name``.
    """
    tenant = caller.tenant("snapshots:read" if order.dry_run else "snapshots:write", subject)
    restore = functools.partial(
        tenant.restore, order.version, streams=order.streams, files=order.files, message=order.message
    )
    if order.dry_run:
        caller.conditions.require_now(subject, tenant.context)
        return restore(dry_run=True)
    author = caller.author(order.message)
    with caller.audit_change(action, name, version=order.version) as undertaking:
        done = restore(who=author.who)
        undertaking.outcome = "" if done.committed else UNCHANGED
    return done


def history_page(
    caller: TenantCaller, tenant: Tenant, limit: int, cursor: str | None, **filters: Any
) -> HistoryPage:
    """Return a page of versions; ``wanted`` as of ``Tenant.history``."""
    listing = caller.list_name("history", *sorted(filters.items()))
    cursors = caller.service.cursors
    entries = list(tenant.history(limit + 1, until=cursors.read(listing, cursor), **filters))
    return HistoryPage(
        versions=list(map(TenantVersion.of, entries[:limit])),
        next_cursor=cursors.encode(listing, entries[limit].version if len(entries) > limit else None),
    )


@router.get(TENANT_PATH + "/streams/{stream}/diff")
def show_row_difference(
    caller: TenantCalling,
    stream: StreamPath,
    before: Annotated[int, Query(ge=0, le=VERSION_MAX, description="A version of the tenant.")],
    after: Annotated[int | None, Query(ge=0, le=VERSION_MAX, description="Without it: now.")] = None,
    offset: Annotated[int, Query(ge=0, le=VERSION_MAX)] = 0,
    limit: Limit = 100,
    cursor: CursorText = None,
    count: Annotated[
        bool | None, Query(description="Whether to count all rows that differ; without it where it is quick.")
    ] = None,
) -> RowDifference:
    """Show which rows of a stream differ between two versions of the tenant, with each changed cell.

    Rows are in the order of the key. A cursor goes on between the versions that the first page was of.
    """
    tenant = caller.tenant("snapshots:read")
    cursors, listing = caller.service.cursors, caller.list_name("diff", stream, before, after)
    position = cursors.read_as(DifferenceCursor, listing, cursor)
    requested = DifferenceRequest(limit, 0 if cursor else offset, count)
    page, following = row_difference(tenant, stream, before, after, requested, position)
    return replace(page, next_cursor=cursors.encode(listing, following))
