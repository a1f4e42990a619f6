"""The caller of a request: authentication, and the environment and tenant that its path names.

A request's API key or session becomes a principal, once for each request.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Header, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from freezeframe.asgi.problems import request_id_of
from freezeframe.errors import NotAllowed, UnreadableRequest
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.observation import note
from freezeframe.service.access.access import TenantAccess
from freezeframe.service.access.keys import Principal, unknown_caller
from freezeframe.service.operations.caller import Caller, RequestIdentity, TenantCaller
from freezeframe.service.service import Service
from freezeframe.store.transaction.conditions import Conditions

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


async def request_caller(request: Request) -> Caller:
    """Return the caller of a request that is not about one tenant."""
    return Caller(*_caller(request, await counted_principal(request)))


def _caller(
    request: Request, principal: Principal
) -> tuple[Service, TenantAccess, str, RequestIdentity | None, Callable[[], Principal], bool]:
    """Return what each caller begins with."""
    service = service_of(request)
    identity, again = _request_identity(request, principal), partial(identify, request)
    needs_reasons = service.settings.service_requires_reasons and not _key_of(request)
    return service, service.access(principal), request_id_of(request), identity, again, needs_reasons


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
    principal = await counted_principal(request)
    environment_name, tenant_id = EnvironmentName(environment), TenantId(tenant)
    note(environment=environment_name, tenant=tenant_id)
    return TenantCaller(*_caller(request, principal), environment_name, tenant_id, _conditions(request))


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
