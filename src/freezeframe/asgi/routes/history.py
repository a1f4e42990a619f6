"""A tenant's versions: history, differences, restorations, tags and the policy."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from fastapi import Path, Query, Response

from freezeframe.asgi.dependencies.caller import CONDITIONAL, TenantCaller, TenantCalling
from freezeframe.asgi.models.streams import (
    Difference,
    FileDifference,
    HistoryPage,
    NewPolicy,
    NewTag,
    Policy,
    Restoration,
    RestorationOrder,
    RowDifference,
    StreamDifference,
    Tag,
    TagList,
    TenantVersion,
)
from freezeframe.asgi.routes.routing import VERSION_MAX, CursorText, Limit, StreamPath, tenant_router
from freezeframe.service.access.audit import UNCHANGED
from freezeframe.service.rows.row_differences import DifferencePlace, DifferenceWanted, row_difference
from freezeframe.store import Tenant
from freezeframe.store.transaction.conditions import TENANT, Subject, any_subject

router = tenant_router("versions")
TagName = Annotated[str, Path(min_length=1, max_length=200, description="The tag.", examples=["go-live"])]


@router.get("/history")
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


@router.get("/diff")
def show_difference(
    caller: TenantCalling,
    before: Annotated[int, Query(ge=0, le=VERSION_MAX)],
    after: Annotated[int | None, Query(ge=0, le=VERSION_MAX)] = None,
    texts: Annotated[bool, Query(description="With the differences of files as text.")] = False,  # noqa: FBT002 - a query
) -> Difference:
    """What differs between two versions of the tenant (without `after`: and now)."""
    found = caller.tenant("snapshots:read").diff(before, after)
    told = found.to_json()
    return Difference(
        before=found.before,
        after=found.after,
        streams={name: StreamDifference(**one) for name, one in told["streams"].items()},
        files={
            path: FileDifference(**told["files"][path], text=one.text() if texts else None)
            for path, one in found.files.items()
        },
    )


@router.post("/restorations", dependencies=CONDITIONAL)
def restore_tenant(caller: TenantCalling, order: RestorationOrder) -> Restoration:
    """Bring everything, or the streams and files that are named, back, as one new version.

    With `dry_run` the effect is told and nothing is done. `If-Match` is the tenant's version in quotes;
    `If-None-Match: *` brings back what is named only if none of it is there now.
    """
    named = (order.streams or (), order.files or ())
    is_absent_only = caller.conditions.if_none_match is not None and any(named)
    return restore(caller, order, "tenant.restore", any_subject(*named) if is_absent_only else TENANT)


@router.get("/tags")
def list_tags(caller: TenantCalling) -> TagList:
    """List a tenant's tags, and the versions that they keep."""
    return TagList(tags=caller.tenant("snapshots:read").tags())


@router.put("/tags/{tag}", dependencies=CONDITIONAL)
def set_tag(caller: TenantCalling, tag: TagName, order: NewTag) -> Tag:
    """Name a version of the tenant, which is then kept whatever the policy says."""
    tenant = caller.tenant("snapshots:write")
    with caller.audit_change("tag.set", tag, version=order.version):
        version = tenant.tag(tag, order.version, who=caller.who)
    return Tag(name=tag, version=version)


@router.delete(
    "/tags/{tag}",
    status_code=204,
    response_class=Response,
    dependencies=CONDITIONAL,
)
def remove_tag(caller: TenantCalling, tag: TagName) -> None:
    """Take a tag off; the version is then kept as long as the policy says."""
    tenant = caller.tenant("snapshots:delete")
    with caller.audit_change("tag.remove", tag):
        tenant.untag(tag, who=caller.who)


@router.get("/policy")
def show_policy(caller: TenantCalling) -> Policy:
    """How long a tenant's versions are kept; without limits for ever."""
    return Policy.of(caller.tenant("snapshots:read").retention())


@router.put("/policy", dependencies=CONDITIONAL)
def set_policy(caller: TenantCalling, order: NewPolicy) -> Policy:
    """Say how long a tenant's versions are kept; `gc` carries it out."""
    tenant = caller.tenant("admin")
    with caller.audit_change("policy.set", keep_versions=order.keep_versions, keep_days=order.keep_days):
        tenant.set_retention(order.keep_versions, order.keep_days, who=caller.who)
    return Policy.of(order)


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
        return Restoration.of(restore(dry_run=True))
    with caller.audit_change(action, name, version=order.version) as undertaking:
        done = restore(who=caller.who)
        undertaking.outcome = "" if done.committed else UNCHANGED
    return Restoration.of(done)


def history_page(
    caller: TenantCaller, tenant: Tenant, limit: int, cursor: str | None, **wanted: Any
) -> HistoryPage:
    """A page of versions; ``wanted`` as of ``Tenant.history``."""
    listing = caller.list_name("history", *sorted(wanted.items()))
    until = None if cursor is None else int(caller.service.cursors.read(listing, cursor))
    found = list(tenant.history(limit + 1, until=until, **wanted))
    following = caller.service.cursors.encode(listing, found[limit].version) if len(found) > limit else None
    return HistoryPage(versions=list(map(TenantVersion.of, found[:limit])), next_cursor=following)


@router.get("/streams/{stream}/diff")
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
    listing = caller.list_name("diff", stream, before, after)
    place = None
    if cursor is not None:
        place = DifferencePlace.of_json(caller.service.cursors.read(listing, cursor))
    wanted = DifferenceWanted(limit, 0 if cursor else offset, count)
    seen = row_difference(tenant, stream, before, after, wanted, place)
    following = seen.following
    next_cursor = None if following is None else caller.service.cursors.encode(listing, following.to_json())
    return RowDifference.of(seen, next_cursor=next_cursor)
