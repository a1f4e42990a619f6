"""Request context of a route: the principal, what it may access, and the audit entries of its changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request
from fastapi.concurrency import run_in_threadpool

from freezeframe.asgi.authentication import authenticate, identify, known_at_once, service_of
from freezeframe.asgi.problems import request_id_of
from freezeframe.errors import NotAllowed, UnreadableRequest
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.observation import note
from freezeframe.service.access.access import TenantAccess
from freezeframe.service.access.audit import AuditedOperation, AuditPlace
from freezeframe.service.base.idempotency import RequestIdentity
from freezeframe.service.identity.principal import Principal, Scope
from freezeframe.service.jobs.jobs import TenantJob
from freezeframe.service.service import Service
from freezeframe.store import Tenant
from freezeframe.store.model.update_options import RequestContext
from freezeframe.store.transaction.conditions import TENANT, Conditions, Subject

IDEMPOTENCY_KEY_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Caller:
    """One request's principal before the service."""

    service: Service
    access: TenantAccess
    request_id: str
    identity: RequestIdentity | None
    identify_again: Callable[[], Principal] = field(repr=False)
    """Looks the principal up anew."""

    @property
    def principal(self) -> Principal:
        """The principal of the request."""
        return self.access.principal

    @property
    def who(self) -> str:
        """The principal as histories show it."""
        return self.principal.name

    def audit(
        self,
        action: str,
        subject: str = "",
        *,
        place: AuditPlace | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Write an audit entry; it is durable when this returns."""
        self.service.audit.write(
            place or AuditPlace(), subject=subject, details=details, **self._trace(action)
        )

    def audit_service_change(
        self,
        action: str,
        *subjects: str,
        place: AuditPlace | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[AuditedOperation]:
        """A ``with`` block for a change, entered after its audit entry is durable; see ``undertaking``."""
        self._require_unchanged()
        return self.service.audit.operation(
            place or AuditPlace(), subjects or ("",), details=details, **self._trace(action)
        )

    def _require_unchanged(self) -> None:
        # A body may be under way for minutes after its first bytes were allowed.
        now, before = self.identify_again(), self.principal
        rights = [(item.scopes, item.environments, item.tenants) for item in (now, before)]
        if rights[0] != rights[1]:
            raise NotAllowed(
                "The rights of this caller changed while the request was under way.",
                cause="Nothing was changed by it.",
                remedy="Send the request again.",
            )

    def new_id(self) -> str:
        """An id for what the request creates; the same again under the same Idempotency-Key."""
        return uuid.uuid4().hex if self.identity is None else self.identity.job_id

    def new_job_id(self, prefix: str = "") -> str:
        """An id for the job that the request puts into the queue: its Idempotency-Key, if it has one."""
        return f"{prefix}{uuid.uuid4().hex}" if self.identity is None else self.identity.key

    def request_context(self) -> RequestContext:
        """The request context that is recorded with versions of tenants."""
        job_id = None if self.identity is None else self.identity.job_id
        return RequestContext(self.request_id, job_id)

    def _trace(self, action: str) -> dict[str, str]:
        who = f"{self.principal.kind}:{self.principal.id} {self.principal.name}"
        return {"principal": who, "action": action, "request_id": self.request_id}


@dataclass(frozen=True, slots=True)
class TenantCaller(Caller):
    """One request's principal before one tenant; nothing is opened before its scope is named."""

    environment: EnvironmentName
    tenant_id: TenantId
    conditions: Conditions

    def tenant(self, scope: Scope, subject: Subject | None = TENANT) -> Tenant:
        """The tenant, if the principal has ``scope``; see ``TenantAccess.tenant`` and ``changing``."""
        found = self.access.tenant(self.environment, self.tenant_id, scope)
        return found if scope.endswith(":read") else self.changing(found, subject)

    def changing(self, tenant: Tenant, subject: Subject | None = TENANT, job_id: str = "") -> Tenant:
        """The tenant for a change: its commits keep the request's conditions and the service's limits.

        The conditions are about ``subject``. With None each part of the change has conditions of its own,
        which its commit checks, and the request's are about the tenant. They are checked at once as well, so
        that a refusal comes before the audit entry; a request whose job is committed already is answered
        from that job.
        """
        context, log = self.request_context(), tenant.context.log
        wanted = self.conditions if subject else replace(self.conditions, strict=False)
        about = subject or TENANT
        if wanted.are_given or wanted.strict:
            ids = {context.job_id, job_id or None, None if self.identity is None else self.identity.key}
            if not any(log.known_job(log.current_state(), id_) for id_ in ids):
                wanted.require_now(about, tenant.context)
        checked = tenant.with_check(wanted.at_commit(about))
        return checked.with_check(self.service.stored_bytes.check_commit).on(context)

    def note(self, action: str, subject: str = "", **details: Any) -> None:
        """Write an entry to the tenant's audit."""
        self.audit(action, subject, place=self.audit_place(), details=details)

    def note_unsealing(self, path: str, **details: Any) -> None:
        """Require the right to open a sealed file, and write its opening to the audit."""
        self.principal.require("secrets:read")
        self.note("file.unseal", path, **details)

    @contextmanager
    def audit_change(self, action: str, *subjects: str, **details: Any) -> Iterator[AuditedOperation]:
        """A ``with`` block for a change of the tenant; it is entered after the audit entry is durable."""
        with self.audit_service_change(action, *subjects, place=self.audit_place(), details=details) as begun:
            yield begun

    def folder(self) -> str:
        """The tenant's folder in the store; no other tenant ever has it, also none of the same id."""
        return self.access.folder(self.environment, self.tenant_id)

    def job(self, job_id: str) -> TenantJob:
        """The tenant's job of that id."""
        return TenantJob(self.environment, self.tenant_id, job_id, self.folder())

    def audit_place(self) -> AuditPlace:
        """The tenant as the audit names it."""
        return self.access.audit_place(self.environment, self.tenant_id)

    def list_name(self, what: str, *parameters: object) -> str:
        """The name of a list of the tenant, which cursors are bound to."""
        return "\n".join(map(repr, (self.environment, self.tenant_id, what, *parameters)))


async def request_caller(request: Request) -> Caller:
    """The caller of a request that is not about one tenant."""
    service, principal = service_of(request), await counted_principal(request)
    identity = _identity(request, principal)
    again = partial(identify, request)
    return Caller(service, service.access(principal), request_id_of(request), identity, again)


async def request_tenant_caller(
    request: Request,
    environment: Annotated[
        str, Path(description="The environment's name.", min_length=1, max_length=200, examples=["default"])
    ],
    tenant: Annotated[
        str, Path(description="The tenant's id.", min_length=1, max_length=200, examples=["acme"])
    ],
) -> TenantCaller:
    """The caller of a request about one tenant."""
    service, principal = service_of(request), await counted_principal(request)
    place, known = EnvironmentName(environment), TenantId(tenant)
    note(environment=place, tenant=known)
    request_id, identity = request_id_of(request), _identity(request, principal)
    again, access = partial(identify, request), service.access(principal)
    return TenantCaller(service, access, request_id, identity, again, place, known, _conditions(request))


def _conditions(request: Request) -> Conditions:
    """The conditions of a request; each header may come in several lines (RFC 9110, section 5.3)."""
    given = [
        ", ".join(found) if (found := request.headers.getlist(name)) else None
        for name in ("if-match", "if-none-match")
    ]
    return Conditions(given[0], given[1], service_of(request).settings.service_requires_conditions)


def _identity(request: Request, principal: Principal) -> RequestIdentity | None:
    """The identity of a POST that has an Idempotency-Key."""
    key = request.headers.get("idempotency-key")
    if key is None or request.method != "POST":
        return None
    if not key.isprintable() or not 0 < len(key) <= IDEMPOTENCY_KEY_LENGTH_MAX:
        raise UnreadableRequest(
            "The Idempotency-Key cannot be one.",
            remedy=f"Send 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} printable letters, a UUID for example.",
        )
    target = f"{request.method} {request.url.path}?{request.url.query}"
    return RequestIdentity(f"{principal.kind}:{principal.id}", key, target)


async def counted_principal(request: Request) -> Principal:
    """The principal; its request is counted once. A cached one is not worth a change of threads."""
    service = service_of(request)
    principal = known_at_once(request)
    if principal is None:
        principal = await run_in_threadpool(authenticate, request)
    note(principal=f"{principal.kind}:{principal.id}")
    if not getattr(request.state, "is_counted", False):
        service.limits.spend(principal)
        request.state.is_counted = True
    return principal


async def named_environment(
    _caller: Annotated[Caller, Depends(request_caller)],
    environment: Annotated[
        str, Path(description="The environment's name.", min_length=1, max_length=200, examples=["default"])
    ],
) -> EnvironmentName:
    """The environment of a request that is not about one tenant; checked after authentication."""
    return EnvironmentName(environment)


async def describe_conditions(
    if_match: Annotated[str | None, Header(description="Only if it is this version.")] = None,
    if_none_match: Annotated[
        str | None, Header(description="`*`: only if there is none; a tag: only if it is another one.")
    ] = None,
) -> None:
    """The headers of conditions in the API's description."""


Calling = Annotated[Caller, Depends(request_caller)]
Environment = Annotated[EnvironmentName, Depends(named_environment)]
TenantCalling = Annotated[TenantCaller, Depends(request_tenant_caller)]
CONDITIONAL = [Depends(describe_conditions)]
"""Dependencies of a route that keeps the request's conditions."""
