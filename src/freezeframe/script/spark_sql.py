"""SQL over streams of a store: ``tenant.stream``, now or as it was, beside all that Spark knows."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freezeframe.errors import InvalidOption
from freezeframe.script.spark_format import read, spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Texts and quoted names stay as they are.
_ALL_TENANTS = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|(?P<all>(?<=[\s,(])\*\.(?=[^\W\d]|`))""", re.DOTALL
)
_FRAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class _Named:
    """A stream where a statement names it: from the first to behind the last character, and its frame."""

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
        InvalidOption: a version is no literal.
        TenantNotFound, StreamNotFound, VersionNotFound: something that is named is not there.
    """
    text = _ALL_TENANTS.sub(lambda found: "`*`." if found["all"] else found[0], query)
    # The names of frames are no SQL; others of their length are.
    named = sorted(_streams(_FRAME.sub(r"_\1_", text) if frames else text), key=lambda item: item.start)
    parts, position, made = list[str](), 0, dict[str, Any]()
    for number, item in enumerate(named):
        name = f"_freezeframe_{number}"
        made[name] = read(item.path, root=root, environment=environment, **item.options)
        parts += [_plain(text[position : item.start], frames), f"{{{name}}}{item.alias}"]
        position = item.end
    if not made:
        return spark().sql(text, **frames)
    return spark().sql("".join([*parts, _plain(text[position:], frames)]), **made, **frames)


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
    for table in tree.find_all(exp.Table):
        if not table.db or table.catalog:
            continue
        first, last = table.parts[0].meta["start"], table.parts[-1].meta["end"]
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
        alias = "" if table.alias else f" `{table.name.replace('`', '``')}`"
        yield _Named(first, last + 1, f"{table.db}/{table.name}", alias, options)
