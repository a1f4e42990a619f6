"""``freezeframe stream retype``: change the type of a column."""

from __future__ import annotations

from typing import Annotated

import typer

from freezeframe.cli.places.options import DryRun, Json, Message, StreamArgument, Who
from freezeframe.cli.places.place import Place
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress


def retype(
    place: Place,
    name: StreamArgument,
    column: Annotated[str, typer.Argument(help="The column, which may be one of the key.")],
    kind: Annotated[
        str,
        typer.Argument(metavar="TYPE", help="string, long, double, decimal(10,2), date, boolean and so on."),
    ],
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Give a column another type.

    As one new version, if every stored value survives it; else the first rows that do not are named.
    """
    stream = place.tenant().stream(name)
    with progress(f"Retyping {name}", as_json=as_json):
        done = stream.retype(column, kind, dry_run=dry_run, message=message, who=who)
    Output(as_json=as_json).record(done.to_json())
