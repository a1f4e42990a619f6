"""A tenant at a glance: one answer for what a list or a panel shows of it."""

from __future__ import annotations

from freezeframe.asgi.caller import TenantCalling
from freezeframe.asgi.models.overview import LastChange, Overview, StreamOverview
from freezeframe.asgi.models.streams import Counts
from freezeframe.asgi.models.versions import TenantVersion, version_fields
from freezeframe.asgi.routes.parameters import TenantVersion as TenantVersionQuery
from freezeframe.asgi.routes.routing import tenant_router
from freezeframe.service import overview

router = tenant_router("tenants")


@router.get("/overview")
def show_overview(caller: TenantCalling, tenant_version: TenantVersionQuery = None) -> Overview:
    """Show a tenant's streams with rows, sizes and last changes, now or at a version of the tenant."""
    seen = overview.overview(caller.tenant("snapshots:read"), tenant_version)
    return Overview(
        environment=caller.environment,
        tenant=caller.tenant_id,
        version=seen.version,
        timestamp=seen.timestamp,
        streams=[_stream(one) for one in seen.streams],
        files=seen.files,
        file_bytes=seen.file_bytes,
        last=None if seen.last is None else TenantVersion(**version_fields(seen.last.to_json())),
        days=list(seen.days),
    )


def _stream(seen: overview.StreamOverview) -> StreamOverview:
    last = None
    if seen.last is not None:
        last = LastChange(
            version=seen.last.version,
            timestamp=seen.last.timestamp,
            job_id=seen.last.job_id,
            counts=Counts(**seen.last.counts.to_json()),
        )
    return StreamOverview(
        stream=seen.name,
        version=seen.version,
        key=list(seen.key),
        rows=seen.rows,
        size_bytes=seen.size_bytes,
        last=last,
    )
