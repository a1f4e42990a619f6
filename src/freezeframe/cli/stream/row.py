"""``freezeframe stream row``: a row and the versions that changed it."""

from __future__ import annotations

from typing import Annotated

import typer

from freezeframe.cli.places.options import Json, StreamArgument, point
from freezeframe.cli.places.place import Place
from freezeframe.cli.places.row_keys import named_keys
from freezeframe.cli.terminal.cell_changes import cell_changes
from freezeframe.cli.terminal.exit_codes import NOT_FOUND
from freezeframe.cli.terminal.output import Output


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
            "tenant_version": one.version,
            "timestamp": one.timestamp.isoformat(timespec="seconds"),
            "author": one.entry.who,
            "job_id": one.entry.job_id,
            **cell_changes(shown_rows(one.changes), tuple(found.key))[0],
        }
        for one in found.versions
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
