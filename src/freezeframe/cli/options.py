"""Options and arguments that many commands share, so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from freezeframe.cli.completion import stream_names

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; needed where there is no terminal.")]
Who = Annotated[str | None, typer.Option("--who", help="Who does it, for the history.")]
Message = Annotated[str | None, typer.Option("--message", help="Why, for the history.")]
StreamArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The stream's name, for example Account.", autocompletion=stream_names
    ),
]
AsOf = Annotated[str | None, typer.Option(help="A moment in ISO form; UTC without a zone.")]
TenantVersion = Annotated[int, typer.Argument(min=0, help="A version of the tenant.")]
