"""Authentication: a request's API key or session becomes a principal, once for each request."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request, Response

from freezeframe.errors import NotAllowed
from freezeframe.service.identity.api_keys import unknown_caller
from freezeframe.service.identity.principal import Principal
from freezeframe.service.service import Service

SESSION_COOKIE = "freezeframe_session"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def service_of(request: Request) -> Service:
    """The service that the application was made with."""
    service = request.app.state.service
    assert isinstance(service, Service)  # noqa: S101 - set by create_application
    return service


def authenticate(request: Request) -> Principal:
    """The principal, by ``Authorization: Bearer``, ``x-api-key`` or the session's cookie; looked up once."""
    known = getattr(request.state, "principal", None)
    if isinstance(known, Principal):
        return known
    principal = identify(request)
    request.state.principal = principal
    return principal


def known_at_once(request: Request) -> Principal | None:
    """The principal of a request, if it is known without a query to the control database."""
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
    """The API key in the request; empty if it has none."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")


def identify(request: Request) -> Principal:
    """The principal, looked up anew, for a key or a session may have ended; errors as of ``authenticate``."""
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
    """Whether an earlier request may answer this one; its rights are then looked up anew."""
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
    """The service's address as browsers know it."""
    return service_of(request).settings.service_url.rstrip("/") or str(request.base_url).rstrip("/")


def is_secure(request: Request) -> bool:
    """Whether browsers reach the service by https, which a proxy in front may terminate."""
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
