"""Rows of a stream that differ between two versions of a tenant, a page at a time."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.row_differences import RowDifference
from freezeframe.asgi.routes.parameters import VERSION_MAX, CursorText, Limit, StreamPath
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.service.row_differences import DifferencePlace, DifferenceWanted, row_difference

router = tenant_router("versions")


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
    listing = caller.listing("diff", stream, before, after)
    place = None
    if cursor is not None:
        place = DifferencePlace.of_json(caller.service.cursors.read(listing, cursor))
    wanted = DifferenceWanted(limit, 0 if cursor else offset, count)
    seen = row_difference(tenant, stream, before, after, wanted, place)
    following = seen.following
    next_cursor = None if following is None else caller.service.cursors.made(listing, following.to_json())
    return RowDifference.of(seen, next_cursor=next_cursor)
