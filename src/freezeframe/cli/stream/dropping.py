"""``freezeframe stream drop``: remove a stream."""

from __future__ import annotations

from freezeframe.cli.places.options import DryRun, Json, Message, StreamArgument, Who, Yes
from freezeframe.cli.places.place import Place
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.cli.terminal.output import Output


def drop(
    place: Place,
    name: StreamArgument,
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove a stream in a new version.

    Its past stays: earlier versions can be read, and stream restore brings it back.
    """
    tenant, output = place.tenant(), Output(as_json=as_json)
    stream = tenant.stream(name)
    effect = {"stream": stream.name, "rows": stream.row_count(), "tenant_version": tenant.version}
    if dry_run:
        output.record(effect)
        return
    if not yes:
        require_yes(f"Drop {stream.name} with its {effect['rows']} rows from {place}?")
    version = tenant.drop_stream(stream.name, message=message, who=who)
    output.record({**effect, "tenant_version": version})
