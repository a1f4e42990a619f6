"""`freezeframe tenant` and `gc`: the tenants of a store, and one of them as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.commands.upkeep import gc, verify_command
from freezeframe.cli.local_caller import LocalCaller, audited_change, create_tenant
from freezeframe.cli.location import TenantLocation, at_location, forget_jobs, open_store
from freezeframe.cli.operation_commands import add_commands, json_of, show_result
from freezeframe.cli.options import (
    AsOf,
    DryRun,
    EarlierVersion,
    Environment,
    Json,
    LaterVersion,
    Message,
    StoreRoot,
    StreamArgument,
    TenantVersion,
    Who,
    Yes,
    point,
    tenant_ids,
)
from freezeframe.cli.output import FAILED, Output, require_yes
from freezeframe.cli.progress import progress
from freezeframe.clock import rfc3339
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.service.operations import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from freezeframe.store import Tenant
    from freezeframe.store.diff.tenant_diff import TenantDiff
    from freezeframe.store.maintenance.restore import Restoration
    from freezeframe.store.tenant_log.history import HistoryEntry


def show(
    location: TenantLocation,
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
    tenant = location.tenant()
    moment = version if as_of is None else as_of
    if moment is None and tenant.version >= 0:
        moment = tenant.version
    seen = None if moment is None else tenant.at(moment)
    streams = [] if seen is None else [stream_fields(seen.stream(name)) for name in seen.streams()]
    files = [] if seen is None else json_of(seen.files.list(recursive=True))
    fields: dict[str, Any] = {
        "tenant": location.name,
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
        output.table("Files", files, columns=("path", "size", "modified", "sealed", "version"))


def history(
    location: TenantLocation,
    limit: Annotated[int, typer.Option(min=1, help="Number of versions at most.")] = 50,
    job: Annotated[str | None, typer.Option(help="Only versions of this job.")] = None,
    stream: Annotated[str | None, typer.Option(help="Only versions that changed this stream.")] = None,
    file: Annotated[str | None, typer.Option(help="Only versions that changed this file.")] = None,
    as_json: Json = False,
) -> None:
    """List the versions, the newest first.

    Every listed version can be read and restored.
    """
    # Names are compared as they are stored, however the shell writes their letters.
    wanted = None if stream is None else str(StreamName(stream))
    path = None if file is None else str(FilePath(file))
    entries = list(location.tenant().history(limit, job_id=job, stream=wanted, path=path))
    output = Output(as_json=as_json)
    if as_json:
        output.table(str(location), [entry.to_json() for entry in entries])
    else:
        output.table(f"History of {location}", [_line(entry) for entry in entries])


def diff(
    location: TenantLocation,
    before: EarlierVersion = None,
    after: LaterVersion = None,
    text: Annotated[bool, typer.Option("--text", help="Show the changed lines of files as well.")] = False,
    as_json: Json = False,
) -> None:
    """Show what differs between two versions; without any, what the newest one changed.

    Streams by rows, files by name, with --text by lines.
    """
    tenant = location.tenant()
    earlier = max(tenant.version - 1, 0) if before is None else point(before)
    found = tenant.diff(earlier, None if after is None else point(after))
    output = Output(as_json=as_json)
    fields = found.to_json()
    texts = {path: difference.text() for path, difference in found.files.items()} if text else {}
    if as_json:
        for path, lines in texts.items():
            fields["files"][path]["text"] = lines
        output.record(fields)
        return
    _show_difference(output, found, fields)
    for path, lines in texts.items():
        output.line(lines if lines is not None else f"{path}: sealed, too large, or no text.")


def restore(
    location: TenantLocation,
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
    caller = LocalCaller(location, who)
    carry_out_restoration(caller, version, parts, message, dry_run=dry_run, yes=yes, as_json=as_json)


def carry_out_restoration(
    caller: LocalCaller,
    version: str,
    parts: Mapping[str, Sequence[str] | None],
    message: str | None,
    *,
    stream: str = "",
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show the effect of a restoration, and carry it out after a confirmation.

    ``parts`` names the ``streams`` and ``files`` to restore (none: everything); with ``stream`` it is a
    restoration of that stream alone.
    """
    tenant, location, output = caller.tenant(), caller.location, Output(as_json=as_json)
    chosen: dict[str, Any] = {kind: names or None for kind, names in parts.items()}
    number = tenant.at(point(version)).version
    if dry_run or not yes:
        preview = tenant.restore(number, dry_run=True, **chosen)
        if dry_run or preview.is_empty:
            _show_restoration(output, preview, as_json=as_json)
            return
        if not as_json:
            _show_restoration(output, preview, as_json=False)
        require_yes(f"Make {location} what it was at version {number}?")
    action = "stream.restore" if stream else "tenant.restore"
    with (
        progress(f"Restoring {location}", as_json=as_json),
        caller.audit_change(action, stream, version=number) as change,
    ):
        done = tenant.restore(number, message=message, who=caller.who, **chosen)
        change.outcome = "" if done.committed else "unchanged"
    _show_restoration(output, done, as_json=as_json)


