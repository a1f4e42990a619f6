"""``freezeframe stream``: list and show a tenant's streams, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.places.options import AsOf, Json, SeenVersion, StreamArgument, StreamVersion
from freezeframe.cli.places.place import Place, at_place
from freezeframe.cli.places.update_flags import with_update
from freezeframe.cli.stream.custody import adopt, release, repair
from freezeframe.cli.stream.dropping import drop
from freezeframe.cli.stream.path import path
from freezeframe.cli.stream.retyping import retype
from freezeframe.cli.stream.row import row
from freezeframe.cli.stream.transfer import Key, export, import_rows
from freezeframe.cli.stream.versions import changes, diff, restore
from freezeframe.cli.tenant.versions import stream_fields
from freezeframe.cli.terminal.cell_changes import sparkline
from freezeframe.cli.terminal.output import Output
from freezeframe.cli.terminal.row_output import Format, FormatOption, print_rows
from freezeframe.store.model.update_options import UpdateOptions

if TYPE_CHECKING:
    from freezeframe.store import Stream, Tenant

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
    from freezeframe.script.inputs.transfer import file_rows

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

    from freezeframe.script.types.conditions import predicate

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
