"""``freezeframe tenant show|history|diff|restore|tag|untag``: a tenant's versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.places.place import (
    AsOf,
    DryRun,
    Json,
    LaterVersion,
    Message,
    Place,
    TenantVersion,
    Who,
    Yes,
    point,
)
from freezeframe.cli.tenant.maintenance import retention_fields
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.progress import progress
from freezeframe.clock import rfc3339
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import FilePath, StreamName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from freezeframe.store.tenant_log.history import HistoryEntry
    from freezeframe.store.versions.restore import Restoration
    from freezeframe.store.versions.tenant_diff import TenantDiff

TagName = Annotated[str, typer.Argument(metavar="TAG", help="The tag's name.")]


def show(
    place: Place,
    version: Annotated[
        int | None, typer.Option(min=0, help="The tenant's version (default: the newest).")
    ] = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show what a tenant holds, now or earlier.

    Its streams, files, tags and retention, at a version or moment.
    """
    if version is not None and as_of is not None:
        raise InvalidOption("--version and --as-of cannot be used together.", remedy="Give one of them.")
    tenant = place.tenant()
    moment = version if as_of is None else as_of
    if moment is None and tenant.version >= 0:
        moment = tenant.version
    seen = None if moment is None else tenant.at(moment)
    streams = [] if seen is None else [stream_fields(seen.stream(name)) for name in seen.streams()]
    files = [] if seen is None else [entry.to_json() for entry in seen.files.list(recursive=True)]
    fields: dict[str, Any] = {
        "tenant": place.name,
        "tenant_version": -1 if seen is None else seen.version,
        "timestamp": None if seen is None else rfc3339(seen.timestamp),
        "tags": tenant.tags(),
        "retention": retention_fields(tenant),
    }
    output = Output(as_json=as_json)
    if as_json:
        output.record({**fields, "streams": streams, "files": files})
        return
    output.record(
        {**fields, "tags": _tags(fields["tags"]) or None, "retention": _retention(fields["retention"])}
    )
    if streams:
        output.table("Streams", streams)
    if files:
        output.table("Files", files, columns=("path", "size", "modified", "sealed", "tenant_version"))


def history(
    place: Place,
    limit: Annotated[int, typer.Option(min=1, help="Number of versions at most.")] = 50,
    job: Annotated[str | None, typer.Option(help="Only versions of this job.")] = None,
    stream: Annotated[str | None, typer.Option(help="Only versions that changed this stream.")] = None,
    file: Annotated[str | None, typer.Option(help="Only versions that changed this file.")] = None,
    as_json: Json = False,
) -> None:
    """List the versions, the newest first.

    Every one that is listed can be read and restored.
    """
    # Names are compared as they are stored, however the shell writes their letters.
    wanted = None if stream is None else str(StreamName(stream))
    path = None if file is None else str(FilePath(file))
    entries = list(place.tenant().history(limit, job_id=job, stream=wanted, path=path))
    output = Output(as_json=as_json)
    if as_json:
        output.table(str(place), [entry.to_json() for entry in entries])
    else:
        output.table(f"History of {place}", [_line(entry) for entry in entries])


def diff(
    place: Place,
    before: TenantVersion,
    after: LaterVersion = None,
    text: Annotated[bool, typer.Option("--text", help="Show the changed lines of files as well.")] = False,
    as_json: Json = False,
) -> None:
    """Show what differs between two versions.

    Streams by rows, files by name, with --text by lines.
    """
    found = place.tenant().diff(point(before), None if after is None else point(after))
    output = Output(as_json=as_json)
    fields = found.to_json()
    texts = {path: one.text() for path, one in found.files.items()} if text else {}
    if as_json:
        for path, lines in texts.items():
            fields["files"][path]["text"] = lines
        output.record(fields)
        return
    _show_difference(output, found, fields)
    for path, lines in texts.items():
        output.line(lines if lines is not None else f"{path}: sealed, too large, or no text.")


