"""Environments and tenants: listed, made, cloned, deleted."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from freezeframe.asgi.caller import Calling, TenantCalling
from freezeframe.asgi.models.tenants import Certificate, EnvironmentList, NewTenant, TenantDetail, TenantPage
from freezeframe.asgi.problems import declared
from freezeframe.asgi.routes.parameters import CursorText, Limit
from freezeframe.asgi.routes.routing import TENANT, api_router
from freezeframe.store import Tenant

router = api_router("tenants")
EnvironmentPath = Annotated[
    str, Path(min_length=1, max_length=200, description="The environment's name.", examples=["default"])
]


@router.get("/environments")
def list_environments(caller: Calling) -> EnvironmentList:
    """List the environments that have tenants."""
    return EnvironmentList(environments=list(caller.access.environments()))


@router.get("/environments/{environment}/tenants")
def list_tenants(
    caller: Calling,
    environment: EnvironmentPath,
    prefix: Annotated[str, Query(max_length=200, description="Only ids that begin so.")] = "",
    limit: Limit = 100,
    cursor: CursorText = None,
) -> TenantPage:
    """List tenants by id, a page at a time."""
    listing = f"tenants\n{environment}\n{prefix}"
    after = None if cursor is None else str(caller.service.cursors.read(listing, cursor))
    page = caller.access.page(environment, prefix, after, limit)
    following = None if page.next_after is None else caller.service.cursors.made(listing, page.next_after)
    return TenantPage(tenants=list(page.tenants), next_cursor=following)


@router.post("/environments/{environment}/tenants", status_code=201, responses={200: {"model": TenantDetail}})
def create_tenant(
    caller: Calling, environment: EnvironmentPath, order: NewTenant, response: Response
) -> TenantDetail:
    """Make a tenant; one that is there stays as it is (200)."""
    tenant, is_new = caller.access.create(environment, order.tenant)
    if is_new:
        caller.audit(
            "tenant.create", order.tenant, place=caller.access.audit_place(environment, order.tenant)
        )
    response.status_code = 201 if is_new else 200
    return _detail(environment, order.tenant, tenant)


@router.get(TENANT, responses=declared(404))
def show_tenant(caller: TenantCalling) -> TenantDetail:
    """Show a tenant: its version, streams and how many files it has."""
    return _detail(caller.environment, caller.tenant_id, caller.tenant("tenants:read"))


@router.delete(TENANT, responses=declared(404))
def delete_tenant(caller: TenantCalling) -> Certificate:
    """Remove all that is kept for a tenant, for good, and certify it."""
    caller.access.require(caller.environment, caller.tenant_id, "snapshots:delete")
    # Before the effect, and in the service's own chain as well: what is gone cannot be asked any more.
    caller.note("tenant.delete", caller.tenant_id)
    caller.audit("tenant.delete", f"{caller.environment}/{caller.tenant_id}")
    caller.service.uploads.remove_all(caller.environment, caller.tenant_id)
    caller.service.jobs.forget(caller.environment, caller.tenant_id)
    certificate = caller.access.delete(caller.environment, caller.tenant_id).to_json()
    return Certificate(**{name: certificate[name] for name in Certificate.model_fields})


@router.post(f"{TENANT}/clone", status_code=201, responses=declared(404))
def clone_tenant(caller: TenantCalling, order: NewTenant) -> TenantDetail:
    """Make a new tenant with the newest streams and files of this one, and none of its past."""
    tenant = caller.access.clone(caller.environment, caller.tenant_id, order.tenant)
    caller.audit(
        "tenant.clone",
        order.tenant,
        place=caller.access.audit_place(caller.environment, order.tenant),
        details={"source": caller.tenant_id},
    )
    caller.note("tenant.cloned", order.tenant)
    return _detail(caller.environment, order.tenant, tenant)


def _detail(environment: str, tenant_id: str, tenant: Tenant) -> TenantDetail:
    state = tenant.place.log.current_state()  # one look: all of it is of one moment
    return TenantDetail(
        environment=environment,
        tenant=tenant_id,
        version=state.version,
        streams=sorted(state.streams),
        files=len(state.files),
        size_bytes=sum(one.size for one in state.files.values()),
    )
