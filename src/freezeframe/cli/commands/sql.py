"""``freezeframe sql``: Spark SQL over a tenant's streams, now or as of a version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.location import TenantLocation, at_location
from freezeframe.cli.options import Json, point
from freezeframe.cli.progress import progress
from freezeframe.cli.rows import FormatOption, print_rows
from freezeframe.errors import InvalidOption

if TYPE_CHECKING:
    from freezeframe.store.tenant import Tenant


def sql(
    location: TenantLocation,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="A SELECT; each stream is a view of its name, those of others are tenant.stream.",
        ),
    ],
    version: Annotated[
        str | None,
        typer.Option(help="A version of the tenant, tag or moment (default: the newest version)."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of rows at most.")] = 1000,
    form: FormatOption = "table",
    as_json: Json = False,
) -> None:
    """Run a Spark SQL query on a tenant's streams.

    It reads all streams at one version. Put a stream's name in backquotes if it is not a plain word. In a
    store, acme.Account is a stream of any tenant, *.Account that of all; VERSION AS OF 3 (or a tag) and
    TIMESTAMP AS OF behind such a name read it as it was.
    """
    from freezeframe.script.snapshots import make_views, sql_name
    from freezeframe.script.spark_format import spark
    from freezeframe.script.spark_sql import sql as sql_of_store

    tenant = location.tenant()
    view = tenant.at(tenant.version if version is None else point(version))
    words = query.casefold()
    with progress("Asking Spark", as_json=as_json), _query_errors(view):
        # A view costs a Spark query, so only streams that the query can name become one.
        names = [name for name in view.streams() if sql_name(name).strip("`").casefold() in words]
        make_views({name: view.stream(name).read(as_="spark") for name in names})
        try:
            if location.root is None:
                found = spark().sql(query)
            else:
                found = sql_of_store(query, root=location.root, environment=location.environment)
            rows = found.limit(limit + 1).toArrow()
        finally:
            for name in names:
                spark().catalog.dropTempView(name)
    shown = rows.slice(0, limit)
    more = "the first " if rows.num_rows > limit else ""
    title = f"{location} at version {view.version}: {more}{shown.num_rows:,} rows"
    print_rows(title, shown, form, as_json=as_json)


@contextmanager
def _query_errors(view: Tenant) -> Iterator[None]:
    from freezeframe.engine.spark_errors import SparkError, cause_of, machine_error
    from freezeframe.script.snapshots import sql_name

    try:
        yield
    except SparkError as error:
        streams = ", ".join(map(sql_name, view.streams())) or "none"
        raise machine_error(error) or InvalidOption(
            "Spark cannot answer the query.",
            cause=cause_of(error),
            remedy=f"Change the query. The streams at version {view.version} are: {streams}.",
        ) from error


sql_command = at_location(sql)
