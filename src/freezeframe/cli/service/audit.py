"""``freezeframe audit``: list, export and verify the audit."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.audited import opened_audit
from freezeframe.cli.places.completion import tenant_ids
from freezeframe.cli.places.options import Json, Yes
from freezeframe.cli.places.place import Environment, StoreRoot
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.cli.terminal.exit_codes import FAILED
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import InputNotFound, InvalidOption

if TYPE_CHECKING:
    from freezeframe.service.access.audit import Audit
    from freezeframe.service.access.audit_entry import AuditFilter, AuditPlace, Head
    from freezeframe.service.access.stores import Stores

app = typer.Typer(no_args_is_help=True)
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
_COLUMNS = ("number", "moment", "principal", "action", "subject")


class Kind(StrEnum):
    """Format of an audit export."""

    JSONL = "jsonl"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class _Opened:
    """An open audit and the store of its tenants."""

    audit: Audit
    stores: Stores
    environment: str

    def place(self, tenant: str | None) -> AuditPlace:
        """The name of the chain that the options mean."""
        from freezeframe.identifiers import EnvironmentName, TenantId
        from freezeframe.service.access.access import audit_place
        from freezeframe.service.access.audit_entry import AuditPlace

        if tenant is None:
            return AuditPlace()
        self.stores.environment(EnvironmentName(self.environment)).tenant(tenant)  # that it is there
        return audit_place(self.stores, EnvironmentName(self.environment), TenantId(tenant))


@app.command("list")
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
    told = [one.to_json() for one in entries]
    Output(as_json=as_json).table(tenant or root, told, columns=() if as_json else _COLUMNS)


@app.command()
def export(
    root: StoreRoot,
    environment: Environment = None,
    tenant: Tenant = None,
    action: Action = None,
    principal: Principal = None,
    since: Since = None,
    until: Until = None,
    kind: Annotated[Kind, typer.Option("--format", help="jsonl, or csv for spreadsheets.")] = Kind.JSONL,
    as_json: Json = False,
) -> None:
    """Write the entries of an audit to standard output, the oldest first."""
    from freezeframe.service.access.audit_export import export_lines

    with _open_audit(root, environment) as found:
        wanted = _filter(action, principal, since, until)
        for line in export_lines(
            found.audit.all_entries(found.place(tenant), wanted), "jsonl" if as_json else kind.value
        ):
            sys.stdout.write(line)


@app.command()
def verify(
    root: StoreRoot,
    environment: Environment = None,
    tenant: Tenant = None,
    heads: Annotated[
        Path | None, typer.Option(help="A file of lines that the sink received, to compare with.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that no entry was changed, taken out or cut off.

    Without --tenant all audits of the store are checked. The exit code is 1 if one is not whole.
    """
    told = []
    with _open_audit(root, environment) as found:
        kept = {} if heads is None else _heads(heads)
        chains = _chains(found) if tenant is None else {found.place(tenant): _versions_heads(found, tenant)}
        for place in kept if tenant is None else ():
            chains.setdefault(place, [])
        for place, known in chains.items():
            proof = found.audit.prove(place, [*known, *kept.get(place, ())])
            told.append(
                {
                    "environment": place.environment,
                    "chain": place.tenant or "(the service)",
                    "is_whole": proof.is_whole,
                    "entries": proof.entries,
                    "heads": proof.heads,
                    "broken_at": proof.broken_at,
                    "reason": proof.reason,
                }
            )
    Output(as_json=as_json).table(root, told)
    if not all(one["is_whole"] for one in told):
        raise typer.Exit(FAILED)


@app.command()
def trim(
    root: StoreRoot,
    days: Annotated[float, typer.Option(min=1, help="Delete entries older than this many days.")],
    environment: Environment = None,
    tenant: Tenant = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete old entries of an audit, for good; what is left stays provable.

    Export them first.
    """
    from freezeframe.cli.places.audited import command_principal

    if not yes:
        require_yes(f"Delete the entries of {tenant or 'the service'} that are older than {days:g} days?")
    before = datetime.now(UTC) - timedelta(days=days)
    with _open_audit(root, environment) as found:
        count = found.audit.trim(found.place(tenant), int(before.timestamp() * 1000), command_principal())
    Output(as_json=as_json).record({"deleted": count})


@contextmanager
def _open_audit(root: str, environment: str | None) -> Iterator[_Opened]:
    from freezeframe.service.access.stores import Stores

    with opened_audit(root, environment) as found:
        yield _Opened(found.audit, Stores(root, found.control.settings), found.control.environment)


def _filter(
    action: str | None, principal: str | None, since: datetime | None, until: datetime | None
) -> AuditFilter:
    from freezeframe.service.access.audit_entry import AuditFilter

    moments = (
        None if one is None else int(one.replace(tzinfo=UTC).timestamp() * 1000) for one in (since, until)
    )
    return AuditFilter(action, None, principal, *moments)


def _versions_heads(found: _Opened, tenant: str) -> list[Head]:
    from freezeframe.identifiers import EnvironmentName
    from freezeframe.service.access.access import audit_heads

    return list(audit_heads(found.stores.environment(EnvironmentName(found.environment)).tenant(tenant)))


def _chains(found: _Opened) -> dict[AuditPlace, list[Head]]:
    """All audit chains of the store: those in the database and those that versions or deletions name."""
    from freezeframe.identifiers import TenantId
    from freezeframe.service.access.access import audit_heads, audit_place
    from freezeframe.service.access.audit_entry import AuditFilter, AuditPlace, heads_of_deletions

    own = AuditPlace()
    deletions = list(found.audit.all_entries(own, AuditFilter(action="tenant.delete")))
    chains = {own: [], **heads_of_deletions(deletions)}
    for environment in found.stores.environments():
        store = found.stores.environment(environment)
        for tenant in itertools.chain.from_iterable(store.tenant_pages()):
            place = audit_place(found.stores, environment, TenantId(tenant))
            chains.setdefault(place, []).extend(audit_heads(store.tenant(tenant)))
    for place in found.audit.places():
        chains.setdefault(place, [])
    return chains


def _heads(path: Path) -> dict[AuditPlace, list[Head]]:
    from freezeframe.service.access.audit_entry import AuditPlace, Head

    found: dict[AuditPlace, list[Head]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputNotFound(f"{path} cannot be read.", cause=str(error), remedy="Check the path.") from error
    for count, line in enumerate(lines, 1):
        try:
            told = json.loads(line)
            head = Head(int(told["number"]), str(told["hash"]), f"line {count} of {path}")
            found.setdefault(AuditPlace(told["environment"], told["tenant"]), []).append(head)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidOption(
                f"Line {count} of {path} is not an entry of a sink.",
                cause=str(error),
                remedy="Pass the lines of JSON that audit_sink was sent, without what syslog puts before.",
            ) from error
    return found
