"""``freezeframe stream changes|diff|restore``: row changes between versions, and restoring one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from freezeframe.cli.places.options import (
    DryRun,
    Json,
    LaterVersion,
    Message,
    StreamArgument,
    TenantVersion,
    Who,
    Yes,
    point,
)
from freezeframe.cli.places.place import Place
from freezeframe.cli.tenant.versions import carry_out_restoration
from freezeframe.cli.terminal.cell_changes import cell_changes
from freezeframe.cli.terminal.output import Output
from freezeframe.identifiers import StreamName

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
    ends = (None if one is None else point(one) for one in (since, until))
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
