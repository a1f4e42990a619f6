"""Commands of a stream's versions and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from freezeframe.cli.places.place import (
    DryRun,
    Json,
    LaterVersion,
    Message,
    Place,
    StreamArgument,
    TenantVersion,
    Who,
    Yes,
    point,
)
from freezeframe.cli.places.row_keys import named_keys
from freezeframe.cli.tenant.versions import carry_out_restoration
from freezeframe.cli.terminal.exit_codes import NOT_FOUND
from freezeframe.cli.terminal.output import Output, cell_changes
from freezeframe.identifiers import StreamName

# ``freezeframe stream changes|diff|restore``: row changes between versions, and restoring one.

Limit = Annotated[int, typer.Option(min=1, help="Number of rows at most.")]
_ROWS = 20


def changes(
    place: Place,
    name: StreamArgument,
    since: Annotated[
        str | None,
        typer.Option(help="A version of the tenant, tag or moment (default: the stream's first version)."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="A version of the tenant, tag or moment (default: the newest).")
    ] = None,
    limit: Limit = _ROWS,
    as_json: Json = False,
) -> None:
    """Show what became of a stream's rows.

    Each that was inserted, updated or deleted between two versions of the tenant.
    """
    stream = place.tenant().stream(name)
    ends = (None if item is None else point(item) for item in (since, until))
    _show(name, stream.changes(*ends, as_="arrow"), stream.key(), limit, as_json=as_json)


def diff(
    place: Place,
    name: StreamArgument,
    before: TenantVersion,
    after: LaterVersion = None,
    limit: Limit = _ROWS,
    as_json: Json = False,
) -> None:
    """Show a stream's rows that differ.

    Between two versions of the tenant, even if the stream came or went between.
    """
    tenant = place.tenant()
    found = tenant.diff(point(before), None if after is None else point(after))
    difference = found.streams.get(str(StreamName(name)))
    if difference is not None:
        there = tenant.at(found.after if difference.fate != "removed" else found.before)
        _show(name, difference.changes("arrow"), there.stream(name).key(), limit, as_json=as_json)
        return
    tenant.at(found.after).stream(name).columns()  # an unknown stream is an error, not an empty difference
    output = Output(as_json=as_json)
    output.line(f"{name} is the same at versions {found.before} and {found.after}.")
    if as_json:
        output.table(name, [])


def restore(
    place: Place,
    name: StreamArgument,
    version: TenantVersion,
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Bring a stream's earlier version back.

    As it was at a version of the tenant; that is a new version.
    """
    parts = {"streams": [name]}
    carry_out_restoration(place, version, parts, (who, message), dry_run=dry_run, yes=yes, as_json=as_json)


def _show(name: str, table: Any, key: Sequence[str], limit: int, *, as_json: bool) -> None:
    from freezeframe.engine.frames.python_values import shown_rows

    rows = shown_rows(table.slice(0, limit))
    Output(as_json=as_json).table(
        f"{name}: {min(limit, table.num_rows)} of {table.num_rows} changes",
        rows if as_json else cell_changes(rows, key),
        columns=table.column_names if as_json else ("change", *key, "cells"),
    )


# ``freezeframe stream row``: a row and the versions that changed it.


def row(
    place: Place,
    name: StreamArgument,
    key: Annotated[
        str, typer.Argument(help="The key's value; of several columns a JSON array of the values.")
    ],
    until: Annotated[
        str | None, typer.Option(help="A version of the tenant, tag or moment (default: the newest).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of versions at most.")] = 20,
    as_json: Json = False,
) -> None:
    """Show a row and what each version did to it.

    The versions of the tenant that inserted, updated or deleted the row, the newest first. The exit code is 4
    where the row is not there, also if its history is.
    """
    from freezeframe.engine.frames.python_values import shown_rows

    tenant = place.tenant()
    seen = tenant if until is None else tenant.at(point(until))
    (values,) = named_keys(seen.stream(name), [key], None)
    found = tenant.stream(name).row_history(
        values, until=None if until is None else seen.version, limit=limit
    )
    output = Output(as_json=as_json)
    if as_json:
        output.record(found.to_json())
        _require_row(found.row)
        return
    if found.row is None:
        output.line(f"{name} has no row {key} at version {seen.version}.")
    else:
        output.table(
            f"{name} {key}", [{"column": column, "value": value} for column, value in found.row.items()]
        )
    rows = [
        {
            "tenant_version": version.version,
            "timestamp": version.timestamp.isoformat(timespec="seconds"),
            "author": version.entry.who,
            "job_id": version.entry.job_id,
            **cell_changes(shown_rows(version.changes), tuple(found.key))[0],
        }
        for version in found.versions
    ]
    output.table(
        "Versions that touched it",
        rows,
        columns=("tenant_version", "timestamp", "author", "job_id", "change", "cells"),
    )
    if found.following is not None:
        output.line(f"Older ones: --until {found.following}")
    elif not found.is_whole:
        output.line("Older versions are no longer kept, or had another key.")
    _require_row(found.row)


def _require_row(row: object | None) -> None:
    if row is None:
        raise typer.Exit(NOT_FOUND)
