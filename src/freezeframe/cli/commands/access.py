"""`freezeframe key` and `audit`: who may use a service, and who did what."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from freezeframe.cli.local_caller import AuditedControl, command_principal, opened_audit
from freezeframe.cli.location import open_store
from freezeframe.cli.options import Environment, Json, StoreRoot, tenant_ids
from freezeframe.cli.output import FAILED, Output
from freezeframe.errors import InputNotFound, InvalidOption
from freezeframe.observation import logged_by

if TYPE_CHECKING:
    from freezeframe.service.access.access import Stores
    from freezeframe.service.access.audit import Audit, AuditFilter, AuditScope
    from freezeframe.service.access.keys import Keys


key_app = typer.Typer(no_args_is_help=True)
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The key's id: the part before the dot.")]
_KEY_COLUMNS = ("id", "name", "scopes", "environments", "tenants", "expires", "revoked", "last_used")
_OVERLAP_HOURS = 24.0


@key_app.command()
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
    details: dict[str, Any] = {
        "name": name,
        "scopes": scopes,
        "environments": environments,
        "tenants": tenants,
        "days": days,
    }
    with _keys(root) as (keys, found):
        key_id = keys.new_id()
        with found.audit_change("key.create", key_id, **details):
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


@key_app.command("list")
def list_keys(root: StoreRoot, as_json: Json = False) -> None:
    """List the keys, those that are revoked or expired too."""
    with _keys(root) as (keys, _):
        found = keys.list()
    output = Output(as_json=as_json)
    if not found:
        output.line(f"{root} has no keys: freezeframe key create makes one.")
    if found or as_json:
        output.table(root, [item.to_json() for item in found], columns=_KEY_COLUMNS)


@key_app.command()
def revoke(key: KeyArgument, root: StoreRoot, as_json: Json = False) -> None:
    """Revoke a key; it stops working within a second."""
    with _keys(root) as (keys, found), found.audit_change("key.revoke", key):
        revoked = keys.revoke(key)
    Output(as_json=as_json).record(revoked.to_json())


@key_app.command()
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


@key_app.command("sign-out")
def sign_out(
    root: StoreRoot,
    who: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Id of a key or person, as in the audit (default: all)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """End sessions of the console. Keys stay valid; revoke one to end it too."""
    from freezeframe.service.access.sessions import Sessions

    with _keys(root) as (keys, found), found.audit_change("session.end", who or ""):
        ended = Sessions(found.control.database, keys, 0).end_all(who)
    Output(as_json=as_json).record({"sessions_ended": ended})


@key_app.command("rotate-master")
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
            "The previous master key is not set.",
            cause="master_key_file_other is not set.",
            remedy="Set FREEZEFRAME_MASTER_KEY_FILE_OTHER to the file of the previous key.",
        )
    with (
        opened_audit(root, create=True) as found,
        found.audit_change("master_key.rotate", masters[0].fingerprint),
    ):
        rotated = store.rotate_master_key(old=masters[1], new=masters[0])
    Output(as_json=as_json).record({"master_key": masters[0].fingerprint, "tenants": rotated})


@contextmanager
def _keys(root: str) -> Iterator[tuple[Keys, AuditedControl]]:
    from freezeframe.service.access.keys import Keys

    with opened_audit(root, create=True) as found:
        yield Keys(found.control.database), found


audit_app = typer.Typer(no_args_is_help=True)
Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        help="The tenant whose audit to read (default: the service's own audit).",
        autocompletion=tenant_ids,
    ),
]
Action = Annotated[str | None, typer.Option(help="Only this action, for example key.create.")]
Principal = Annotated[
    str | None, typer.Option(help="Only principals that contain this text, for example key:0a1b.")
]
Since = Annotated[datetime | None, typer.Option(help="Only from this moment on, in UTC.")]
Until = Annotated[datetime | None, typer.Option(help="Only before this moment, in UTC.")]
# The first number and hash after the logger's name: what follows may hold names that callers chose.
_LOGGED = re.compile(r"\S+ number=(\d+) hash=([0-9a-f]{64})(?: |$)")
_COLUMNS = ("number", "moment", "principal", "action", "subject")


@dataclass(frozen=True, slots=True)
class _Opened:
    """An open audit and the store of its tenants."""

    audit: Audit
    stores: Stores
    environment: str

    def place(self, tenant: str | None) -> AuditScope:
        """Return what the options mean, as the audit names it."""
        from freezeframe.identifiers import EnvironmentName, TenantId
        from freezeframe.service.access.access import audit_scope
        from freezeframe.service.access.audit import AuditScope

        if tenant is None:
            return AuditScope()
        self.stores.environment(EnvironmentName(self.environment)).tenant(tenant)  # that it is there
        return audit_scope(self.stores, EnvironmentName(self.environment), TenantId(tenant))


@audit_app.command("list")
def list_entries(
    root: StoreRoot,
    environment: Environment = None,
    tenant: Tenant = None,
    action: Action = None,
    principal: Principal = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of entries at most.")] = 50,
    as_json: Json = False,
) -> None:
    """List the newest entries of an audit."""
    with _open_audit(root, environment) as found:
        wanted = _filter(action, principal, since, until)
        entries = found.audit.entries(found.place(tenant), wanted, limit=limit)
    rows = [entry.to_json() for entry in entries]
    Output(as_json=as_json).table(tenant or root, rows, columns=() if as_json else _COLUMNS)


@audit_app.command()
def export(
    root: StoreRoot,
    environment: Environment = None,
    tenant: Tenant = None,
    action: Action = None,
    principal: Principal = None,
    since: Since = None,
    until: Until = None,
    kind: Annotated[
        Literal["jsonl", "csv"], typer.Option("--format", help="jsonl, or csv for spreadsheets.")
    ] = "jsonl",
    as_json: Json = False,
) -> None:
    """Write the entries of an audit to standard output, the oldest first."""
    from freezeframe.service.access.audit import export_lines

    with _open_audit(root, environment) as found:
        wanted = _filter(action, principal, since, until)
        for line in export_lines(
            found.audit.all_entries(found.place(tenant), wanted), "jsonl" if as_json else kind
        ):
            sys.stdout.write(line)


@audit_app.command()
def verify(
    root: StoreRoot,
    log: Annotated[
        Path | None,
        typer.Option(help="A file with lines of the logger freezeframe.audit, in either format."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that no entry of the audit was changed, taken out or, with --log, cut off.

    The exit code is 1 if it is not whole.
    """
    from dataclasses import asdict

    logged = None if log is None else _logged(log)
    with opened_audit(root) as found:
        proof = found.audit.verify(logged)
    Output(as_json=as_json).record({"is_whole": proof.is_whole, **asdict(proof)})
    if not proof.is_whole:
        raise typer.Exit(FAILED)


