"""`freezeframe key` and `audit`: who may use a service, and who did what."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from freezeframe.cli.local_caller import StoreCaller
from freezeframe.cli.location import open_store
from freezeframe.cli.operation_commands import add_commands, json_of
from freezeframe.cli.options import Environment, Json, StoreRoot, tenant_ids
from freezeframe.cli.output import FAILED, Output
from freezeframe.errors import InputNotFound, InvalidOption
from freezeframe.identifiers import TenantId
from freezeframe.observation import logged_by
from freezeframe.service.operations import keys
from freezeframe.service.operations.keys import audit_page

if TYPE_CHECKING:
    from freezeframe.service.access.audit import AuditFilter, AuditScope


key_app = typer.Typer(no_args_is_help=True)


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
        StoreCaller(root, create=True) as caller,
        caller.audit_change("master_key.rotate", masters[0].fingerprint),
    ):
        rotated = store.rotate_master_key(old=masters[1], new=masters[0])
    Output(as_json=as_json).record({"master_key": masters[0].fingerprint, "tenants": rotated})


add_commands(key_app, *(item for item in keys.OPERATIONS if item.commands))


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
    cursor: Annotated[str | None, typer.Option(help="`next_cursor` of the page before.")] = None,
    as_json: Json = False,
) -> None:
    """List the newest entries of an audit."""
    with StoreCaller(root, environment) as caller:
        wanted = _filter(action, principal, since, until)
        page = audit_page(caller, _scope(caller, tenant), "", wanted, limit, cursor)
    output, shown = Output(as_json=as_json), json_of(page)
    if as_json:
        output.record(shown)
        return
    output.table(tenant or root, shown["entries"], columns=_COLUMNS)
    if page.next_cursor is not None:
        output.line(f"There are more: --cursor {page.next_cursor}")


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

    with StoreCaller(root, environment) as caller:
        wanted = _filter(action, principal, since, until)
        entries = caller.service.audit.all_entries(_scope(caller, tenant), wanted)
        for line in export_lines(entries, "jsonl" if as_json else kind):
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
    logged = None if log is None else _logged(log)
    with StoreCaller(root) as caller:
        proof = caller.service.audit.verify(logged)
    Output(as_json=as_json).record(json_of(proof))
    if not proof.is_whole:
        raise typer.Exit(FAILED)


def _scope(caller: StoreCaller, tenant: str | None) -> AuditScope:
    """Return the tenant, which must be there, as the audit names it; the service itself without one."""
    from freezeframe.service.access.access import tenant_scope
    from freezeframe.service.access.audit import AuditScope

    if tenant is None:
        return AuditScope()
    store = open_store(caller.root, caller.environment)
    store.tenant(tenant)
    return tenant_scope(store, TenantId(tenant))


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
