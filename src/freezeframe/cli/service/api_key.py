"""``freezeframe key``: the keys of a store's service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.options import Json
from freezeframe.cli.places.place import StoreRoot
from freezeframe.cli.service.audited import AuditedControl, command_principal, opened_audit
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import InvalidOption

if TYPE_CHECKING:
    from freezeframe.service.identity.api_keys import Keys

app = typer.Typer(no_args_is_help=True)
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The key's id: the part before the dot.")]
_COLUMNS = ("id", "name", "scopes", "environments", "tenants", "expires", "revoked", "last_used")
_OVERLAP_HOURS = 24.0


@app.command()
def create(
    root: StoreRoot,
    environments: Annotated[
        list[str] | None,
        typer.Option("--env", help="Limit the key to an environment (default: all). May be repeated."),
    ] = None,
    tenants: Annotated[
        list[str] | None,
        typer.Option("--tenant", help="Limit the key to a tenant (default: all). May be repeated."),
    ] = None,
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            help="A scope: tenants:read, snapshots:write ... (default: all but admin). May be repeated.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="A name for the key, shown in lists.")] = "",
    days: Annotated[float | None, typer.Option(help="Days until the key expires (default: never).")] = None,
    as_json: Json = False,
) -> None:
    """Make a key.

    It is printed once; of its secret only a keyed hash is kept.
    """
    if tenants and not environments:
        raise InvalidOption(
            "A key for a tenant needs its environment.", remedy="Name it by --env, for example --env dev."
        )
    told = {"name": name, "scopes": scopes, "environments": environments, "tenants": tenants, "days": days}
    with _keys(root) as (keys, found):
        draft = keys.draft()
        with found.audit_change("key.create", draft.id, **told):
            made = keys.create(
                name,
                scopes=scopes or (),
                environments=environments,
                tenants=tenants,
                days=days,
                created_by=command_principal(),
                draft=draft,
            )
        Output(as_json=as_json).record(made.to_json())


@app.command("list")
def list_keys(root: StoreRoot, as_json: Json = False) -> None:
    """List the keys, those that are revoked or expired too."""
    with _keys(root) as (keys, _):
        found = keys.list()
    output = Output(as_json=as_json)
    if not found:
        output.line(f"{root} has no keys: freezeframe key create makes one.")
    if found or as_json:
        output.table(root, [one.to_json() for one in found], columns=_COLUMNS)


@app.command()
def revoke(key: KeyArgument, root: StoreRoot, as_json: Json = False) -> None:
    """Revoke a key: a second later it is good for nothing."""
    with _keys(root) as (keys, found), found.audit_change("key.revoke", key):
        revoked = keys.revoke(key)
    Output(as_json=as_json).record(revoked.to_json())


@app.command()
def rotate(
    key: KeyArgument,
    root: StoreRoot,
    overlap_hours: Annotated[
        float, typer.Option(min=0, help="Hours that the old secret stays valid.")
    ] = _OVERLAP_HOURS,
    as_json: Json = False,
) -> None:
    """Give a key a new secret, which is printed once."""
    with _keys(root) as (keys, found), found.audit_change("key.rotate", key, overlap_hours=overlap_hours):
        rotated = keys.rotate(key, overlap_hours)
    Output(as_json=as_json).record(rotated.to_json())


@contextmanager
def _keys(root: str) -> Iterator[tuple[Keys, AuditedControl]]:
    from freezeframe.service.identity.api_keys import Keys

    with opened_audit(root, create=True) as found:
        yield Keys(found.control.database, found.pepper), found
