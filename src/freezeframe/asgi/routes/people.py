"""People: invite, change, list; their passwords and sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from freezeframe.asgi.authentication import require_same_origin, service_of
from freezeframe.asgi.dependencies.caller import Caller, Calling
from freezeframe.asgi.models.people import (
    AcceptedInvitation,
    Invitation,
    NewPerson,
    PasswordChange,
    Person,
    PersonChange,
    PersonList,
    PersonSession,
    PersonSessions,
)
from freezeframe.asgi.problems import request_id_of, to_openapi
from freezeframe.asgi.routes.routing import api_router
from freezeframe.errors import InvalidOption
from freezeframe.service.access.audit_entry import AuditPlace
from freezeframe.service.identity.people import Person as KnownPerson
from freezeframe.service.identity.people import is_provided
from freezeframe.service.identity.people_administration import PeopleAdministration

router = api_router("people")
PersonId = Annotated[str, Path(min_length=1, max_length=60, description="The person's id.")]
SessionId = Annotated[str, Path(min_length=16, max_length=16, pattern="[0-9a-f]{16}", description="Its id.")]
_NOT_KEPT = {"Cache-Control": "no-store"}


@router.get("/people")
def list_people(caller: Calling) -> PersonList:
    """List the people, those that may no longer sign in too."""
    _administration(caller)
    return PersonList(people=[_person(one) for one in caller.service.people.list()])


@router.post("/people", status_code=201)
def invite_person(caller: Calling, order: NewPerson, response: Response) -> Invitation:
    """Make a person, with an invitation to set a password."""
    administration = _administration(caller)
    with caller.audit_service_change("person.create", order.name, details=order.model_dump(exclude={"name"})):
        made = caller.service.people.create(
            order.name,
            None,
            order.role,
            environments=order.environments,
            tenants=order.tenants,
            request=None if caller.identity is None else caller.identity.job_id,
        )
    response.headers.update(_NOT_KEPT)
    return Invitation(person=_person(made), invitation=administration.invitation(made.id))


@router.patch("/people/{person_id}", responses=to_openapi(404))
def change_person(caller: Calling, person_id: PersonId, order: PersonChange) -> Person:
    """Give a person another role or other bounds, or disable or enable them; what is left out stays."""
    administration = _administration(caller)
    given = order.model_dump(exclude_unset=True)
    if caller.principal.id == person_id:
        raise InvalidOption(
            "Nobody changes their own role, bounds or life here.",
            cause="A service without an admin could not be changed by anybody.",
            remedy="Have another admin do it, or use freezeframe person at the machine.",
        )
    known = administration.get(person_id)
    bounds: dict[str, list[str] | None] = {
        name: given[name] for name in ("environments", "tenants") if name in given
    }
    with caller.audit_service_change(_action(order), known.name, details=given):
        changed = administration.change(
            person_id, role=order.role, bounds=bounds, is_disabled=order.is_disabled
        )
    return _person(changed)


@router.post("/people/{person_id}/invitation", responses=to_openapi(404))
def reset_password(caller: Calling, person_id: PersonId, response: Response) -> Invitation:
    """Make an invitation with which the person sets a new password; the old one is good until then."""
    administration = _administration(caller)
    known = administration.get(person_id)
    with caller.audit_service_change("person.invite", known.name):
        invitation = administration.invitation(person_id)
    response.headers.update(_NOT_KEPT)
    return Invitation(person=_person(known), invitation=invitation)


@router.get("/people/{person_id}/sessions", responses=to_openapi(404))
def list_sessions(caller: Calling, person_id: PersonId) -> PersonSessions:
    """List where a person is signed in."""
    found = _administration(caller).sessions(person_id)
    return PersonSessions(sessions=[PersonSession.of(one) for one in found])


@router.delete(
    "/people/{person_id}/sessions", status_code=204, response_class=Response, responses=to_openapi(404)
)
def end_sessions(caller: Calling, person_id: PersonId) -> Response:
    """Sign a person out everywhere."""
    return _end(caller, person_id, None)


@router.delete(
    "/people/{person_id}/sessions/{session_id}",
    status_code=204,
    response_class=Response,
    responses=to_openapi(404),
)
def end_session(caller: Calling, person_id: PersonId, session_id: SessionId) -> Response:
    """End one session of a person; one that is over stays so."""
    return _end(caller, person_id, session_id)


@router.post("/session/password", status_code=204, response_class=Response)
def change_password(caller: Calling, order: PasswordChange) -> Response:
    """Change the password of who is signed in; all their sessions end."""
    if caller.principal.kind != "person" or is_provided(caller.principal.id):
        raise InvalidOption(
            "Who asks has no password here.",
            cause="It is a key, or an account at the identity provider.",
            remedy="Rotate the key, or change the password at the provider.",
        )
    # The same limit of tries as for sign-in.
    caller.service.limits.spend("sign-in", ("password", caller.principal.id))
    with caller.audit_service_change("person.password", caller.principal.name):
        administration = caller.service.people_administration
        administration.change_password(caller.principal.id, order.old, order.new)
    return Response(status_code=204)


@router.post("/session/invitation", status_code=204, response_class=Response)
def accept_invitation(request: Request, order: AcceptedInvitation) -> Response:
    """Set a password with an invitation; then sign in."""
    require_same_origin(request)
    service = service_of(request)
    client = request.client.host if request.client else ""
    service.limits.spend("sign-in address", (client,))
    person_id = order.invitation.partition(".")[0][:60]
    with service.audit.operation(
        AuditPlace(),
        (person_id,),
        principal=f"nobody {client}",
        action="person.accept",
        request_id=request_id_of(request),
    ):
        service.people_administration.accept(order.invitation, order.password)
    return Response(status_code=204)


def _action(order: PersonChange) -> str:
    """The action that the audit has of a change, the same as of the commands."""
    if order.is_disabled is None:
        return "person.change"
    return "person.disable" if order.is_disabled else "person.enable"


def _administration(caller: Caller) -> PeopleAdministration:
    caller.principal.require_everywhere()
    return caller.service.people_administration


def _end(caller: Caller, person_id: str, session: str | None) -> Response:
    administration = _administration(caller)
    known = administration.get(person_id)
    with caller.audit_service_change("session.end", known.name, details={"session": session}):
        administration.end_sessions(person_id, session)
    return Response(status_code=204)


def _person(known: KnownPerson) -> Person:
    return Person(**known.to_json(), is_provided=is_provided(known.id))
