"""The caller of a request: authentication, what the principal may access, conditions, and audit entries.

A request's API key or session becomes a principal, once for each request. Routes reach tenants through
``TenantCaller`` alone.
"""

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Header, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from freezeframe.asgi.problems import request_id_of
from freezeframe.errors import InvalidOption, NotAllowed, UnreadableRequest
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.observation import note
from freezeframe.service.access.access import TenantAccess
from freezeframe.service.access.audit import AuditedOperation, AuditScope
from freezeframe.service.access.keys import Principal, Scope, unknown_caller
from freezeframe.service.jobs import TenantJob
from freezeframe.service.service import Service
from freezeframe.store import Tenant
from freezeframe.store.model.update_options import Author, RequestContext
from freezeframe.store.tenant import with_check, with_request
from freezeframe.store.transaction.conditions import TENANT, Conditions, Subject

JOB_PREFIX = "request-"


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """Principal, Idempotency-Key and target of a request; ``target`` is its method and its path."""

    principal: str
    key: str
    target: str

    @property
    def job_id(self) -> str:
        """The job id of the version that the request makes: no one else's key and no other route has it."""
        text = json.dumps([self.principal, self.key, self.target])
        return f"{JOB_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:32]}"


SESSION_COOKIE = "freezeframe_session"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def service_of(request: Request) -> Service:
    """Return the service that the application was made with."""
    service = request.app.state.service
    assert isinstance(service, Service)  # noqa: S101 - set by create_application
    return service


def authenticate(request: Request) -> Principal:
    """Return the principal of ``Authorization: Bearer``, ``x-api-key`` or the cookie; look it up once."""
    known = getattr(request.state, "principal", None)
    if isinstance(known, Principal):
        return known
    principal = identify(request)
    request.state.principal = principal
    return principal


def known_at_once(request: Request) -> Principal | None:
    """Return the principal of a request, if it is known without a query to the control database."""
    known = getattr(request.state, "principal", None)
    if isinstance(known, Principal):
        return known
    if _may_be_repeated(request):
        return None
    principal = service_of(request).keys.from_cache(_key_of(request))
    if principal is not None:
        request.state.principal = principal
    return principal


def _key_of(request: Request) -> str:
    """Return the API key in the request; empty if it has none."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")


def identify(request: Request) -> Principal:
    """Look the principal up again, because its key or session may have ended."""
    service, key = service_of(request), _key_of(request)
    if key:
        return service.keys.authenticate(key, anew=_may_be_repeated(request))
    token = request.cookies.get(SESSION_COOKIE, "")
    if not token:
        raise unknown_caller()
    principal = service.sessions.authenticate(token)
    require_same_origin(request)
    return principal


def _may_be_repeated(request: Request) -> bool:
    """Return whether an earlier request may answer this one; its rights are then looked up anew."""
    return "idempotency-key" in request.headers


def keep_session(request: Request, response: Response, token: str) -> None:
    """Set a session's token as a cookie that no script can read (``HttpOnly``)."""
    response.set_cookie(
        SESSION_COOKIE,
        token,
        max_age=int(service_of(request).settings.service_session_hours * 3600),
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )


def public_address(request: Request) -> str:
    """Return the service's address as browsers know it."""
    return service_of(request).settings.service_url.rstrip("/") or str(request.base_url).rstrip("/")


def is_secure(request: Request) -> bool:
    """Return whether browsers reach the service by https, which a proxy in front may terminate."""
    return urlsplit(public_address(request)).scheme == "https"


