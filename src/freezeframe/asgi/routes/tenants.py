"""Environments and tenants: list, create, clone, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from freezeframe.asgi.dependencies.caller import CONDITIONAL, Caller, Calling, Environment, TenantCalling
from freezeframe.asgi.models.tenants import Deletion, EnvironmentList, NewTenant, TenantDetail, TenantPage
from freezeframe.asgi.problems import to_openapi
from freezeframe.asgi.routes.routing import TENANT, CursorText, Limit, api_router
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.store import Tenant

router = api_router("tenants")


@router.get("/environments")
def list_environments(caller: Calling) -> EnvironmentList:
    """List the environments that have tenants."""
    return EnvironmentList(environments=list(caller.access.environments()))


@router.get("/environments/{environment}/tenants")
def list_tenants(
    caller: Calling,
    environment: Environment,
    prefix: Annotated[str, Query(max_length=200, description="Only ids that begin so.")] = "",
    limit: Limit = 100,
    cursor: CursorText = None,
) -> TenantPage:
    """List tenants by id, a page at a time."""
    listing = f"tenants\n{environment}\n{prefix}"
    after = None if cursor is None else str(caller.service.cursors.read(listing, cursor))
    page = caller.access.page(environment, prefix, after, limit)
    following = None if page.next_after is None else caller.service.cursors.encode(listing, page.next_after)
    return TenantPage(tenants=list(page.tenants), next_cursor=following)


@router.post("/environments/{environment}/tenants", status_code=201, responses={200: {"model": TenantDetail}})
def create_tenant(
    caller: Calling, environment: Environment, order: NewTenant, response: Response
) -> TenantDetail:
    """Make a tenant; one that is there stays as it is (200)."""
    tenant_id = TenantId(order.tenant)
    tenant, is_new = made_tenant(caller, environment, tenant_id)
    response.status_code = 201 if is_new else 200
    return _detail(environment, tenant_id, tenant)


@router.get(TENANT, responses=to_openapi(404))
def show_tenant(caller: TenantCalling) -> TenantDetail:
    """Show a tenant: its version, streams and how many files it has."""
    return _detail(caller.environment, caller.tenant_id, caller.tenant("tenants:read"))


@router.delete(TENANT, responses=to_openapi(404), dependencies=CONDITIONAL)
def delete_tenant(
    caller: TenantCalling,
    confirm: Annotated[str, Query(min_length=1, max_length=200, description="The tenant's id once more.")],
) -> Deletion:
    """Remove all that is kept for a tenant, for good; its jobs and schedules end with it.

    `confirm` has to be the tenant's id: a client that shortens the path `…/files/..` deletes nothing.
    """
    if TenantId(confirm) != caller.tenant_id:
        raise InvalidOption(
            "The tenant is not deleted.",
            cause="confirm is not its id.",
            remedy="Send the tenant's id as confirm, if all that is kept for it is to go.",
        )
    caller.tenant("snapshots:delete")
    ending = {"schedules": list(caller.service.jobs.schedules(caller.environment, caller.tenant_id))}
    named = f"{caller.environment}/{caller.tenant_id}"
    # About the service: a deleted tenant has no audit to query.
    with caller.audit_service_change("tenant.delete", named, details=ending):
        caller.service.jobs.forget(caller.environment, caller.tenant_id)
        return Deletion.of(caller.access.delete(caller.environment, caller.tenant_id))


@router.post(f"{TENANT}/clone", status_code=201, responses=to_openapi(404))
def clone_tenant(caller: TenantCalling, order: NewTenant) -> TenantDetail:
    """Make a new tenant with the newest streams and files of this one, and none of its past."""
    environment, source, target = caller.environment, caller.tenant_id, TenantId(order.tenant)
    caller.access.require_clone(environment, source, target)
    origin, named = {"source": source}, f"{environment}/{target}"
    with (
        caller.audit_change("tenant.cloned", target),
        caller.audit_service_change("tenant.clone", named, details=origin),
    ):
        tenant = caller.access.clone(environment, source, target, caller.request_context())
    place = caller.access.audit_place(environment, target)
    caller.audit("tenant.clone", target, place=place, details=origin)
    return _detail(caller.environment, target, tenant)


def made_tenant(caller: Caller, environment: EnvironmentName, tenant_id: TenantId) -> tuple[Tenant, bool]:
    """The tenant, created if it did not exist, and whether this call created it.

    What comes before it is there is about the service; its own audit begins with what made it.
    """
    tenant = caller.access.find(environment, tenant_id)
    if tenant is not None:
        return tenant.on(caller.request_context()), False
    with caller.audit_service_change("tenant.create", f"{environment}/{tenant_id}"):
        tenant, is_new = caller.access.create(environment, tenant_id)
    if is_new:
        place = caller.access.audit_place(environment, tenant_id)
        caller.audit("tenant.create", tenant_id, place=place)
    return tenant.on(caller.request_context()), is_new


def _detail(environment: EnvironmentName, tenant_id: TenantId, tenant: Tenant) -> TenantDetail:
    state = tenant.context.log.current_state()  # one read, so that all of it is of the same version
    return TenantDetail(
        environment=environment,
        tenant=tenant_id,
        version=state.version,
        streams=sorted(state.streams),
        files=len(state.files),
        size_bytes=sum(file.size for file in state.files.values()),
    )
