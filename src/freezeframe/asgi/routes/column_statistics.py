"""What a stream's columns hold: nulls, distinct values, ends and shape."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.column_statistics import StreamStatistics
from freezeframe.asgi.routes.parameters import StreamPath, When
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.service.column_statistics import StatisticsCache, stream_statistics

router = tenant_router("streams")
_CACHE = StatisticsCache()


@router.get("/streams/{stream}/statistics")
def show_statistics(
    caller: TenantCalling,
    stream: StreamPath,
    when: When,
    columns: Annotated[list[str] | None, Query(description="Only these columns.", max_length=1000)] = None,
) -> StreamStatistics:
    """Show what the columns hold: nulls, distinct values, smallest and greatest, and their shape.

    Of a stream of more than a million rows the first million are read; `rows_read` says so. Columns that
    were not read within some seconds have `rows_read` 0: ask for them by name.
    """
    tenant = caller.tenant("snapshots:read")
    return StreamStatistics.of(stream_statistics(tenant, stream, when, _CACHE, columns=columns or ()))