def require_same_origin(request: Request) -> None:
    """Refuse a cross-site change that carries a signed-in user's session cookie."""
    if request.method in _SAFE_METHODS:
        return
    origin = urlsplit(request.headers.get("origin", ""))
    if not origin.netloc or origin.netloc != request.headers.get("host", ""):
        raise NotAllowed(
            "A change with a session must come from the service's own pages.",
            cause="The request's Origin is missing, or another site.",
            remedy="Use a key for programs.",
        )


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
        """The principal as histories show it: a person who is called as a key is, is marked as a person."""
        name = self.principal.name
        return name if self.principal.kind == "key" else f"person {name}"

    def audit(
        self,
        action: str,
        subject: str = "",
        *,
        scope: AuditScope | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Write an audit entry; it is durable when this returns."""
        self.service.audit.write(
            scope or AuditScope(), subject=subject, details=details, **self._trace(action)
        )

    def audit_service_change(
        self,
        action: str,
        *subjects: str,
        scope: AuditScope | Sequence[AuditScope] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[AuditedOperation]:
        """Open a ``with`` block for a change; its audit entry is durable before the block begins."""
        self.require_unchanged()
        return self.service.audit.operation(
            scope or AuditScope(), subjects or ("",), details=details, **self._trace(action)
        )

    def require_unchanged(self) -> None:
        """Refuse to go on where the caller's rights are no longer what they were at the request's start."""
        # A body may be under way for minutes after its first bytes were allowed.
        now, before = self.identify_again(), self.principal
        rights = [(item.scopes, item.environments, item.tenants) for item in (now, before)]
        if rights[0] != rights[1]:
            raise NotAllowed(
                "The caller's rights changed during the request.",
                cause="Nothing was changed.",
                remedy="Send the request again.",
            )

    def new_id(self) -> str:
        """Return an id for what the request creates; the same again under the same Idempotency-Key."""
        return uuid.uuid4().hex if self.identity is None else self.identity.job_id

    def new_job_id(self, chosen: str | None = None, prefix: str = "") -> str:
        """Return the id of the job that the request queues: the chosen one, or its Idempotency-Key."""
        given = chosen or (None if self.identity is None else self.identity.key)
        if given is None:
            return f"{prefix}{uuid.uuid4().hex}"
        if "/" in given or given in {".", ".."}:
            raise InvalidOption(
                f"{given!r} cannot be the id of a job over HTTP.",
                cause="The id is a part of the job's address, where a slash, `.` and `..` lead elsewhere.",
                remedy="Send a job_id or Idempotency-Key without slashes, for example sync-2026-11-28.",
            )
        return given

    def request_context(self) -> RequestContext:
        """Return the request context that is recorded with versions of tenants."""
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
    needs_reasons: bool
    """Whether a person's session makes the request, and the service requires reasons of them."""

    def author(self, message: str) -> Author:
        """Return who makes a change and why; a reason that is required must not be missing."""
        if self.needs_reasons and not message.strip():
            raise InvalidOption(
                "The change has no reason.",
                cause="The service requires one of what a person changes (service_requires_reasons).",
                remedy="Say why in the message.",
            )
        return Author(self.who, message)

    def tenant(self, scope: Scope, subject: Subject | None = TENANT) -> Tenant:
        """Return the tenant, if the principal has ``scope``; see ``TenantAccess.tenant`` and ``changing``."""
        found = self.access.tenant(self.environment, self.tenant_id, scope)
        return found if scope.endswith(":read") else self.changing(found, subject)

    def changing(self, tenant: Tenant, subject: Subject | None = TENANT, job_id: str = "") -> Tenant:
        """Return the tenant for a change: its commits keep the request's conditions and the service's limits.

        The conditions are about ``subject``. With None each part of the change has conditions of its own,
        which its commit checks, and the request's are about the tenant. They are checked at once as well, so
        that a refusal comes before the audit entry; a request whose job is committed already is answered
        from that job.
        """
        context, log = self.request_context(), tenant.context.log
        conditions = self.conditions if subject else replace(self.conditions, strict=False)
        about = subject or TENANT
        if conditions.are_given or conditions.strict:
            ids = {context.job_id, job_id or None, None if self.identity is None else self.identity.key}
            if not any(log.known_job(log.current_state(), id_) for id_ in ids):
                conditions.require_now(about, tenant.context)
        checked = with_check(tenant, conditions.at_commit(about))
        return with_request(with_check(checked, self.service.stored_bytes.check_commit), context)

    def note(self, action: str, subject: str = "", **details: Any) -> None:
        """Write an entry to the tenant's audit."""
        self.audit(action, subject, scope=self.audit_scope(), details=details)

    def note_unsealing(self, path: str, **details: Any) -> None:
        """Require the right to open a sealed file, and write its opening to the audit."""
        self.principal.require("secrets:read")
        self.note("file.unseal", path, **details)

    @contextmanager
    def audit_change(self, action: str, *subjects: str, **details: Any) -> Iterator[AuditedOperation]:
        """Open a ``with`` block for a change of the tenant; its audit entry is durable before it begins."""
        with self.audit_service_change(action, *subjects, scope=self.audit_scope(), details=details) as begun:
            yield begun

    def folder(self) -> str:
        """Return the tenant's folder in the store; no other tenant ever has it, also none of the same id."""
        return self.access.folder(self.environment, self.tenant_id)

    def job(self, job_id: str) -> TenantJob:
        """Return the tenant's job of that id."""
        return TenantJob(self.environment, self.tenant_id, job_id, self.folder())

    def audit_scope(self) -> AuditScope:
        """Return the tenant as the audit names it."""
        return self.access.audit_scope(self.environment, self.tenant_id)

    def list_name(self, what: str, *parameters: object) -> str:
        """Return the name of a list of the tenant, which cursors are bound to."""
        return "\n".join(map(repr, (self.environment, self.tenant_id, what, *parameters)))


async def request_caller(request: Request) -> Caller:
    """Return the caller of a request that is not about one tenant."""
    service, principal = service_of(request), await counted_principal(request)
    identity = _request_identity(request, principal)
    again = partial(identify, request)
    return Caller(service, service.access(principal), request_id_of(request), identity, again)


_EnvironmentText = Annotated[
    str, Path(description="The environment's name.", min_length=1, max_length=200, examples=["default"])
]


async def request_tenant_caller(
    request: Request,
    environment: _EnvironmentText,
    tenant: Annotated[
        str, Path(description="The tenant's id.", min_length=1, max_length=200, examples=["acme"])
    ],
) -> TenantCaller:
    """Return the caller of a request about one tenant."""
    service, principal = service_of(request), await counted_principal(request)
    environment_name, tenant_id = EnvironmentName(environment), TenantId(tenant)
    note(environment=environment_name, tenant=tenant_id)
    request_id, identity = request_id_of(request), _request_identity(request, principal)
    again, access = partial(identify, request), service.access(principal)
    return TenantCaller(
        service,
        access,
        request_id,
        identity,
        again,
        environment_name,
        tenant_id,
        _conditions(request),
        needs_reasons=service.settings.service_requires_reasons and not _key_of(request),
    )


def _conditions(request: Request) -> Conditions:
    """Return the conditions of a request; each header may come in several lines (RFC 9110, section 5.3)."""
    values = [
        ", ".join(found) if (found := request.headers.getlist(name)) else None
        for name in ("if-match", "if-none-match")
    ]
    return Conditions(values[0], values[1], service_of(request).settings.service_requires_conditions)


def _request_identity(request: Request, principal: Principal) -> RequestIdentity | None:
    """Return the identity of a POST that has an Idempotency-Key."""
    key = request.headers.get("idempotency-key")
    if key is None or request.method != "POST":
        return None
    if not key.isprintable() or not 0 < len(key) <= IDEMPOTENCY_KEY_LENGTH_MAX:
        raise UnreadableRequest(
            "The Idempotency-Key is not valid.",
            remedy=f"Send 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} printable letters, for example a UUID.",
        )
    target = f"{request.method} {request.url.path}?{request.url.query}"
    return RequestIdentity(f"{principal.kind}:{principal.id}", key, target)


async def counted_principal(request: Request) -> Principal:
    """Return the principal; its request is counted once. A cached one is not worth a change of threads."""
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
    _caller: Annotated[Caller, Depends(request_caller)], environment: _EnvironmentText
) -> EnvironmentName:
    """Return the environment of a request that is not about one tenant; checked after authentication."""
    return EnvironmentName(environment)


async def describe_conditions(
    if_match: Annotated[str | None, Header(description="Only if it is this version.")] = None,
    if_none_match: Annotated[
        str | None, Header(description="`*`: only if there is none; a tag: only if it is another one.")
    ] = None,
) -> None:
    """Return the headers of conditions in the API's description."""


Calling = Annotated[Caller, Depends(request_caller)]
Environment = Annotated[EnvironmentName, Depends(named_environment)]
TenantCalling = Annotated[TenantCaller, Depends(request_tenant_caller)]
CONDITIONAL = [Depends(describe_conditions)]
"""Dependencies of a route that keeps the request's conditions."""