def restore(
    place: Place,
    version: TenantVersion,
    stream: Annotated[list[str] | None, typer.Option(help="Only this stream; may be repeated.")] = None,
    file: Annotated[list[str] | None, typer.Option(help="Only this file; may be repeated.")] = None,
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Bring an earlier version back, whole or in parts.

    That is a new version: nothing that came since is lost.
    """
    parts = {"streams": stream, "files": file}
    carry_out_restoration(place, version, parts, (who, message), dry_run=dry_run, yes=yes, as_json=as_json)


def carry_out_restoration(
    place: Place,
    version: str,
    parts: Mapping[str, Sequence[str] | None],
    author: tuple[str | None, str | None],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show the effect of a restoration, and carry it out after a confirmation.

    ``parts`` names the ``streams`` and ``files`` to restore (none: everything), ``author`` who and why.
    """
    tenant, output = place.tenant(), Output(as_json=as_json)
    chosen: dict[str, Any] = {kind: names or None for kind, names in parts.items()}
    who, message = author
    number = tenant.at(point(version)).version
    if dry_run or not yes:
        preview = tenant.restore(number, dry_run=True, **chosen)
        if dry_run or preview.is_empty:
            _show_restoration(output, preview, as_json=as_json)
            return
        if not as_json:
            _show_restoration(output, preview, as_json=False)
        require_yes(f"Make {place} what it was at version {number}?")
    with progress(f"Restoring {place}", as_json=as_json):
        done = tenant.restore(number, message=message, who=who, **chosen)
    _show_restoration(output, done, as_json=as_json)


def tag(
    place: Place,
    name: TagName,
    version: LaterVersion = None,
    who: Who = None,
    as_json: Json = False,
) -> None:
    """Name a version and keep it.

    It is kept whatever the retention says, until the tag is taken off or an erasure ends all history.
    """
    tenant = place.tenant()
    wanted = None if version is None else tenant.at(point(version)).version
    tagged = tenant.tag(name, wanted, who=who)
    Output(as_json=as_json).record({"tag": name, "tenant_version": tagged})


def untag(place: Place, name: TagName, who: Who = None, as_json: Json = False) -> None:
    """Take a tag off.

    Its version is then kept as long as the retention says.
    """
    tenant = place.tenant()
    tenant.untag(name, who=who)
    output = Output(as_json=as_json)
    if as_json:
        output.record({"tags": tenant.tags()})
    else:
        output.line(f"{place} has the tags: {_tags(tenant.tags()) or 'none'}.")


def stream_fields(stream: Any) -> dict[str, Any]:
    """A stream as lists show it: its versions, key and size."""
    return {
        "stream": stream.name,
        "tenant_version": stream.version(),
        "stream_version": stream.stream_version(),
        "key": list(stream.key()),
        "rows": stream.row_count(),
        "columns": len(stream.columns()),
    }


def _tags(tags: dict[str, int]) -> str:
    return ", ".join(f"{name} = {version}" for name, version in sorted(tags.items()))


def _retention(policy: dict[str, Any]) -> str:
    versions, days = policy["keep_versions"], policy["keep_days"]
    limits = [
        *([] if versions is None else [f"the newest {versions} versions"]),
        *([] if days is None else [f"those of the last {days:g} days"]),
    ]
    return " and ".join(limits) or "all versions"


def _line(entry: HistoryEntry) -> dict[str, Any]:
    counts = (f"{name} +{one.inserted} ~{one.updated} -{one.deleted}" for name, one in entry.streams.items())
    return {
        "tenant_version": entry.version,
        "timestamp": entry.timestamp.isoformat(timespec="seconds"),
        "kind": entry.kind if entry.restored is None else f"restore of {entry.restored}",
        "author": entry.who or None,
        "job_id": entry.job_id,
        "message": " ".join(filter(None, [entry.message, "(changed nothing)" if entry.is_idle else ""]))
        or None,
        "streams": [*counts, *(f"{name} dropped" for name in entry.streams_dropped)],
        "files": [*entry.files_written, *(f"{path} deleted" for path in entry.files_deleted)],
        "tags": list(entry.tags),
    }


def _show_difference(output: Output, found: TenantDiff, fields: dict[str, Any]) -> None:
    if not (found.streams or found.files):
        output.line(f"Versions {found.before} and {found.after} hold the same.")
    if found.streams:
        rows = [{"stream": name, **one} for name, one in fields["streams"].items()]
        output.table(f"Streams from version {found.before} to {found.after}", rows)
    if found.files:
        rows = [{"file": path, **one} for path, one in fields["files"].items()]
        output.table(f"Files from version {found.before} to {found.after}", rows)


def _show_restoration(output: Output, told: Restoration, *, as_json: bool) -> None:
    if as_json:
        output.record(told.to_json())
        return
    if told.is_empty:
        output.line(f"Everything is as it was at version {told.version} already.")
        return
    if told.streams:
        rows = [{"stream": name, **one.to_json()} for name, one in told.streams.items()]
        output.table("Streams", rows)
    files = [
        *({"file": path, "fate": "written"} for path in told.files_written),
        *({"file": path, "fate": "deleted"} for path in told.files_deleted),
    ]
    if files:
        output.table("Files", files)
    if told.committed:
        output.line(f"Restored version {told.version} as version {told.tenant_version}.")
