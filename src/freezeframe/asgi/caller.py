"""What a route knows of its request: who asks, what they may reach, and how to leave a trace of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request
from fastapi.concurrency import run_in_threadpool

from freezeframe.asgi.authentication import authenticated, known_at_once, service_of
from freezeframe.asgi.problems import request_id_of
from freezeframe.service.access import TenantAccess
from freezeframe.service.audit import AuditPlace
from freezeframe.service.conditions import Conditions
from freezeframe.service.principal import Principal, Scope
from freezeframe.service.service import Service
from freezeframe.store import Tenant


@dataclass(frozen=True, slots=True)
class Caller:
    """One request's principal before the service."""

    service: Service
    access: TenantAccess
    request_id: str

    @property
    def principal(self) -> Principal:
        """Who asks."""
        return self.access.principal

    @property
    def who(self) -> str:
        """Who asks, as histories show it."""
        return self.principal.name

    def audit(
        self,
        action: str,
        subject: str = "",
        *,
        place: AuditPlace | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Leave an entry in the audit; it is durable when this returns."""
        self.service.audit.write(
            place or AuditPlace(),
            principal=f"{self.principal.kind}:{self.principal.id} {self.principal.name}",
            action=action,
            subject=subject,
            request_id=self.request_id,
            details=details,
        )


@dataclass(frozen=True, slots=True)
class TenantCaller(Caller):
    """One request's principal before one tenant; nothing is opened before its scope is named."""

    environment: str
    tenant_id: str

    def tenant(self, scope: Scope) -> Tenant:
        """The tenant, for something that needs ``scope``; see ``TenantAccess.tenant``."""
        return self.access.tenant(self.environment, self.tenant_id, scope)

    def note(self, action: str, subject: str = "", **details: Any) -> None:
        """Leave an entry in the tenant's audit."""
        self.audit(action, subject, place=self.audit_place(), details=details)

    def audit_place(self) -> AuditPlace:
        """Whose chain the tenant's audit is."""
        return self.access.audit_place(self.environment, self.tenant_id)

    def listing(self, what: str, *parameters: object) -> str:
        """The name of a list of the tenant, which cursors are bound to."""
        return "\n".join(map(repr, (self.environment, self.tenant_id, what, *parameters)))


async def calling(request: Request) -> Caller:
    """The caller of a request that concerns no tenant, or all of them."""
    service, principal = service_of(request), await _principal(request)
    return Caller(service, service.access(principal), request_id_of(request))


async def calling_for_tenant(
    request: Request,
    environment: Annotated[
        str, Path(description="The environment's name.", min_length=1, max_length=200, examples=["default"])
    ],
    tenant: Annotated[
        str, Path(description="The tenant's id.", min_length=1, max_length=200, examples=["acme"])
    ],
) -> TenantCaller:
    """The caller of a request that concerns one tenant."""
    service, principal = service_of(request), await _principal(request)
    # What is not the principal's business counts for nobody, whether or not it is there.
    if principal.sees(environment, tenant):
        await _count(service, "tenant", environment, tenant)
    return TenantCaller(service, service.access(principal), request_id_of(request), environment, tenant)


async def _principal(request: Request) -> Principal:
    """Who asks, counted. What the worker knows by itself is not worth a change of threads."""
    service = service_of(request)
    principal = known_at_once(request)
    if principal is None:
        principal = await run_in_threadpool(authenticated, request)
    await _count(service, "principal", principal.kind, principal.id)
    return principal


async def _count(service: Service, kind: str, *names: str) -> None:
    if not service.limits.count_at_once(kind, *names):
        await run_in_threadpool(service.limits.count, kind, *names)


async def conditions(
    if_match: Annotated[str | None, Header(description="Only if it is this version.")] = None,
    if_none_match: Annotated[
        str | None, Header(description="`*`: only if there is none; a tag: only if it is another one.")
    ] = None,
) -> Conditions:
    """What the request says of the version that it was made for."""
    return Conditions(if_match, if_none_match)


Calling = Annotated[Caller, Depends(calling)]
TenantCalling = Annotated[TenantCaller, Depends(calling_for_tenant)]
Conditional = Annotated[Conditions, Depends(conditions)]
