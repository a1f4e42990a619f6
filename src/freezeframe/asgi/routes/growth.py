"""Rows and bytes of a tenant over its versions."""

from __future__ import annotations

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.growth import Growth, GrowthPoint
from freezeframe.asgi.routes.parameters import Limit
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.service.growth import growth

router = tenant_router("versions")


@router.get("/growth")
def show_growth(caller: TenantCalling, limit: Limit = 200) -> Growth:
    """How many rows and bytes the tenant had after each of its newest versions, the oldest first."""
    return Growth(points=list(map(GrowthPoint.of, growth(caller.tenant("snapshots:read"), limit))))
