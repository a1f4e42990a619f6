"""``freezeframe audit``: list, export and verify the audit."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.control_place import opened_audit
from freezeframe.cli.places.place import Environment, Json, StoreRoot, tenant_ids
from freezeframe.cli.terminal.exit_codes import FAILED
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import InputNotFound, InvalidOption

if TYPE_CHECKING:
    from freezeframe.service.access.access import Stores
    from freezeframe.service.access.audit import Audit, AuditFilter, AuditPlace

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
# The first number and hash after the logger's name: what follows may hold names that callers chose.
_LOGGED = re.compile(r'\bnumber"?[=:] ?(\d+),? "?hash"?[=:] ?"?([0-9a-f]{64})')
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
        """What the options mean, as the audit names it."""
        from freezeframe.identifiers import EnvironmentName, TenantId
        from freezeframe.service.access.access import audit_place
        from freezeframe.service.access.audit import AuditPlace

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
    told = [entry.to_json() for entry in entries]
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
    from freezeframe.service.access.audit import export_lines

    with _open_audit(root, environment) as found:
        wanted = _filter(action, principal, since, until)
        for line in export_lines(
            found.audit.all_entries(found.place(tenant), wanted), "jsonl" if as_json else kind.value
        ):
            sys.stdout.write(line)


@app.command()
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


def _logged(path: Path) -> dict[int, str]:
    """The hashes of entries by number, from a log."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputNotFound(f"{path} cannot be read.", cause=str(error), remedy="Check the path.") from error
    lines = (line.partition("freezeframe.audit") for line in text.splitlines())
    found = {int(told[1]): told[2] for _, _, rest in lines if (told := _LOGGED.search(rest))}
    if not found:
        raise InvalidOption(
            f"{path} has no line of the audit.",
            cause="A line has the logger's name freezeframe.audit, a number and a hash.",
            remedy="Pass the log of the service, or what a log collector kept of it.",
        )
    return found
