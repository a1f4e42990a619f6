"""``freezeframe stream release|adopt|repair``: whether the tenant log alone writes a stream's table."""

from __future__ import annotations

from typing import Annotated

import typer

from freezeframe.cli.places.options import Json, StreamArgument, Who, Yes
from freezeframe.cli.places.place import Place
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.cli.terminal.output import Output
from freezeframe.errors import InvalidOption


def release(place: Place, name: StreamArgument, who: Who = None, as_json: Json = False) -> None:
    """Let a stream go, for others to write.

    Its table stays where it is; adopt takes it back.
    """
    version = place.tenant().stream(name).release(who=who)
    Output(as_json=as_json).record({"stream": name, "tenant_version": version})


def adopt(
    place: Place,
    name: StreamArgument,
    key: Annotated[
        list[str] | None, typer.Option(help="A column of the key (default: as stored with the table).")
    ] = None,
    no_key: Annotated[bool, typer.Option("--no-key", help="The stream has no key.")] = False,
    who: Who = None,
    as_json: Json = False,
) -> None:
    """Take a Delta table in as a stream.

    It is the one in the folder NAME.snapshot; other writers must then refuse it.
    """
    if key and no_key:
        raise InvalidOption("--key and --no-key cannot be used together.", remedy="Give one of them.")
    tenant = place.tenant()
    version = tenant.adopt(name, () if no_key else (key or None), who=who)
    Output(as_json=as_json).record(
        {"stream": name, "key": list(tenant.stream(name).key()), "tenant_version": version}
    )


def repair(
    place: Place,
    name: StreamArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Ignore commits of other writers.")] = False,
    who: Who = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Mend a stream that others wrote to.

    Its table was changed around the tenant log, and updates refuse it. What others committed is taken
    over if it can be; if not, or with --undo, a new version undoes it.
    """
    stream = place.tenant().stream(name)
    if undo and not yes:
        require_yes(f"Undo what others committed to {name}?")
    Output(as_json=as_json).record(stream.repair(undo=undo, who=who).to_json())