@contextmanager
def _open_audit(root: str, environment: str | None) -> Iterator[_Opened]:
    from freezeframe.service.access.access import Stores

    with opened_audit(root, environment) as found:
        yield _Opened(found.audit, Stores(root, found.control.settings), found.control.environment)


def _filter(
    action: str | None, principal: str | None, since: datetime | None, until: datetime | None
) -> AuditFilter:
    from freezeframe.service.access.audit import AuditFilter

    moments = (
        None if item is None else int(item.replace(tzinfo=UTC).timestamp() * 1000) for item in (since, until)
    )
    return AuditFilter(action, None, principal, *moments)


def _logged(path: Path) -> dict[int, set[str]]:
    """Return the hashes of entries by number, from a log."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputNotFound(f"{path} cannot be read.", cause=str(error), remedy="Check the path.") from error
    found: dict[int, set[str]] = {}
    for line in text.split("\n"):
        told = logged_by("freezeframe.audit", line)
        if isinstance(told, dict):
            told = f"{told.get('message')} number={told.get('number')} hash={told.get('hash')}"
        if told and (entry := _LOGGED.match(told)):
            found.setdefault(int(entry[1]), set()).add(entry[2])
    if not found:
        raise InvalidOption(
            f"{path} has no line of the audit.",
            cause="A line is of the logger freezeframe.audit, and has a number and a hash.",
            remedy="Pass the log of the service, or a log collector's copy of it.",
        )
    return found
