"""Sign-in, sign-out, and the current principal."""

import html
import logging
from contextlib import AbstractContextManager
from typing import Annotated, Literal

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ConfigDict, Field

from freezeframe.asgi.caller import (
    SESSION_COOKIE,
    Calling,
    is_secure,
    keep_session,
    public_address,
    require_same_origin,
    service_of,
)
from freezeframe.asgi.problems import problem_response, request_id_of, status_of, to_openapi
from freezeframe.asgi.routing import CheckedRoute, RequestModel, ResponseModel, api_router, example
from freezeframe.clock import now_ms
from freezeframe.errors import FreezeframeError, NotAuthenticated, NotFound
from freezeframe.service.access.audit import AuditedOperation, AuditScope
from freezeframe.service.access.identity_provider import IdentityProvider, new_sign_in_attempt
from freezeframe.service.access.keys import Principal, Scope
from freezeframe.service.access.sessions import LIFE_SECONDS, Person, Ticket, local_page, provided_person
from freezeframe.service.service import Service


class KeySignIn(RequestModel):
    """A key that its owner looks at the console with."""

    model_config = ConfigDict(json_schema_extra=example(key="id.secret"))

    key: str = Field(min_length=1, max_length=200, pattern=r"\.", repr=False)


class LinkSignIn(RequestModel):
    """What is behind the `#` of the link that `freezeframe serve` printed; it signs in once."""

    model_config = ConfigDict(json_schema_extra=example(link="from-the-link"))

    link: str = Field(min_length=1, max_length=300, repr=False)


class SignInWays(ResponseModel):
    """How one signs in: with a key always, and with accounts of `provider` if there is one."""

    provider: str | None


class Who(ResponseModel):
    """The caller and their permissions."""

    kind: Literal["key", "person"]
    id: str
    name: str
    scopes: list[Scope]
    environments: list[str] | None
    tenants: list[str] | None
    body_bytes_max: int = Field(
        description="The most bytes that a request may bring; larger files are staged as blobs."
    )
    requires_reasons: bool = Field(description="Whether a change needs a message that says why.")


router = api_router("session")
_log = logging.getLogger("freezeframe.access")


@router.get("/session")
def show_session(caller: Calling) -> Who:
    """The caller and their permissions."""
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
    """Write a refused sign-in to the log; the audit has entries of authenticated callers only."""
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
        AuditScope(),
        ("",),
        principal=f"{principal.kind}:{principal.id} {principal.name}",
        action="session.begin",
        request_id=request_id_of(request),
        details=details,
    )


@router.delete("/session", status_code=204, response_class=Response)
def sign_out(request: Request, caller: Calling) -> Response:
    """End the caller's session."""
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
        requires_reasons=service.settings.service_requires_reasons,
    )


# A provider may add its own parameters to the redirect (RFC 6749, 4.1.2).
provider_router = api_router("session", CheckedRoute)
_TICKET = "freezeframe_sign_in"
_PLACE = "/api/v1/session/provider"
_RETURN = f"{_PLACE}/return"
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Not signed in</title>
<h1>{problem}</h1><p>{cause}</p><p>{remedy}</p><p><a href="/sign-in">Sign in</a></p></html>
"""


@provider_router.get("/session/ways")
def sign_in_ways(request: Request) -> SignInWays:
    """The ways to sign in, for the sign-in page."""
    provider = service_of(request).provider
    return SignInWays(provider=None if provider is None else provider.name)


@provider_router.get(
    "/session/provider",
    status_code=302,
    response_class=RedirectResponse,
    responses={302: {"description": "To the provider."}, **to_openapi(404)},
)
def leave_for_provider(
    request: Request,
    page: Annotated[
        str | None, Query(alias="next", max_length=2000, description="The page to end at.")
    ] = None,
) -> Response:
    """Go to the identity provider and sign in there."""
    service, provider = service_of(request), _provider(request)
    attempt = new_sign_in_attempt()
    answer = RedirectResponse(provider.address(attempt, _return_address(request)), 302)
    ticket = service.tickets.encode(Ticket(attempt, local_page(page)))
    # Lax: the browser comes back by a link from another site, and must bring it along.
    answer.set_cookie(
        _TICKET,
        ticket,
        max_age=LIFE_SECONDS,
        path=_PLACE,
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    answer.headers["Cache-Control"] = "no-store"
    return answer


@provider_router.get(
    "/session/provider/return",
    status_code=303,
    response_class=RedirectResponse,
    responses={303: {"description": "To the requested page, signed in."}, **to_openapi(404)},
)
def return_from_provider(
    request: Request,
    code: Annotated[str, Query(max_length=4000)] = "",
    state: Annotated[str, Query(max_length=500)] = "",
    error: Annotated[str, Query(max_length=500)] = "",
    iss: Annotated[str | None, Query(max_length=2000, description="See RFC 9207.")] = None,
) -> Response:
    """Come back from the identity provider, with a session where all is well."""
    try:
        answer = _enter(request, code, state, error, iss)
    except FreezeframeError as refusal:
        if isinstance(refusal, NotAuthenticated):
            log_refusal(request, "provider")
        answer = _refuse(request, refusal)
    answer.delete_cookie(_TICKET, path=_PLACE, httponly=True, samesite="lax")
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _enter(request: Request, code: str, state: str, error: str, issuer: str | None) -> Response:
    service, provider = service_of(request), _provider(request)
    ticket = service.tickets.read(request.cookies.get(_TICKET, ""), state)
    if error or not code or issuer not in {None, provider.issuer}:
        raise NotAuthenticated(
            "The provider did not sign you in.",
            cause=f"It says {error!r}." if error else "It sent no code, or another one sent it.",
            remedy="Begin again at the sign-in page.",
        )
    # Each ticket is for one return, whatever the provider thinks of a code that comes twice.
    service.sessions.use_once(service.tickets.name(ticket), now_ms() + LIFE_SECONDS * 1000)
    account = provider.account(ticket.attempt, code, _return_address(request))
    person = provided_person(account.issuer, account.subject, account.name, account.role, account.bounds)
    answer = RedirectResponse(ticket.page, 303)
    keep_session(request, answer, begin_session(request, person))
    return answer


def _refuse(request: Request, refusal: FreezeframeError) -> Response:
    """Return a page for a browser, a problem document for a program."""
    if "text/html" not in request.headers.get("accept", ""):
        return problem_response(refusal, request_id_of(request))
    texts = {name: html.escape(getattr(refusal, name)) for name in ("problem", "cause", "remedy")}
    headers = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"}
    return HTMLResponse(_PAGE.format(**texts), status_of(type(refusal)), headers)


def _provider(request: Request) -> IdentityProvider:
    provider = service_of(request).provider
    if provider is None:
        raise NotFound("No provider is set to sign in with.", remedy="Sign in with a key.")
    return provider


def _return_address(request: Request) -> str:
    return f"{public_address(request)}{_RETURN}"
