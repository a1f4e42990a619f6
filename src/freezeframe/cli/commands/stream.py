"""`freezeframe stream`: the streams of a tenant."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.commands.tenant import carry_out_restoration, stream_fields
from freezeframe.cli.commands.transfer import Key, export, import_rows
from freezeframe.cli.local_caller import LocalCaller
from freezeframe.cli.location import TenantLocation, at_location
from freezeframe.cli.operation_commands import add_commands, json_of
from freezeframe.cli.options import (
    AsOf,
    DryRun,
    Json,
    LaterVersion,
    Message,
    SeenVersion,
    StreamArgument,
    StreamVersion,
    TenantVersion,
    Who,
    Yes,
    point,
    with_update,
)
from freezeframe.cli.output import NOT_FOUND, Output, change_of, require_yes, sparkline
from freezeframe.cli.progress import progress
from freezeframe.cli.rows import FormatOption, print_changes, print_rows
from freezeframe.identifiers import StreamName
from freezeframe.service.operations.tenants import adopt_stream, drop_stream, list_history, release_stream
from freezeframe.store.model.update_options import UpdateOptions

if TYPE_CHECKING:
    from freezeframe.service.rows.differences import RowOrigin
    from freezeframe.store import Tenant


Limit = Annotated[int, typer.Option(min=1, help="Number of rows at most.")]
Until = Annotated[
    str | None, typer.Option(help="A version of the tenant, tag or moment (default: the newest).")
]
_ROWS_SHOWN = 20
_HASH_SHOWN = 12


def changes(
    location: TenantLocation,
    name: StreamArgument,
    starting_version: Annotated[
        str | None,
        typer.Option(help="The first version of the tenant, tag or moment whose changes are listed."),
    ] = None,
    ending_version: Annotated[str | None, typer.Option(help="The last one (default: the newest).")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Until the next minor version: net changes after a version (default: all)."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Until the next minor version: net changes up to a version.")
    ] = None,
    limit: Limit = _ROWS_SHOWN,
    as_json: Json = False,
) -> None:
    """Show what became of a stream's rows.

    Lists the rows that were inserted, updated or deleted, version by version, in the words of Delta's change
    feed. Without --starting-version net changes are listed, as by stream diff.
    """
    stream = location.tenant().stream(name)
    given = (since, until, starting_version, ending_version)
    since_, until_, start, end = (None if item is None else point(item) for item in given)
    found = stream.changes(since_, until_, starting_version=start, ending_version=end, as_="arrow")
    if start is None:
        print_changes(name, found, stream.key, limit, as_json=as_json)
        return
    shown = found.slice(0, limit)
    print_rows(f"{name}: {len(shown)} of {len(found)} changes", shown, "table", as_json=as_json)


def diff(
    location: TenantLocation,
    name: StreamArgument,
    before: TenantVersion,
    after: LaterVersion = None,
    limit: Limit = _ROWS_SHOWN,
    as_json: Json = False,
) -> None:
    """Show a stream's rows that differ.

    Between two versions of the tenant, even if the stream came or went between.
    """
    tenant = location.tenant()
    found = tenant.diff(point(before), None if after is None else point(after))
    difference = found.streams.get(str(StreamName(name)))
    if difference is not None:
        there = tenant.at(found.after if difference.fate != "removed" else found.before)
        print_changes(name, difference.changes("arrow"), there.stream(name).key, limit, as_json=as_json)
        return
    tenant.at(found.after).stream(name).snapshot()  # an unknown stream is an error, not an empty difference
    output = Output(as_json=as_json)
    output.line(f"{name} is the same at versions {found.before} and {found.after}.")
    if as_json:
        output.table(name, [])


def restore(
    location: TenantLocation,
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
    from freezeframe.service.operations.rows import restore_stream

    caller = LocalCaller(location, who)
    restore = partial(restore_stream.call, caller, stream=name)
    carry_out_restoration(caller, restore, version, message, dry_run=dry_run, yes=yes, as_json=as_json)


def row(
    location: TenantLocation,
    name: StreamArgument,
    key: Annotated[
        str, typer.Argument(help="The key's value; of several columns a JSON array of the values.")
    ],
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of versions at most.")] = 20,
    origin: Annotated[
        bool,
        typer.Option(
            "--origin", help="Show the version, job, script and input file that each value comes from."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a row and what each version did to it, or where each of its values comes from.

    The versions of the tenant that inserted, updated or deleted the row, the newest first. The exit code is 4
    where the row is not there, also if its history is.
    """
    from freezeframe.service.operations.rows import show_row_history, show_row_origin

    caller, output = LocalCaller(location), Output(as_json=as_json)
    newest = None if until is None else caller.tenant().at(point(until)).version
    if origin:
        _show_origin(show_row_origin.call(caller, stream=name, key=key, until=newest), name, key, output)
        return
    found = show_row_history.call(caller, stream=name, key=key, until=newest, limit=limit)
    if as_json:
        output.record(json_of(found))
    elif found.row is None:
        output.line(f"{name} has no row {key}.")
    else:
        output.table(
            f"{name} {key}", [{"column": column, "value": value} for column, value in found.row.items()]
        )
    rows = [
        {
            "tenant_version": version.version,
            "timestamp": version.timestamp.isoformat(timespec="seconds"),
            "author": version.who,
            "job_id": version.job_id,
            **change_of(version.row, tuple(found.key)),
        }
        for version in found.versions
    ]
    if not as_json:
        output.table("Versions that touched it", rows)
    if found.following is not None:
        output.line(f"Older ones: --until {found.following}")
    elif not found.is_whole:
        output.line("Older versions are no longer kept, or had another key.")
    if found.row is None:
        raise typer.Exit(NOT_FOUND)


