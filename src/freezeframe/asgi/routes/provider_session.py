"""Sign-in by an identity provider: the redirect to it, and the session on return."""

from __future__ import annotations

import html
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from freezeframe.asgi.authentication import is_secure, keep_session, public_address, service_of
from freezeframe.asgi.dependencies.checked_route import CheckedRoute
from freezeframe.asgi.models.keys import SignInWays
from freezeframe.asgi.problems import problem_response, request_id_of, status_of, to_openapi
from freezeframe.asgi.routes.routing import api_router
from freezeframe.asgi.routes.session import begin_session, log_refusal
from freezeframe.clock import now_ms
from freezeframe.errors import FreezeframeError, NotAuthenticated, NotFound
from freezeframe.service.identity.identity_provider import IdentityProvider, new_sign_in_attempt
from freezeframe.service.identity.sessions import provided_person
from freezeframe.service.identity.sign_in_ticket import LIFE_SECONDS, Ticket, local_page

# A provider may add its own parameters to the redirect (RFC 6749, 4.1.2).
router = api_router("session", CheckedRoute)
_TICKET = "freezeframe_sign_in"
_PLACE = "/api/v1/session/provider"
_RETURN = f"{_PLACE}/return"
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Not signed in</title>
<h1>{problem}</h1><p>{cause}</p><p>{remedy}</p><p><a href="/sign-in">Sign in</a></p></html>
"""


@router.get("/session/ways")
def sign_in_ways(request: Request) -> SignInWays:
    """How one can sign in here; asked by the sign-in page, which knows nobody yet."""
    provider = service_of(request).provider
    return SignInWays(provider=None if provider is None else provider.name)


@router.get(
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


@router.get(
    "/session/provider/return",
    status_code=303,
    response_class=RedirectResponse,
    responses={303: {"description": "To the page that was asked for, signed in."}, **to_openapi(404)},
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
    """A page for a browser, a problem document for a program."""
    if "text/html" not in request.headers.get("accept", ""):
        return problem_response(refusal, request_id_of(request))
    told = {name: html.escape(getattr(refusal, name)) for name in ("problem", "cause", "remedy")}
    headers = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"}
    return HTMLResponse(_PAGE.format(**told), status_of(type(refusal)), headers)


def _provider(request: Request) -> IdentityProvider:
    provider = service_of(request).provider
    if provider is None:
        raise NotFound("No provider is set to sign in with.", remedy="Sign in with a key.")
    return provider


def _return_address(request: Request) -> str:
    return f"{public_address(request)}{_RETURN}"
