"""SQL over streams of a store: ``tenant.stream``, now or as it was, beside all that Spark knows."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freezeframe.errors import InvalidOption
from freezeframe.script.spark_format import read, spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Comments, texts and quoted names stay as they are.
_ALL_TENANTS = re.compile(
    r"""--[^\n]*|/\*.*?\*/|\b[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`"""
    r"""|(?P<all>(?<=[\s,(])\*\.(?=[^\W\d]|`))""",
    re.DOTALL,
)
_FRAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class _Named:
    """A stream where a statement names it: from the first to behind the last character, and its frame.

    Without a path it is a column's qualifier, and ``alias`` stands in its place.
    """

    start: int
    end: int
    path: str
    alias: str
    options: dict[str, str]


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
    text = _ALL_TENANTS.sub(lambda found: "`*`." if found["all"] else found[0], query)
    # The names of frames are no SQL; others of their length are.
    named = sorted(_streams(_FRAME.sub(r"_\1_", text) if frames else text), key=lambda item: item.start)
    if not named:
        return text, {}
    parts, position, made = list[str](), 0, dict[str, tuple[str, Mapping[str, str]]]()
    for item in named:
        parts.append(_plain(text[position : item.start], frames))
        if item.path:
            name = f"_freezeframe_{len(made)}"
            made[name] = item.path, item.options
            parts.append(f"{{{name}}}")
        parts.append(item.alias)
        position = item.end
    return "".join([*parts, _plain(text[position:], frames)]), made


def _plain(text: str, frames: Mapping[str, Any]) -> str:
    """Return a part of a query for Spark's formatter, where only frames that were given stand in braces."""
    return text if frames else text.replace("{", "{{").replace("}", "}}")


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
        is_sample = bool(table.args.get("sample"))
        if not table.alias:
            known = names.setdefault(table.name.lower(), set())
            known |= {table.db.lower(), "" if is_sample else table.db.lower()}
        options, version = {}, table.args.get("version")
        if version is not None:
            behind = [token for token in tokens if token.start > last]
            place = next(at for at, token in enumerate(behind) if token.text.upper() == "OF")
            literal = version.expression
            if not isinstance(literal, exp.Literal):
                raise InvalidOption(
                    f"The version of {table.db}.{table.name} is no number and no text.",
                    remedy="Write VERSION AS OF 3, VERSION AS OF 'a-tag' or TIMESTAMP AS OF '2026-11-20'.",
                )
            last = behind[place + 1].end
            options = {"versionAsOf" if version.name == "VERSION" else "timestampAsOf": literal.this}
        # Spark has an alias behind a sample.
        alias = "" if table.alias or is_sample else f" {_quoted(table.name)}"
        yield _Named(first, last + 1, f"{table.db}/{table.name}", alias, options)
    for column in tree.find_all(exp.Column):
        tenant, stream, *rest = column.parts if column.db else (column.this, column.this)
        tenants = names.get(stream.name.lower(), ()) if rest else ()
        if tenant.name.lower() not in tenants or not _stands(text, (tenant, stream)):
            continue
        if len(tenants) > 1:
            raise InvalidOption(
                f"It is not clear whose column {column.sql('spark')} is.",
                cause=f"Several tables of the query are named {stream.name} and have no alias, or a sample.",
                remedy=f"Give the table an alias: {tenant.name}.{stream.name} t, and write t.{rest[0].name}.",
            )
        yield _Named(tenant.meta["start"], stream.meta["end"] + 1, "", _quoted(stream.name), {})


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _stands(text: str, names: Sequence[Any]) -> bool:
    """Return whether names are where the parser says that they are."""
    places = [text[item.meta.get("start", 0) : item.meta.get("end", -1) + 1] for item in names]
    return all(place in {item.name, _quoted(item.name)} for item, place in zip(names, places, strict=True))