def _show_origin(found: RowOrigin, name: str, key: str, output: Output) -> None:
    """Print where each cell of a row comes from."""
    named = ("column", "value", "version", "timestamp", "kind", "who", "job_id", "message")
    cells = [
        {
            **{name: getattr(cell, name) for name in named},
            "script": cell.script_sha256[:_HASH_SHOWN],
            "comes_from": cell.text,
        }
        for cell in found.cells
    ]
    if output.as_json:
        output.record(json_of(found))
    elif cells:
        output.table(f"{name} {key}", cells)
    else:
        output.line(f"{name} has no row {key}.")
    if not cells:
        raise typer.Exit(NOT_FOUND)


def repair(
    location: TenantLocation,
    name: StreamArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Ignore commits of other writers.")] = False,
    who: Who = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Repair a stream that other programs wrote to.

    Its table was changed around the tenant log, and updates refuse it. What others committed is taken
    over if it can be; if not, or with --undo, a new version undoes it.
    """
    caller = LocalCaller(location, who)
    stream = caller.tenant().stream(name)
    if undo and not yes:
        require_yes(f"Undo what others committed to {name}?")
    with caller.audit_change("stream.repair", name, undo=undo) as change:
        done = stream.repair(undo=undo, who=caller.who)
        change.outcome = "" if done.versions else "unchanged"
    Output(as_json=as_json).record(done.to_json())


def drop(
    location: TenantLocation,
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
    caller, output = LocalCaller(location, who), Output(as_json=as_json)
    tenant = caller.tenant()
    stream = tenant.stream(name)
    effect = {"stream": stream.name, "rows": stream.count(), "tenant_version": tenant.version}
    if dry_run:
        output.record(effect)
        return
    if not yes:
        require_yes(f"Drop {stream.name} with its {effect['rows']} rows from {location}?")
    done = drop_stream.call(caller, stream=stream.name, message=message or "")
    output.record({**effect, "tenant_version": done.tenant_version})


_SNIPPETS = {
    "duckdb": "duckdb.sql(\"INSTALL delta; SELECT * FROM delta_scan('{path}')\")",
    "polars": 'polars.scan_delta("{path}")',
    "delta_rs": 'deltalake.QueryBuilder().register("t", deltalake.DeltaTable("{path}"))',
    "spark": 'spark.read.format("delta").load("{path}")',
}
# Polars, delta-rs and DuckDB decode escapes in a path, or encode its spaces, and find no file then.
_OPENED = 'freezeframe.DeltaLog.open("{path}")'
_ODD_SNIPPETS = _SNIPPETS | {
    "duckdb": f"duckdb.from_arrow({_OPENED}.to_dataset())",
    "polars": f"polars.scan_pyarrow_dataset({_OPENED}.to_dataset())",
    "delta_rs": f"{_OPENED}.to_arrow()",
}
_PLAIN_PATH = re.compile(r"[\w./:@+=,-]*", re.ASCII)


def path(location: TenantLocation, name: StreamArgument, as_json: Json = False) -> None:
    """Print where a stream's Delta table is.

    With a line of Python each for DuckDB, Polars, delta-rs and Spark; the table is for reading only.
    """
    from freezeframe.store.model.directory import table_folder

    tenant = location.tenant()
    stream = tenant.stream(name)
    stream.snapshot()  # an unknown stream is an error, not a path
    found = f"{tenant.context.storage.root}/{table_folder(StreamName(name))}"
    texts = _SNIPPETS if _PLAIN_PATH.fullmatch(found) else _ODD_SNIPPETS
    snippets = {tool: text.replace("{path}", found) for tool, text in texts.items()}
    output = Output(as_json=as_json)
    if as_json:
        output.record(
            {"stream": stream.name, "path": found, "stream_version": stream.stream_version, **snippets}
        )
        return
    output.line(found)
    output.record(snippets)


def retype(
    location: TenantLocation,
    name: StreamArgument,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The column, which may be one of the key.")],
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
    caller = LocalCaller(location, who)
    stream, how = caller.tenant().stream(name), {"column": column, "type": kind}
    with progress(f"Retyping {name}", as_json=as_json):
        if dry_run:
            done = stream.retype(column, kind, dry_run=True)
        else:
            with caller.audit_change("stream.retype", name, **how) as change:
                done = stream.retype(column, kind, message=message, who=caller.who)
                change.outcome = "" if done.committed else "unchanged"
    Output(as_json=as_json).record(done.to_json())


app = typer.Typer(no_args_is_help=True)


def list_streams(location: TenantLocation, as_json: Json = False) -> None:
    """List the streams.

    Each with the tenant's version that changed it last, its own version, key, rows and columns.
    """
    tenant = location.tenant()
    rows = [stream_fields(tenant.stream(name)) for name in tenant.streams()]
    output = Output(as_json=as_json)
    if not rows:
        output.line(f"{location} holds no streams yet: a job's update_snapshot makes them.")
    if rows or as_json:
        output.table(str(location), rows)


def show(
    location: TenantLocation,
    name: StreamArgument,
    version: SeenVersion = None,
    as_of: AsOf = None,
    stream_version: StreamVersion = None,
    tenant_version: Annotated[
        int | None, typer.Option("--tenant-version", help="The same as --version.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="""SQL, such as "City = 'Bern' AND Amount > 3"; may be repeated, then all must hold."""
        ),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--column", "--columns", help="A column; may be repeated.")
    ] = None,
    limit: Limit = _ROWS_SHOWN,
    form: FormatOption = "table",
    as_json: Json = False,
) -> None:
    """Show rows of a stream, now or earlier."""
    stream = location.tenant().stream(name)
    moment: dict[str, Any] = {
        "version": version,
        "as_of": as_of,
        "stream_version": stream_version,
        "tenant_version": tenant_version,
    }
    table = stream.read(**moment, columns=columns, where=where or None, as_="arrow")
    title = f"{name}: {min(limit, table.num_rows)} of {table.num_rows} rows"
    print_rows(title, table.slice(0, limit), form, as_json=as_json)


def history(
    location: TenantLocation,
    name: Annotated[str | None, typer.Argument(help="A stream (default: all of them).")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of tenant versions at most.")] = 50,
    as_json: Json = False,
) -> None:
    """List what became of rows, version by version.

    The tenant's versions, the newest first, with each stream's counts.
    """
    caller, output = LocalCaller(location), Output(as_json=as_json)
    tenant = caller.tenant()
    if name is not None:
        name = tenant.stream(name).name  # as it is stored, however the shell writes its letters
        tenant.stream(name).snapshot()  # an unknown stream is an error, not an empty history
    page = list_history.call(caller, stream=name, limit=limit)
    if as_json:
        output.record(json_of(page))
        return
    rows = [
        {
            "tenant_version": entry.version,
            "timestamp": entry.timestamp.isoformat(timespec="seconds"),
            "stream": stream,
            **json_of(counts),
            "job_id": entry.job_id,
        }
        for entry in page.versions
        for stream, counts in entry.streams.items()
        if name in {None, stream}
    ]
    if name is not None and rows:
        versions = [row["tenant_version"] for row in reversed(rows)]
        counts = [_rows_at(tenant, name, version) for version in versions]
        output.line(f"Rows {sparkline(counts)} {counts[0]:,} at version {versions[0]}, {counts[-1]:,} now")
    output.table(f"History of {name or location}", rows)


@with_update
def explain(
    location: TenantLocation,
    name: StreamArgument,
    batch: Annotated[
        Path | None, typer.Option(help="A file with the rows of the update, as import takes it.")
    ] = None,
    key: Key = None,
    *,
    update: UpdateOptions,
    as_json: Json = False,
) -> None:
    """Show how an update would be carried out.

    File by file, and why; nothing is written. Without --batch it is about an
    update that brings new rows only.
    """
    from freezeframe.script.inputs.transfer import file_rows

    stream = location.tenant().stream(name)
    stored = stream.schema if stream.stream_version >= 0 else None
    rows = None if batch is None else file_rows(batch, stored=stored)
    explanation = stream.explain(rows, key=key or None, **update)
    output = Output(as_json=as_json)
    if as_json:
        output.record(explanation.to_json())
        return
    route = explanation.route
    output.line(f"{name}, stream version {explanation.stream_version}: {route.kind}, {route.reason}.")
    if route.engine:
        who = {"spark": "Spark", "process": "the job's own process"}[route.engine]
        output.line(f"Stored rows: {who} searches or merges them.")
    counts = explanation.counts
    if counts is not None:
        output.line(
            f"Rows: {counts.inserted:,} new, {counts.updated:,} updated, {counts.unchanged:,} unchanged, "
            f"{counts.deleted:,} deleted; {explanation.bytes_written:,} bytes to be written."
        )
    if route.choices:
        files = explanation.files()
        output.table("Its files", [{**line, "file": line["file"].rpartition("/")[2]} for line in files])


def _rows_at(tenant: Tenant, name: str, version: int) -> int:
    """Return the number of rows at a version; None if that version had dropped the stream."""
    seen = tenant.at(version)
    return seen.stream(name).count() if name in seen.streams() else 0


app.command("list")(at_location(list_streams))
for _command in (show, history, changes, row, diff, restore, path, explain):
    app.command()(at_location(_command))
app.command("import")(at_location(import_rows))
for _change in (export, retype, drop, repair):
    app.command()(at_location(_change))
add_commands(app, release_stream, adopt_stream)
