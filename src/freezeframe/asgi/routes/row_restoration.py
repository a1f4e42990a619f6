"""Single rows of a stream, brought back to what they were."""

from __future__ import annotations

import functools

from freezeframe.asgi.caller import Conditional, TenantCalling
from freezeframe.asgi.models.row_restoration import RowRestoration, RowRestorationOrder
from freezeframe.asgi.problems import declared
from freezeframe.asgi.routes.parameters import StreamPath
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.service.audit import UNCHANGED
from freezeframe.service.row_restoration import restored_rows

router = tenant_router("streams")


@router.post("/streams/{stream}/row-restorations", responses=declared(412))
def restore_rows(
    caller: TenantCalling, stream: StreamPath, order: RowRestorationOrder, conditions: Conditional
) -> RowRestoration:
    """Bring rows back by their keys, as one new version; rows that were not there then are removed.

    With `dry_run` the effect is told and nothing is done. `If-Match` is the tenant's version in quotes.
    """
    tenant = caller.tenant("snapshots:read" if order.dry_run else "snapshots:write")
    restore = functools.partial(
        restored_rows,
        tenant,
        stream,
        order.version,
        order.keys,
        dry_run=order.dry_run,
        message=order.message,
        who=caller.who,
        check=lambda version: conditions.require(f'"{version}"'),
    )
    if order.dry_run:
        done = restore()
    else:
        noted = {"version": order.version, "rows": len(order.keys)}
        with caller.noting("rows.restore", stream, **noted) as undertaking:
            done = restore()
            undertaking.outcome = "" if done.committed else UNCHANGED
    return RowRestoration.of(done)
