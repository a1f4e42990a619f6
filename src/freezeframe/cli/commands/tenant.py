"""`freezeframe tenant` and `gc`: the tenants of a store, and one of them as a whole."""

from __future__ import annotations

from functools import partial
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
    Environment,
    Json,
    Message,
    StoreRoot,
    StreamArgument,
    TenantVersion,
    Who,
    Yes,
    tenant_ids,
)
from freezeframe.cli.output import FAILED, Output, require_yes
from freezeframe.cli.progress import carry_out_shown, progress
from freezeframe.cli.reversions import Only, Reverting, Where, revert_of
from freezeframe.clock import rfc3339
from freezeframe.errors import InvalidOption
from freezeframe.service.operations import tenants
from freezeframe.service.operations.operation import seen_version
from freezeframe.service.operations.tenants import TenantDetail
from freezeframe.settings import load_settings
from freezeframe.store.tenant_log.history import require_one_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from freezeframe.service.operations.tenants import Difference, HistoryPage
    from freezeframe.service.operations.tenants import TenantVersion as ShownVersion
    from freezeframe.store import Tenant
    from freezeframe.store.maintenance.restore import Restoration


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
    require_one_version({"--version": version, "--as-of": as_of})
    tenant = location.tenant()
    number = seen_version(tenant, version, as_of)
    seen = None if number < 0 else tenant.at(number)
    streams = [] if seen is None else [stream_fields(seen.stream(name)) for name in seen.streams()]
    files = [] if seen is None else json_of(seen.files.list(recursive=True))
    fields: dict[str, Any] = {
        "tenant": location.name,
        "tenant_version": -1 if seen is None else seen.version,
        "timestamp": None if seen is None else rfc3339(seen.timestamp),
        "tags": tenant.tags(),
        "retention": json_of(tenants.show_policy.call(LocalCaller(location))),
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
    from freezeframe.service.operations.rows import restore_tenant

    caller = LocalCaller(location, who)
    restore = partial(restore_tenant.call, caller, streams=stream or None, files=file or None)
    carry_out_restoration(caller, restore, version, message, dry_run=dry_run, yes=yes, as_json=as_json)


def carry_out_restoration(
    caller: LocalCaller,
    restore: Callable[..., Restoration],
    version: str,
    message: str | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show the effect of a restoration, and carry it out after a confirmation."""
    location, number = caller.location, caller.version(version)
    show = partial(_show_restoration, Output(as_json=as_json), as_json=as_json)
    question = f"Make {location} what it was at version {number}?"
    how: dict[str, Any] = {"dry_run": dry_run, "yes": yes, "as_json": as_json}
    call = partial(restore, version=number)
    carry_out_shown(call, show, question, message, label=f"Restoring {location}", **how)


def revert(
    location: TenantLocation,
    version: TenantVersion,
    since: Annotated[
        str | None, typer.Option(help="The first of several versions that go back as one, up to VERSION.")
    ] = None,
    only: Only = None,
    where: Where = None,
    message: Message = None,
    who: Who = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take one version back, or several as one, and keep what came after.

    Cell by cell: what is still as the version made it becomes what it was before. What was changed again
    since stays and is listed. That is a new version, which can be reverted too.
    """
    caller = LocalCaller(location, who)
    number, first = caller.version(version), None if since is None else caller.version(since)
    reverting = Reverting(message, dry_run=dry_run, yes=yes, as_json=as_json)
    named = f"version {number}" if first is None else f"versions {first} to {number}"
    revert = revert_of(caller, only, where, version=number, since=first)
    reverting.one(revert, f"Take {named} of {location} back?")


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


def show_history(page: HistoryPage, output: Output) -> None:
    """Print versions, a line each."""
    output.table("Versions", list(map(_line, page.versions)))
    if page.next_cursor is not None:
        output.line(f"There are more: --cursor {page.next_cursor}")


def _line(entry: ShownVersion) -> dict[str, Any]:
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


def show_difference(found: Difference, output: Output) -> None:
    """Print what differs between two versions: streams by rows, files by name and by lines."""
    between = f"from version {found.before} to {found.after}"
    if not (found.streams or found.files):
        output.line(f"Versions {found.before} and {found.after} hold the same.")
    if found.streams:
        rows = [{"stream": name, **json_of(item)} for name, item in found.streams.items()]
        output.table(f"Streams {between}", rows)
    if found.files:
        files = [
            {"file": path, "fate": item.fate, "sealed": item.sealed} for path, item in found.files.items()
        ]
        output.table(f"Files {between}", files)
    for item in found.files.values():
        if item.text is not None:
            output.line(item.text)


def _show_restoration(output: Output, restoration: Restoration, *, as_json: bool) -> None:
    if as_json:
        output.record(json_of(restoration))
        return
    if restoration.is_empty:
        output.line(f"Everything is as it was at version {restoration.version} already.")
        return
    if restoration.streams:
        rows = [{"stream": name, **json_of(change)} for name, change in restoration.streams.items()]
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
    from freezeframe.cli.rows import named_keys

    caller, output = LocalCaller(location, who), Output(as_json=as_json)
    tenant = caller.tenant()
    rows = tenant.stream(stream)
    keys = named_keys(rows, key or (), keys_file)
    if dry_run or not yes:
        effect = {
            "stream": stream,
            "keys": len(keys),
            "rows_now": tenant.erase(stream, keys, dry_run=True).rows_erased,
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
        int | None, typer.Option(min=1, help="Keep this many of the newest tenants.")
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
    limits: dict[str, Any] = {"keep_versions": keep_versions, "keep_days": keep_days}
    found = tenants.show_policy.call(caller) if is_read else tenants.set_policy.call(caller, **limits)
    show_result(found, tenants.set_policy, Output(as_json=as_json))


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


def create(
    tenant: TenantArgument, root: StoreRoot, environment: Environment = None, as_json: Json = False
) -> None:
    """Make a tenant.

    The store is made with it; a tenant that is there already stays as it is.
    """
    _show_made(create_tenant(root, environment, tenant), tenant, environment, as_json=as_json)


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
    _show_made(made, target, goal.environment, as_json=as_json)


def _show_made(made: Tenant, tenant_id: str, environment: str | None, *, as_json: bool) -> None:
    """Print a new tenant as it was opened: a read after its creation could fail the command."""
    state = made.context.log.current_snapshot.state
    detail = TenantDetail.of(environment or load_settings().environment, tenant_id, state)
    Output(as_json=as_json).record(json_of(detail))


app = typer.Typer(no_args_is_help=True)
add_commands(app, tenants.list_tenants)
app.command()(create)
for _command in (show, restore, revert):
    app.command()(at_location(_command))
add_commands(
    app,
    *(tenants.list_history, tenants.show_difference, tenants.set_tag, tenants.remove_tag),
    list_history=show_history,
    show_difference=show_difference,
)
app.command()(delete)
app.command()(clone)
app.command()(at_location(gc))
app.command("verify")(verify_command)
for _change in (erase, retention):
    app.command()(at_location(_change))
