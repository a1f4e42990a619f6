"""``freezeframe stream``: what a tenant's snapshot directory holds, without starting Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.output import Output
from freezeframe.errors import InputNotFound

if TYPE_CHECKING:
    from freezeframe.store import Stream, Tenant

app = typer.Typer(no_args_is_help=True)

Directory = Annotated[Path, typer.Option("--dir", help="The tenant's snapshot directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="The stream's name, for example Account.")]
_HERE = Path("snapshots")


@app.command("list")
def list_streams(directory: Directory = _HERE, as_json: Json = False) -> None:
    """List the streams with their version, key, rows and columns."""
    tenant = _tenant(directory)
    rows = []
    for name in tenant.streams():
        stream = tenant.stream(name)
        rows.append(
            {
                "stream": name,
                "version": stream.version(),
                "key": list(stream.key()),
                "rows": stream.row_count(),
                "columns": len(stream.columns()),
            }
        )
    output = Output(as_json=as_json)
    if not rows:
        output.line(f"{directory} holds no streams yet: a job's update_snapshot makes them.")
    if rows or as_json:
        output.table(str(directory), rows)


@app.command()
def show(
    name: Name,
    directory: Directory = _HERE,
    version: Annotated[int | None, typer.Option(help="The stream's version; the newest without it.")] = None,
    as_of: Annotated[str | None, typer.Option(help="A moment in ISO form; UTC without a zone.")] = None,
    columns: Annotated[list[str] | None, typer.Option("--column", help="A column; may be repeated.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many rows at most.")] = 20,
    as_json: Json = False,
) -> None:
    """Show rows of a stream, now or at an earlier version or moment."""
    stream = _tenant(directory).stream(name)
    table = stream.read(version=version, as_of=as_of, columns=columns, as_="arrow")
    Output(as_json=as_json).table(
        f"{name}: {min(limit, table.num_rows)} of {table.num_rows} rows",
        table.slice(0, limit).to_pylist(),
        columns=table.column_names,
    )


@app.command()
def history(
    name: Annotated[str | None, typer.Argument(help="A stream; all of them without it.")] = None,
    directory: Directory = _HERE,
    limit: Annotated[int, typer.Option(min=1, help="How many tenant versions at most.")] = 50,
    as_json: Json = False,
) -> None:
    """Show the tenant's versions, the newest first, with what became of each stream's rows."""
    tenant = _tenant(directory)
    if name is not None:
        tenant.stream(name).columns()  # an unknown stream is an error, not an empty history
    rows = [
        {
            "tenant version": entry.version,
            "when": entry.timestamp.isoformat(timespec="seconds"),
            "stream": stream,
            "new": counts.inserted,
            "updated": counts.updated,
            "unchanged": counts.unchanged,
            "deleted": counts.deleted,
            "job": entry.job_id,
        }
        for entry in tenant.history(limit=limit)
        for stream, counts in entry.streams.items()
        if name in {None, stream}
    ]
    Output(as_json=as_json).table(f"History of {name or directory}", rows)


@app.command()
def explain(
    name: Name,
    batch: Annotated[
        Path | None, typer.Option(help="A CSV or Parquet file with the rows of the update.")
    ] = None,
    key: Annotated[list[str] | None, typer.Option(help="A column of the key, for a new stream.")] = None,
    directory: Directory = _HERE,
    as_json: Json = False,
) -> None:
    """Show how an update of a stream would be carried out and why, file by file; nothing is written.

    Without --batch it is about an update that brings new rows only.
    """
    stream = _tenant(directory).stream(name)
    explanation = stream.explain(None if batch is None else _rows(batch, stream), key=key or None)
    output = Output(as_json=as_json)
    if as_json:
        output.record(explanation.to_json())
        return
    route = explanation.route
    output.line(f"{name}, version {explanation.version}: {route.kind}, {route.reason}.")
    counts = explanation.counts
    if counts is not None:
        output.line(
            f"Rows: {counts.inserted:,} new, {counts.updated:,} updated, {counts.unchanged:,} unchanged, "
            f"{counts.deleted:,} deleted; {explanation.bytes_written:,} bytes to be written."
        )
    if route.choices:
        output.table("Its files", explanation.files())


def _rows(file: Path, stream: Stream) -> Any:
    if not file.is_file():
        raise InputNotFound(f"There is no file {file}.", remedy="Name it by --batch.", path=str(file))
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(file)
    from freezeframe.script.csv_file import read_csv_text
    from freezeframe.script.typed_columns import typed_columns

    stored = stream.columns() if stream.version() >= 0 else None
    return typed_columns(read_csv_text(file), stored)


def _tenant(directory: Path) -> Tenant:
    if not directory.is_dir():
        raise InputNotFound(
            f"There is no directory {directory}.",
            remedy="Name the tenant's snapshot directory by --dir.",
            path=str(directory),
        )
    from freezeframe.script.tenants import open_tenant

    return open_tenant(directory)
