"""Sign-in, sign-out, and the current principal."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

from fastapi import Request, Response

from freezeframe.asgi.authentication import (
    SESSION_COOKIE,
    is_secure,
    keep_session,
    require_same_origin,
    service_of,
)
from freezeframe.asgi.dependencies.caller import Calling
from freezeframe.asgi.models.keys import KeySignIn, LinkSignIn, Who
from freezeframe.asgi.problems import request_id_of
from freezeframe.asgi.routes.routing import api_router
from freezeframe.errors import NotAuthenticated
from freezeframe.service.access.audit import AuditedOperation, AuditPlace
from freezeframe.service.identity.principal import Principal
from freezeframe.service.identity.sessions import Person
from freezeframe.service.service import Service

router = api_router("session")
_log = logging.getLogger("freezeframe.access")


@router.get("/session")
def show_session(caller: Calling) -> Who:
    """Who asks, and what they may do."""
    return _who(caller.service, caller.principal)


@router.post("/session")
def sign_in(request: Request, response: Response, order: KeySignIn | LinkSignIn) -> Who:
    """Sign in with a key, or with a link; the session is in a cookie that no script can read."""
    require_same_origin(request)
    service = service_of(request)
    try:
        if isinstance(order, KeySignIn):
            principal = service.keys.authenticate(order.key)
            with _beginning(request, principal):
                token = service.sessions.begin_with_key(order.key)
        else:
            person = service.enter_by_link(order.link)
            principal, token = person.principal(), begin_session(request, person)
    except NotAuthenticated:
        log_refusal(request, "key" if isinstance(order, KeySignIn) else "link")
        raise
    keep_session(request, response, token)
    return _who(service, principal)


def log_refusal(request: Request, way: str) -> None:
    """Write a refused sign-in to the log; the audit is of those who are known."""
    address = request.client.host if request.client else ""
    _log.warning("sign-in refused", extra={"way": way, "client": address})


def begin_session(request: Request, person: Person) -> str:
    """Begin the session of an authenticated person, after its audit entry is durable; its token."""
    with _beginning(request, person.principal(), role=person.role):
        return service_of(request).sessions.begin(person)


def _beginning(
    request: Request, principal: Principal, **details: str
) -> AbstractContextManager[AuditedOperation]:
    return service_of(request).audit.operation(
        AuditPlace(),
        ("",),
        principal=f"{principal.kind}:{principal.id} {principal.name}",
        action="session.begin",
        request_id=request_id_of(request),
        details=details,
    )


@router.delete("/session", status_code=204, response_class=Response)
def sign_out(request: Request, caller: Calling) -> Response:
    """End the session of who asks."""
    token = request.cookies.get(SESSION_COOKIE)
    if token is not None:
        with caller.audit_service_change("session.end"):
            caller.service.sessions.end(token)
    response = Response(status_code=204)
    response.delete_cookie(SESSION_COOKIE, path="/", secure=is_secure(request), httponly=True, samesite="lax")
    return response


def _who(service: Service, principal: Principal) -> Who:
    return Who(
        kind=principal.kind,
        id=principal.id,
        name=principal.name,
        scopes=sorted(principal.scopes),
        environments=None if principal.environments is None else sorted(principal.environments),
        tenants=None if principal.tenants is None else sorted(principal.tenants),
        body_bytes_max=service.settings.service_body_bytes_max,
    )
