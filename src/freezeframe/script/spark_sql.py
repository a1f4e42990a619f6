"""SQL over streams of a store: ``tenant.stream``, now or as it was, beside all that Spark knows."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from freezeframe.errors import InvalidOption
from freezeframe.script.spark_format import read, spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _Named(NamedTuple):
    """A stream where a statement names it: from the first to behind the last character, and its frame.

    Without a path it is a column's qualifier, and ``alias`` stands in its place.
    """

    start: int
    end: int
    path: str
    alias: str
    options: Mapping[str, str]


def sql(
    query: str,
    *,
    root: str | os.PathLike[str] | None = None,
    environment: str | None = None,
    **frames: Any,
) -> "DataFrame":
    """Return a lazy Spark frame of a query in Spark's SQL over streams.

    ``acme.Account`` is a stream of a tenant, and ``*.Account`` that of all, with a column ``_tenant``.
    ``VERSION AS OF`` (a number or a tag) and ``TIMESTAMP AS OF`` read it as it was. Names that are no plain
    words stand in backquotes. Names without a tenant are Spark's own: views, tables, and ``frames`` as
    ``{name}``.

    Raises:
        InvalidOption: a version is no literal, or a column's tenant is not clear.
        TenantNotFound, StreamNotFound, VersionNotFound: something that is named is not there.
    """
    text, streams = over_frames(query, frames)
    made: dict[str, Any] = {
        name: read(path, root=root, environment=environment, **options)
        for name, (path, options) in streams.items()
    }
    return spark().sql(text, **made, **frames)


def over_frames(
    query: str, frames: Mapping[str, Any]
) -> tuple[str, Mapping[str, tuple[str, Mapping[str, str]]]]:
    """Return the query over frames in braces, and the path and options of the streams that these are."""
    text = _with_all_tenants(query)
    # The names of frames are no SQL; others of their length are.
    sql = re.sub(r"\{(\w+)\}", r"_\1_", text) if frames else text
    named = sorted(_streams(sql), key=lambda item: item.start)
    parts, position, made = list[str](), 0, dict[str, tuple[str, Mapping[str, str]]]()
    for item in named:
        found = item.alias
        if item.path:
            name = f"_freezeframe_{len(made)}"
            made[name] = item.path, item.options
            found = f"({{{name}}} {item.alias})" if item.alias else f"{{{name}}}"
        parts += _plain(text[position : item.start], frames), found
        position = item.end
    rest = text[position:]
    return "".join([*parts, _plain(rest, frames) if named else rest]), made


def _plain(text: str, frames: Mapping[str, Any]) -> str:
    """Return a part of a query for Spark's formatter, where only frames that were given stand in braces."""
    return text if frames else text.replace("{", "{{").replace("}", "}}")


def _with_all_tenants(query: str) -> str:
    """Return the query with the star of ``*.Account`` as a name; in comments and texts there is none."""
    from sqlglot.dialects.spark import Spark  # noqa: PLC0415 - lazy: a tenth of a second
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - as above

    try:
        tokens = Spark().tokenize(query)
    except SqlglotError:
        return query  # Spark says what is wrong with it
    parts, position = list[str](), 0
    for star, name in zip(tokens, tokens[2:], strict=False):
        is_named = query[star.start : name.start] == "*." and re.match(r"[^\W\d]|`", query[name.start])
        if is_named and star.token_type.name == "STAR" and re.match(r"[\s,(/]", query[star.start - 1]):
            parts += query[position : star.start], "`*`"
            position = star.end + 1
    return "".join([*parts, query[position:]])


def _streams(text: str) -> Iterator[_Named]:
    from sqlglot import exp, parse_one  # noqa: PLC0415 - lazy: a tenth of a second
    from sqlglot.dialects.spark import Spark  # noqa: PLC0415 - as above
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - as above

    try:
        tree, tokens = parse_one(text, read="spark"), Spark().tokenize(text)
    except SqlglotError:
        return  # Spark says what is wrong with it
    names: dict[str, set[str]] = {}
    for table in tree.find_all(exp.Table):
        is_stream = bool(table.db) and not table.catalog and isinstance(table.this, exp.Identifier)
        # Positions in a hint are its own.
        if not is_stream or not _stands(text, table.parts) or table.find_ancestor(exp.Hint):
            continue
        first, last = table.parts[0].meta["start"], table.parts[-1].meta["end"]
        if not table.alias:
            names.setdefault(table.name.lower(), set()).add(table.db.lower())
        options, last = _version(table, tokens, last)
        alias = "" if table.alias else _quoted(table.name)
        yield _Named(first, last + 1, f"{table.db}/{table.name}", alias, options)
    for column in tree.find_all(exp.Column):
        tenant, stream, *rest = column.parts if column.db else (column.this, column.this)
        tenants = names.get(stream.name.lower(), ()) if rest else ()
        if tenant.name.lower() not in tenants or not _stands(text, (tenant, stream)):
            continue
        if len(tenants) > 1:
            raise InvalidOption(
                f"It is not clear whose column {column.sql('spark')} is.",
                cause=f"Several tables of the query are named {stream.name} and have no alias.",
                remedy=f"Give the table an alias: {tenant.name}.{stream.name} t, and write t.{rest[0].name}.",
            )
        yield _Named(tenant.meta["start"], stream.meta["end"] + 1, "", _quoted(stream.name), {})


def _version(table: Any, tokens: Sequence[Any], last: int) -> tuple[dict[str, str], int]:
    """Return the options of a table's version, and the last character of its clause or of its name."""
    version = table.args.get("version")
    if version is None:
        return {}, last
    literal, words = version.expression, [token for token in tokens if token.start > last]
    if type(literal).__name__ != "Literal":
        raise InvalidOption(
            f"The version of {table.db}.{table.name} is no number and no text.",
            remedy="Write VERSION AS OF 3, VERSION AS OF 'a-tag' or TIMESTAMP AS OF '2026-11-20'.",
        )
    place = next(at for at, token in enumerate(words) if token.text.upper() == "OF")
    return {"versionAsOf" if version.name == "VERSION" else "timestampAsOf": literal.this}, words[
        place + 1
    ].end


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _stands(text: str, names: Sequence[Any]) -> bool:
    """Return whether names are where the parser says that they are."""
    places = [text[item.meta.get("start", 0) : item.meta.get("end", -1) + 1] for item in names]
    return all(place in {item.name, _quoted(item.name)} for item, place in zip(names, places, strict=True))
