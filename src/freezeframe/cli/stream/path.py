"""``freezeframe stream path``: the location of a stream's Delta table, and snippets for other tools."""

from __future__ import annotations

from freezeframe.cli.places.options import Json, StreamArgument
from freezeframe.cli.places.place import Place
from freezeframe.cli.terminal.output import Output
from freezeframe.identifiers import StreamName

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
    from freezeframe.store.directory.paths import table_folder

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
