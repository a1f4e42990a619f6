"""``freezeframe person``: accounts that may sign in to a store's service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.audited import AuditedControl, opened_audit
from freezeframe.cli.places.options import Json
from freezeframe.cli.places.place import StoreRoot
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import InvalidOption

if TYPE_CHECKING:
    from freezeframe.service.identity.people import People
    from freezeframe.service.identity.people_administration import PeopleAdministration

app = typer.Typer(no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")]
Environments = Annotated[
    list[str] | None,
    typer.Option("--env", help="Limit the person to an environment (default: all). May be repeated."),
]
Tenants = Annotated[
    list[str] | None,
    typer.Option("--tenant", help="Limit the person to a tenant (default: all). May be repeated."),
]


class RoleName(StrEnum):
    """Role of a person."""

    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"


@app.command()
def create(
    name: NameArgument,
    root: StoreRoot,
    role: Annotated[RoleName, typer.Option(help="admin, editor or viewer.")] = RoleName.VIEWER,
    environments: Environments = None,
    tenants: Tenants = None,
    invited: Annotated[
        bool,
        typer.Option("--invite", help="Print an invitation to set a password in place of asking for one."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Let a person sign in.

    The password is asked for, or read from standard input where there is no terminal.
    """
    password = None if invited else _password()
    told = {"role": role.value, "environments": environments, "tenants": tenants}
    with _people(root) as place:
        with place.audited.audit_change("person.create", name, **told):
            made = place.people.create(name, password, role.value, environments=environments, tenants=tenants)
        invitation = {"invitation": place.administration.invitation(made.id)} if invited else {}
    Output(as_json=as_json).record({**made.to_json(), **invitation})


@app.command("list")
def list_people(root: StoreRoot, as_json: Json = False) -> None:
    """List the people, those that may no longer sign in too."""
    with _people(root) as place:
        found = place.people.list()
    columns = ("name", "role", "environments", "tenants", "disabled")
    Output(as_json=as_json).table(root, [one.to_json() for one in found], columns=columns)


@app.command()
def invite(name: NameArgument, root: StoreRoot, as_json: Json = False) -> None:
    """Print an invitation with which a person sets a password, for the first time or anew.

    It is valid once, for three days, on the console's page /invitation. The old password is valid until then.
    """
    with _people(root) as place:
        known = place.people.named(name)
        with place.audited.audit_change("person.invite", name):
            invitation = place.administration.invitation(known.id)
    Output(as_json=as_json).record({"name": name, "invitation": invitation})


@app.command()
def change(
    name: NameArgument,
    root: StoreRoot,
    role: Annotated[
        RoleName | None, typer.Option(help="admin, editor or viewer (default: unchanged).")
    ] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "--env", help="Limit the person to an environment (default: unchanged). May be repeated."
        ),
    ] = None,
    tenants: Annotated[
        list[str] | None,
        typer.Option("--tenant", help="Limit the person to a tenant (default: unchanged). May be repeated."),
    ] = None,
    is_unlimited: Annotated[
        bool, typer.Option("--everywhere", help="Remove the limits to environments and tenants.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Give a person another role or other limits, from the person's next request on."""
    limits = {"environments": environments, "tenants": tenants}
    bounds = {what: names for what, names in limits.items() if names or is_unlimited}
    if is_unlimited and any(limits.values()):
        raise InvalidOption(
            "--everywhere excludes --env and --tenant.", remedy="Pass the new limits, or --everywhere alone."
        )
    if role is None and not bounds:
        raise InvalidOption("Nothing is to change.", remedy="Pass --role, --env, --tenant or --everywhere.")
    given = bounds if role is None else {"role": role.value, **bounds}
    with _people(root) as place:
        known = place.people.named(name)
        with place.audited.audit_change("person.change", name, **given):
            changed = place.administration.change(known.id, role=role and role.value, bounds=bounds)
    Output(as_json=as_json).record(changed.to_json())


@app.command()
def disable(name: NameArgument, root: StoreRoot, as_json: Json = False) -> None:
    """Sign a person out everywhere, and refuse every sign-in until person enable."""
    _set_disabled(name, root, is_disabled=True, as_json=as_json)


@app.command()
def enable(name: NameArgument, root: StoreRoot, as_json: Json = False) -> None:
    """Let a disabled person sign in again, with the password of before."""
    _set_disabled(name, root, is_disabled=False, as_json=as_json)


@app.command()
def sessions(name: NameArgument, root: StoreRoot, as_json: Json = False) -> None:
    """List where a person is signed in, the newest sign-in first."""
    with _people(root) as place:
        found = place.administration.sessions(place.people.named(name).id)
    rows = [{"id": one.id, "created": one.created, "expires": one.expires} for one in found]
    Output(as_json=as_json).table(name, rows, columns=("id", "created", "expires"))


@app.command("sign-out")
def sign_out(
    name: NameArgument,
    root: StoreRoot,
    session: Annotated[
        str | None, typer.Option(help="End this session only: an id of person sessions (default: all).")
    ] = None,
    as_json: Json = False,
) -> None:
    """End a person's sessions. The person can sign in again; person disable prevents that."""
    with _people(root) as place:
        known = place.people.named(name)
        with place.audited.audit_change("session.end", name, session=session):
            ended = place.administration.end_sessions(known.id, session)
    Output(as_json=as_json).record({"name": name, "sessions_ended": ended})


def _set_disabled(name: str, root: str, *, is_disabled: bool, as_json: bool) -> None:
    action = "person.disable" if is_disabled else "person.enable"
    with _people(root) as place:
        known = place.people.named(name)
        with place.audited.audit_change(action, name):
            changed = place.administration.change(known.id, is_disabled=is_disabled)
    Output(as_json=as_json).record(changed.to_json())


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return password


@dataclass(frozen=True, slots=True)
class _Place:
    """A store's people, and the audit that their changes go into."""

    people: People
    administration: PeopleAdministration
    audited: AuditedControl


@contextmanager
def _people(root: str) -> Iterator[_Place]:
    from freezeframe.service.identity.people import People
    from freezeframe.service.identity.people_administration import PeopleAdministration

    with opened_audit(root, create=True) as found:
        database = found.control.database
        people = People(database, found.control.settings.service_session_hours)
        yield _Place(people, PeopleAdministration(database, people, found.pepper), found)
