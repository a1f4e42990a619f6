"""Commands of streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.places.place import (
    AsOf,
    DryRun,
    Json,
    Message,
    Place,
    SeenVersion,
    StreamArgument,
    StreamVersion,
    Who,
    Yes,
    at_place,
)
from freezeframe.cli.places.update_flags import with_update
from freezeframe.cli.stream.transfer import Key, export, import_rows
from freezeframe.cli.stream.versions import changes, diff, restore, row
from freezeframe.cli.tenant.versions import stream_fields
from freezeframe.cli.terminal.confirmation import require_yes
from freezeframe.cli.terminal.output import Output, sparkline
from freezeframe.cli.terminal.progress import progress
from freezeframe.cli.terminal.row_output import Format, FormatOption, print_rows
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.store.model.update_options import UpdateOptions

if TYPE_CHECKING:
    from freezeframe.store import Stream, Tenant


# ``freezeframe stream release|adopt|repair``: whether the tenant log alone writes a stream's table.


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


# ``freezeframe stream drop``: remove a stream.


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


# ``freezeframe stream path``: the location of a stream's Delta table, and snippets for other tools.

_SNIPPETS = {
    "duckdb": "duckdb.sql(\"INSTALL delta; SELECT * FROM delta_scan('{path}')\")",
    "polars": 'polars.scan_delta("{path}")',
    "delta_rs": 'deltalake.QueryBuilder().register("t", deltalake.DeltaTable("{path}"))',
    "spark": 'spark.read.format("delta").load("{path}")',
}


def path(place: Place, name: StreamArgument, as_json: Json = False) -> None:
    """Print where a stream's Delta table is.

    With a line of Python each for DuckDB, Polars, delta-rs and Spark; the table is for reading only.
    """
    from freezeframe.store.model.directory import table_folder

    tenant = place.tenant()
    stream = tenant.stream(name)
    stream.columns()  # an unknown stream is an error, not a path
    found = f"{tenant.place.storage.root}/{table_folder(StreamName(name))}"
    snippets = {tool: text.replace("{path}", found) for tool, text in _SNIPPETS.items()}
    output = Output(as_json=as_json)
    if as_json:
        output.record(
            {"stream": stream.name, "path": found, "stream_version": stream.stream_version(), **snippets}
        )
        return
    output.line(found)
    output.record(snippets)


# ``freezeframe stream retype``: change the type of a column.


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


# ``freezeframe stream``: list and show a tenant's streams, without Spark.

app = typer.Typer(no_args_is_help=True)


def list_streams(place: Place, as_json: Json = False) -> None:
    """List the streams.

    Each with the tenant's version that changed it last, its own version, key, rows and columns.
    """
    tenant = place.tenant()
    rows = [stream_fields(tenant.stream(name)) for name in tenant.streams()]
    output = Output(as_json=as_json)
    if not rows:
        output.line(f"{place} holds no streams yet: a job's update_snapshot makes them.")
    if rows or as_json:
        output.table(str(place), rows)


def show(
    place: Place,
    name: StreamArgument,
    version: SeenVersion = None,
    as_of: AsOf = None,
    stream_version: StreamVersion = None,
    tenant_version: Annotated[
        int | None, typer.Option("--tenant-version", help="The same as --version.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help='"COLUMN OP VALUE" with = != < <= > >=, or "COLUMN is null"; all must hold.'),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--column", "--columns", help="A column; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of rows at most.")] = 20,
    form: FormatOption = Format.TABLE,
    as_json: Json = False,
) -> None:
    """Show rows of a stream, now or earlier."""
    stream = place.tenant().stream(name)
    moment: dict[str, Any] = {
        "version": version,
        "as_of": as_of,
        "stream_version": stream_version,
        "tenant_version": tenant_version,
    }
    condition = None if not where else _predicate(stream, where, moment)
    table = stream.read(**moment, columns=columns, where=condition, as_="arrow")
    title = f"{name}: {min(limit, table.num_rows)} of {table.num_rows} rows"
    print_rows(title, table.slice(0, limit), form, as_json=as_json)


def history(
    place: Place,
    name: Annotated[str | None, typer.Argument(help="A stream (default: all of them).")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of tenant versions at most.")] = 50,
    as_json: Json = False,
) -> None:
    """List what became of rows, version by version.

    The tenant's versions, the newest first, with each stream's counts.
    """
    tenant = place.tenant()
    if name is not None:
        name = tenant.stream(name).name  # as it is stored, however the shell writes its letters
        tenant.stream(name).columns()  # an unknown stream is an error, not an empty history
    rows = [
        {
            "tenant_version": entry.version,
            "timestamp": entry.timestamp.isoformat(timespec="seconds"),
            "stream": stream,
            **counts.to_json(),
            "job_id": entry.job_id,
        }
        for entry in tenant.history(limit=limit)
        for stream, counts in entry.streams.items()
        if name in {None, stream}
    ]
    output = Output(as_json=as_json)
    if name is not None and rows and not as_json:
        versions = [int(row["tenant_version"] or 0) for row in reversed(rows)]
        counts = [_rows_at(tenant, name, version) for version in versions]
        output.line(f"Rows {sparkline(counts)} {counts[0]:,} at version {versions[0]}, {counts[-1]:,} now")
    output.table(f"History of {name or place}", rows)


@with_update
def explain(
    place: Place,
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
    from freezeframe.script.transfer import file_rows

    stream = place.tenant().stream(name)
    stored = stream.columns() if stream.stream_version() >= 0 else None
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
    """The number of rows at a version; None if that version had dropped the stream."""
    seen = tenant.at(version)
    return seen.stream(name).row_count() if name in seen.streams() else 0


def _predicate(stream: Stream, where: list[str], moment: dict[str, Any]) -> Any:
    import pyarrow.compute as pc

    from freezeframe.script.types.written_values import predicate

    # A predicate that no row meets reads the columns of that moment alone.
    return predicate(where, stream.read(**moment, where=pc.scalar(False), as_="arrow").schema)


app.command("list")(at_place(list_streams))
app.command("show")(at_place(show))
app.command("history")(at_place(history))
app.command("changes")(at_place(changes))
app.command("row")(at_place(row))
app.command("diff")(at_place(diff))
app.command("restore")(at_place(restore))
app.command("path")(at_place(path))
app.command("explain")(at_place(explain))
app.command("import")(at_place(import_rows))
app.command("export")(at_place(export))
app.command("retype")(at_place(retype))
app.command("drop")(at_place(drop))
app.command("release")(at_place(release))
app.command("adopt")(at_place(adopt))
app.command("repair")(at_place(repair))
