"""``freezeframe key``: the keys of a store's service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.control_place import AuditedControl, command_principal, opened_audit
from freezeframe.cli.places.place import Json, StoreRoot, open_store
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

    It is printed once; of its secret only a hash is kept.
    """
    if tenants and not environments:
        raise InvalidOption(
            "A key for a tenant needs its environment.", remedy="Name it by --env, for example --env dev."
        )
    told = {"name": name, "scopes": scopes, "environments": environments, "tenants": tenants, "days": days}
    with _keys(root) as (keys, found):
        key_id = keys.new_id()
        with found.audit_change("key.create", key_id, **told):
            made = keys.create(
                name,
                scopes=scopes or (),
                environments=environments,
                tenants=tenants,
                days=days,
                created_by=command_principal(),
                key_id=key_id,
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
        output.table(root, [item.to_json() for item in found], columns=_COLUMNS)


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


@app.command("sign-out")
def sign_out(
    root: StoreRoot,
    who: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Id of a key or person, as in the audit (default: all)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """End sessions of the console. Keys stay valid; revoke one to end it too."""
    from freezeframe.service.identity.sessions import Sessions

    with _keys(root) as (keys, found), found.audit_change("session.end", who or ""):
        ended = Sessions(found.control.database, keys, 0).end_all(who)
    Output(as_json=as_json).record({"sessions_ended": ended})


@app.command("rotate-master")
def rotate_master_key(root: StoreRoot, as_json: Json = False) -> None:
    """Encrypt the data keys of all tenants with the current master key.

    They may be under master_key_file_other. No file is written anew, and readers with either key go on.
    """
    from freezeframe.settings import load_settings
    from freezeframe.store.blobs.sealing import accepted_master_keys

    store, settings = open_store(root, None), load_settings(root=root)
    masters = accepted_master_keys(settings)
    if len(masters) == 1:
        raise InvalidOption(
            "There is no other master key to rotate from.",
            cause="master_key_file_other is not set.",
            remedy="Set FREEZEFRAME_MASTER_KEY_FILE_OTHER to the file of the key from before.",
        )
    with (
        opened_audit(root, create=True) as found,
        found.audit_change("master_key.rotate", masters[0].fingerprint),
    ):
        rotated = store.rotate_master_key(old=masters[1], new=masters[0])
    Output(as_json=as_json).record({"master_key": masters[0].fingerprint, "tenants": rotated})


@contextmanager
def _keys(root: str) -> Iterator[tuple[Keys, AuditedControl]]:
    from freezeframe.service.identity.api_keys import Keys

    with opened_audit(root, create=True) as found:
        yield Keys(found.control.database), found
