"""Rows of a stream that differ between two versions of a tenant, a page at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Query

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.row_differences import ChangedRow, RowDifference
from freezeframe.asgi.models.streams import Counts
from freezeframe.asgi.routes.parameters import VERSION_MAX, Limit, StreamPath
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.service.row_differences import row_difference

router = tenant_router("versions")


@router.get("/streams/{stream}/diff")
def show_row_difference(
    caller: TenantCalling,
    stream: StreamPath,
    before: Annotated[int, Query(ge=0, le=VERSION_MAX, description="A version of the tenant.")],
    after: Annotated[int | None, Query(ge=0, le=VERSION_MAX, description="Without it: now.")] = None,
    offset: Annotated[int, Query(ge=0, le=VERSION_MAX)] = 0,
    limit: Limit = 100,
) -> RowDifference:
    """Show which rows of a stream differ between two versions of the tenant, with each changed cell."""
    seen = row_difference(caller.tenant("snapshots:read"), stream, before, after, offset, limit)
    return RowDifference(
        key=list(seen.key),
        columns=list(seen.columns),
        changed=seen.changed,
        columns_added=seen.columns_added,
        columns_dropped=seen.columns_dropped,
        counts=Counts(**seen.counts.to_json()),
        total=seen.total,
        rows=[ChangedRow(**asdict(row)) for row in seen.rows],
    )