def stream_fields(stream: Any) -> dict[str, Any]:
    """Return a stream as lists show it: its versions, key and size."""
    return {
        "stream": stream.name,
        "tenant_version": stream.version,
        "stream_version": stream.stream_version,
        "key": list(stream.key),
        "rows": stream.count(),
        "columns": len(stream.schema),
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
    counts = (
        f"{name} +{change.inserted} ~{change.updated} -{change.deleted}"
        for name, change in entry.streams.items()
    )
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
        rows = [{"stream": name, **difference} for name, difference in fields["streams"].items()]
        output.table(f"Streams from version {found.before} to {found.after}", rows)
    if found.files:
        rows = [{"file": path, **difference} for path, difference in fields["files"].items()]
        output.table(f"Files from version {found.before} to {found.after}", rows)


def _show_restoration(output: Output, restoration: Restoration, *, as_json: bool) -> None:
    if as_json:
        output.record(restoration.to_json())
        return
    if restoration.is_empty:
        output.line(f"Everything is as it was at version {restoration.version} already.")
        return
    if restoration.streams:
        rows = [{"stream": name, **change.to_json()} for name, change in restoration.streams.items()]
        output.table("Streams", rows)
    files = [
        *({"file": path, "fate": "written"} for path in restoration.files_written),
        *({"file": path, "fate": "deleted"} for path in restoration.files_deleted),
    ]
    if files:
        output.table("Files", files)
    if restoration.committed:
        output.line(f"Restored version {restoration.version} as version {restoration.tenant_version}.")


def erase(
    location: TenantLocation,
    stream: StreamArgument,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A row's key; one of several columns as a JSON array. May be repeated."),
    ] = None,
    keys_file: Annotated[
        Path | None, typer.Option(help="A CSV file with the columns of the key; other columns are ignored.")
    ] = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove rows of a stream for good.

    From every version and all bytes; at the end what is left is read for the keys.
    The tenant's history begins anew: older
    versions of all streams and files are gone. The exit code is 1 if a row with a key is still there.
    """
    from freezeframe.cli.rows import named_keys, stored_rows

    caller, output = LocalCaller(location, who), Output(as_json=as_json)
    tenant = caller.tenant()
    rows = tenant.stream(stream)
    keys = named_keys(rows, key or (), keys_file)
    if dry_run or not yes:
        effect = {
            "stream": stream,
            "keys": len(keys),
            "rows_now": stored_rows(rows, keys),
            "versions_lost": sum(1 for _ in tenant.history()),
        }
        if dry_run:
            output.record(effect)
            return
        question = (
            f"Erase {len(keys)} keys of {stream} and all {effect['versions_lost']} versions of {location}?"
        )
        require_yes(question)
    # Keys are personal data, so the audit has only their number.
    with (
        progress(f"Erasing from {stream}", as_json=as_json),
        caller.audit_change("rows.erase", stream, keys=len(keys)),
    ):
        erasure = tenant.erase(stream, keys, who=caller.who)
    _show_erasure(output, erasure.to_json(), as_json=as_json)
    if not erasure.left.is_clean:
        raise typer.Exit(FAILED)


def retention(
    location: TenantLocation,
    keep_versions: Annotated[
        int | None, typer.Option(min=1, help="Keep this many of the newest versions.")
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option(min=0, help="Keep the versions of this many days.")
    ] = None,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Keep everything, for ever.")] = False,
    who: Who = None,
    as_json: Json = False,
) -> None:
    """Show or set how long versions are kept.

    gc deletes the versions that are no longer kept.
    """
    if keep_all and (keep_versions is not None or keep_days is not None):
        raise InvalidOption(
            "--keep-all allows no limit beside it.", remedy="Give --keep-all alone, or the limits."
        )
    caller, is_read = LocalCaller(location, who), not keep_all and keep_versions is None and keep_days is None
    limits = {"keep_versions": keep_versions, "keep_days": keep_days}
    found = catalogue.show_policy.call(caller) if is_read else catalogue.set_policy.call(caller, **limits)
    show_result(found, "tenant retention", Output(as_json=as_json))


def retention_fields(tenant: Tenant) -> dict[str, Any]:
    """Return the limits by name."""
    policy = tenant.retention()
    return {"keep_versions": policy.keep_versions, "keep_days": policy.keep_days}


def _show_erasure(output: Output, fields: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.record(fields)
        return
    left = fields.pop("left")
    output.record({**fields, **left})
    if left["remaining"]:
        output.line("Rows with these keys still exist: run the command again.")
    if left["files"]:
        names = ", ".join(left["files"])
        output.line(f"Files beside the stream that may still have the rows, and were not changed: {names}.")


TenantArgument = Annotated[
    str, typer.Argument(metavar="TENANT", help="The tenant's id.", autocompletion=tenant_ids)
]
_PAGE = 100


def list_tenants(
    root: StoreRoot,
    environment: Environment = None,
    prefix: Annotated[str, typer.Option(help="Only ids with this prefix.")] = "",
    after: Annotated[str | None, typer.Option(help="Only ids after this one, for the next page.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of entries at most.")] = _PAGE,
    as_json: Json = False,
) -> None:
    """List a store's tenants by id, a page at a time."""
    found = open_store(root, environment).tenants(prefix, after, limit)
    output = Output(as_json=as_json)
    if not found:
        output.line(f"{root} has no such tenants: freezeframe tenant create makes them.")
    if found or as_json:
        output.table(root, [{"tenant": item} for item in found])
    if len(found) == limit:
        output.line(f"There may be more: --after {found[-1]}")


def create(
    tenant: TenantArgument, root: StoreRoot, environment: Environment = None, as_json: Json = False
) -> None:
    """Make a tenant.

    The store is made with it; a tenant that is there already stays as it is.
    """
    made = create_tenant(root, environment, tenant)
    Output(as_json=as_json).record({"tenant": tenant, "tenant_version": _known_version(made)})


def delete(
    tenant: TenantArgument,
    root: StoreRoot,
    environment: Environment = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove a tenant for good.

    Everything that is kept for it is deleted, its jobs and schedules too; the counts are printed.
    """
    store, output = open_store(root, environment), Output(as_json=as_json)
    there = store.tenant(tenant)  # jobs may wait for a tenant that does not exist yet
    if dry_run:
        files = there.files.list(recursive=True)
        output.record(
            {
                "tenant": tenant,
                "tenant_version": there.version,
                "streams": list(there.streams()),
                "files": [file.path for file in files],
            }
        )
        return
    if not yes:
        require_yes(f"Remove all that is kept for {tenant} in {root}, for good?")
    with (
        progress(f"Deleting {tenant}", as_json=as_json),
        audited_change(root, environment, [], "tenant.delete", f"{store.environment}/{tenant}"),
    ):
        forget_jobs(root, store.environment, tenant)
        removed = store.delete_tenant(tenant)
    output.record(removed.to_json())


def clone(
    source: Annotated[str, typer.Argument(help="The id of the tenant to copy.")],
    target: Annotated[str, typer.Argument(help="The id of the new tenant.")],
    root: StoreRoot,
    environment: Environment = None,
    to_root: Annotated[
        str | None, typer.Option("--to-root", help="The store of the new tenant (default: the same).")
    ] = None,
    to_environment: Annotated[
        str | None, typer.Option("--to-env", help="The environment of the new tenant (default: the same).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy a tenant to a new one, in this store or in another.

    The copy has the newest streams and files, without the history.
    """
    store = open_store(root, environment)
    goal_root = to_root or root
    goal = open_store(goal_root, to_environment or store.environment, create=to_root is not None)
    with progress(f"Copying {source}", as_json=as_json):
        with audited_change(root, environment, [source], "tenant.cloned", target):
            made = store.clone_tenant(source, target, to=goal)
        with audited_change(goal_root, goal.environment, [made], "tenant.clone", target, source=source):
            pass  # the copy's own audit begins with where it came from
    Output(as_json=as_json).record({"tenant": target, "tenant_version": _known_version(made)})


def _known_version(made: Tenant) -> int:
    """Return the version that was opened: a read after the creation could fail the command."""
    return made.context.log.current_snapshot.version


app = typer.Typer(no_args_is_help=True)
app.command("list")(list_tenants)
app.command()(create)
for _command in (show, history, diff, restore):
    app.command()(at_location(_command))
add_commands(app, catalogue.set_tag, catalogue.remove_tag)
app.command()(delete)
app.command()(clone)
app.command()(at_location(gc))
app.command("verify")(verify_command)
for _change in (erase, retention):
    app.command()(at_location(_change))
