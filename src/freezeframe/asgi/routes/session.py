"""Sign-in, sign-out, and the current principal."""

from __future__ import annotations

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
from freezeframe.asgi.models.keys import KeySignIn, SignIn, Who
from freezeframe.asgi.problems import request_id_of
from freezeframe.asgi.routes.routing import api_router
from freezeframe.errors import NotAuthenticated
from freezeframe.service.access.audit import AuditedOperation
from freezeframe.service.access.audit_entry import AuditPlace
from freezeframe.service.identity.key_sessions import is_of_key
from freezeframe.service.identity.people import NewSession, Person, is_provided
from freezeframe.service.identity.principal import Principal
from freezeframe.service.service import Service

router = api_router("session")


@router.get("/session")
def show_session(caller: Calling) -> Who:
    """Who asks, and what they may do."""
    return _who(caller.service, caller.principal)


@router.post("/session")
def sign_in(request: Request, response: Response, order: SignIn | KeySignIn) -> Who:
    """Sign in with name and password, or with a key; the session is in a cookie that no script can read."""
    require_same_origin(request)
    service = service_of(request)
    client = request.client.host if request.client else ""
    name = order.key.partition(".")[0] if isinstance(order, KeySignIn) else order.name
    service.limits.spend("sign-in address", (client,))
    service.limits.spend("sign-in", (client, name))
    try:
        if isinstance(order, KeySignIn):
            principal = service.keys.authenticate(order.key)
            with _beginning(request, principal):
                token = service.key_sessions.begin(order.key)
        else:
            person = service.people.verify(order.name, order.password)
            principal, token = person.principal(), begin_session(request, person).token
    except NotAuthenticated:
        note_refusal(request, name, "key" if isinstance(order, KeySignIn) else "password")
        raise
    keep_session(request, response, token)
    return _who(service, principal)


def note_refusal(request: Request, name: str, way: str) -> None:
    """Write an audit entry for a refused sign-in; ``name`` is the claimed name."""
    address = request.client.host if request.client else ""
    service_of(request).audit.write(
        AuditPlace(),
        principal=f"nobody {address}",
        action="session.refuse",
        subject=name,
        request_id=request_id_of(request),
        details={"way": way, "address": address},
    )


def begin_session(request: Request, person: Person) -> NewSession:
    """Begin the session of an authenticated person, after its audit entry is durable."""
    with _beginning(request, person.principal()):
        return service_of(request).people.begin_session(person)


def _beginning(request: Request, principal: Principal) -> AbstractContextManager[AuditedOperation]:
    return service_of(request).audit.operation(
        AuditPlace(),
        ("",),
        principal=f"{principal.kind}:{principal.id} {principal.name}",
        action="session.begin",
        request_id=request_id_of(request),
    )


@router.delete("/session", status_code=204, response_class=Response)
def sign_out(request: Request, caller: Calling) -> Response:
    """End the session of who asks."""
    token = request.cookies.get(SESSION_COOKIE)
    if token is not None:
        with caller.audit_service_change("session.end"):
            if is_of_key(token):
                caller.service.key_sessions.end(token)
            else:
                caller.service.people.sign_out(token)
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
        is_provided=principal.kind == "person" and is_provided(principal.id),
        body_bytes_max=service.settings.service_body_bytes_max,
    )
