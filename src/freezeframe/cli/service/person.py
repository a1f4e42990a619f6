"""``freezeframe person``: accounts that may sign in to a store's service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.audited import AuditedControl, opened_audit
from freezeframe.cli.places.options import Json
from freezeframe.cli.places.place import StoreRoot
from freezeframe.cli.terminal.output import Output

if TYPE_CHECKING:
    from freezeframe.service.identity.people import People

app = typer.Typer(no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")]


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
    environments: Annotated[
        list[str] | None,
        typer.Option("--env", help="Limit the person to an environment (default: all). May be repeated."),
    ] = None,
    tenants: Annotated[
        list[str] | None,
        typer.Option("--tenant", help="Limit the person to a tenant (default: all). May be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Let a person sign in.

    The password is asked for, or read from standard input where there is no terminal.
    """
    password = _password()
    told = {"role": role.value, "environments": environments, "tenants": tenants}
    with _people(root) as (people, found), found.audit_change("person.create", name, **told):
        made = people.create(name, password, role.value, environments=environments, tenants=tenants)
    Output(as_json=as_json).record(made.to_json())


@app.command("list")
def list_people(root: StoreRoot, as_json: Json = False) -> None:
    """List the people, those that may no longer sign in too."""
    with _people(root) as (people, _):
        found = people.list()
    Output(as_json=as_json).table(
        root, [one.to_json() for one in found], columns=("name", "role", "disabled")
    )


@app.command()
def disable(name: NameArgument, root: StoreRoot, as_json: Json = False) -> None:
    """Sign a person out, for good."""
    with _people(root) as (people, found), found.audit_change("person.disable", name):
        disabled = people.disable(name)
    Output(as_json=as_json).record(disabled.to_json())


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return password


@contextmanager
def _people(root: str) -> Iterator[tuple[People, AuditedControl]]:
    from freezeframe.service.identity.people import People

    with opened_audit(root, create=True) as found:
        yield People(found.control.database, found.control.settings.service_session_hours), found
