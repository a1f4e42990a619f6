"""Signing in and out, and who one is."""

from __future__ import annotations

from fastapi import Request, Response

from freezeframe.asgi.authentication import SESSION_COOKIE, require_same_origin, service_of
from freezeframe.asgi.caller import Calling
from freezeframe.asgi.models.keys import KeySignIn, SignIn, Who
from freezeframe.asgi.problems import request_id_of
from freezeframe.asgi.routes.routing import api_router
from freezeframe.service.audit import AuditPlace
from freezeframe.service.people import NewSession, Person
from freezeframe.service.principal import Principal
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
    service.limits.count("sign-in", client)
    if isinstance(order, KeySignIn):
        principal = service.keys.authenticate(order.key)
        _keep(request, response, order.key)
        return _who(service, principal)
    service.limits.count("sign-in", order.name)
    person = service.people.verified(order.name, order.password)
    _keep(request, response, begun(request, person).token)
    return _who(service, person.principal())


def begun(request: Request, person: Person) -> NewSession:
    """A session of a person who has proved to be one, once the audit has it."""
    service = service_of(request)
    with service.audit.undertaking(
        AuditPlace(),
        ("",),
        principal=f"person:{person.id} {person.name}",
        action="session.begin",
        request_id=request_id_of(request),
    ):
        return service.people.begin_session(person)


def _keep(request: Request, response: Response, token: str) -> None:
    response.set_cookie(
        SESSION_COOKIE,
        token,
        max_age=int(service_of(request).settings.service_session_hours * 3600),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


@router.delete("/session", status_code=204, response_class=Response)
def sign_out(request: Request, caller: Calling) -> Response:
    """End the session of who asks."""
    token = request.cookies.get(SESSION_COOKIE)
    if token is not None:
        with caller.auditing("session.end"):
            caller.service.people.sign_out(token)
    response = Response(status_code=204)
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="lax")
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
