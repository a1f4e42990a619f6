"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.places.completion import stream_names

if TYPE_CHECKING:
    from freezeframe.store.tenant_log.version_reference import Point

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only report what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation; required without a terminal.")]
Who = Annotated[str | None, typer.Option("--who", help="The author, for the history.")]
Message = Annotated[str | None, typer.Option("--message", help="The reason, for the history.")]
StreamArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The stream's name, for example Account.", autocompletion=stream_names
    ),
]
SeenVersion = Annotated[
    int | None, typer.Option("--version", min=0, help="The tenant's version (default: the newest).")
]
StreamVersion = Annotated[
    int | None,
    typer.Option(
        "--stream-version", min=0, help="The stream's own version number, in place of the tenant's."
    ),
]
AsOf = Annotated[str | None, typer.Option(help="A moment in ISO form; UTC without a zone.")]
_POINT = "A version of the tenant, a tag, or a moment (ISO; UTC without a zone)"
TenantVersion = Annotated[str, typer.Argument(metavar="VERSION", help=f"{_POINT}.")]
LaterVersion = Annotated[
    str | None, typer.Argument(metavar="LATER", help=f"{_POINT} (default: the newest version).")
]


def point(text: str) -> Point:
    """A version or a moment from an argument: digits are a version's number, even if a tag has that name."""
    return int(text) if text.isdecimal() else text
