"""The first rows of a stream by a column."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Query, Response

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.sorted_rows import SortedRows
from freezeframe.asgi.routes.parameters import Limit, StreamPath, When
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.script.json_lines import json_lines
from freezeframe.service import sorted_rows
from freezeframe.service.sorted_rows import ROWS_MAX, Order

router = tenant_router("streams")


@router.get("/streams/{stream}/sorted-rows", responses={200: {"model": SortedRows}})
def list_sorted_rows(
    caller: TenantCalling,
    stream: StreamPath,
    when: When,
    by: Annotated[str, Query(min_length=1, max_length=300, description="The column.")],
    descending: Annotated[bool, Query(description="The greatest first.")] = False,  # noqa: FBT002 - a query
    columns: Annotated[list[str] | None, Query(description="Only these columns.", max_length=1000)] = None,
    where: Annotated[
        list[str] | None,
        Query(description="Conditions such as `City = Bern`; all must hold.", max_length=20),
    ] = None,
    offset: Annotated[int, Query(ge=0, le=ROWS_MAX, description="How many to leave out first.")] = 0,
    limit: Limit = 100,
) -> Any:
    """Read the first rows by a column, down to row 10,000; missing values come last either way.

    A stream that is too large to be sorted at once is refused (413): choose fewer columns, or filter.
    """
    tenant = caller.tenant("snapshots:read")
    seen = sorted_rows.sorted_rows(
        tenant,
        stream,
        when,
        Order(by, is_down=descending),
        columns=columns or (),
        where=where or (),
        offset=offset,
        limit=limit,
    )
    head = json.dumps({"total": seen.total, "columns": seen.rows.column_names}, ensure_ascii=False)
    lines = b"".join(json_lines(seen.rows, len(seen.rows) or 1)).splitlines()
    body = head.encode()[:-1] + b', "rows": [' + b",".join(lines) + b"]}"
    return Response(body, media_type="application/json")
