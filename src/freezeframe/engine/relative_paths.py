"""Relative paths in what a session asks of Spark, made absolute before it is sent.

A Spark server resolves a relative path in its own working folder, which is one for all of its clients: what a
job writes to ``staging`` another tenant's job would read. So every plan is walked on its way to the server:
paths of readers, writers, streams and the catalog, options that hold paths, and paths in the text of SQL.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message  # type: ignore[import-untyped]
from pyspark.sql.connect import proto

from freezeframe.errors import InvalidOption

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

# Only of these a path is one of files: `load("project.table")` of another source means something else.
_FORMATS = frozenset(
    ("parquet", "csv", "json", "text", "orc", "avro", "xml", "binaryfile", "image", "libsvm", "delta", "hudi")
)
_PLACES = frozenset(("path", "location"))
_PATH_OPTIONS = _PLACES | {"checkpointlocation", "basepath", "sourcearchivedir", "avroschemaurl"}
_CONFIGURATION = re.compile(r"spark\.sql\.streaming\.checkpointLocation", re.IGNORECASE)
_WILDCARDS = re.compile(r"[\[\]{}*?\\]")
# Of these parts of a plan none holds a path, and a plan has thousands of them.
_WITHOUT_PATHS = frozenset(
    ("common", "literal", "unresolved_attribute", "data_type", "local_relation", "function_name")
)


@dataclass(frozen=True, slots=True)
class RelativePaths:
    """What relative paths of a session mean: paths from the process's working folder, or nothing.

    ``is_of_this_machine`` is whether Spark reads and writes by this machine's paths alone. Elsewhere the
    folder of the same name would be another one, so relative paths are refused.
    """

    is_of_this_machine: bool

    def resolve(self, request: Message) -> None:
        """Make each relative path of a request or a part of a plan absolute, in place.

        Raises:
            InvalidOption: a path is relative, and Spark runs elsewhere, or the working folder is gone.
        """
        if isinstance(request, proto.ConfigRequest):
            for pair in request.operation.set.pairs:
                if _CONFIGURATION.fullmatch(pair.key):
                    pair.value = self._exact(pair.value)
            return
        for part, name, value in _texts(request):
            if isinstance(value, str):
                if name in _TEXTS:
                    setattr(part, name, _TEXTS[name](self, value))
                elif name == "path" and _is_of_files(part):
                    is_read = isinstance(part, proto.RefreshByPath)
                    part.path = self._pattern(value) if is_read else self._exact(value)
            elif hasattr(value, "keys"):
                self._resolve_options(part, value)
            elif name == "paths" and _is_of_files(part):
                value[:] = [self._pattern(path) for path in value]

    def _resolve_options(self, part: Message, options: Any) -> None:
        is_read = isinstance(part, proto.Read.DataSource | proto.Read.NamedTable)
        for key in options:
            name = key.lower()
            if name in _PATH_OPTIONS and (name not in _PLACES or _is_of_files(part)):
                resolve = self._pattern if is_read and name == "path" else self._exact
                options[key] = resolve(options[key])

    def _exact(self, path: str) -> str:
        return f"{self._folder(path)}{path}"

    def _pattern(self, path: str) -> str:
        """Return a path of a reader, for which Spark takes it as a pattern: the folder is not one."""
        return f"{_without_wildcards(self._folder(path))}{path}"

    def _folder(self, path: str) -> str:
        """Return what stands before a path: nothing if it is absolute or the address of a bucket."""
        # Hadoop takes a path as relative that is neither from the root nor behind a scheme.
        if not path or path.startswith("/") or ":" in path.partition("/")[0]:
            return ""
        if not self.is_of_this_machine:
            raise InvalidOption(
                f"The path '{path}' is relative, and Spark runs on another machine.",
                cause="Spark would take it from its server's working folder, which all jobs share.",
                remedy='Pass an absolute path, such as f"{ROOT_DIR}/staging", or the address of a bucket.',
            )
        try:
            # By its scheme: the server's file system need not be this machine's disk.
            return f"file://{os.getcwd().rstrip('/')}/"  # noqa: PTH109 - Spark takes text
        except FileNotFoundError as error:
            raise InvalidOption(
                f"The path '{path}' is relative, and this process's working folder is gone.",
                remedy="Pass an absolute path.",
            ) from error

    def _identifier(self, text: str) -> str:
        """Return the name of a table, which can be that of files: parquet.`staging`."""
        return self._sql(f"table {text}").removeprefix("table ")

    def _sql(self, text: str) -> str:
        if not _MENTION.search(text):
            return text
        if command := _COMMAND.match(text):
            start = command.start("path")
            return f"{text[:start]}{self._folder(command['path'])}{text[start:]}"
        edits = [
            (token.start, token.end + 1, _with_folder(text[token.start : token.end + 1], folder, token))
            for token in _paths(_tokens(text))
            if (folder := self._folder(token.text))
        ]
        for start, end, replacement in reversed(edits):
            text = f"{text[:start]}{replacement}{text[end:]}"
        return text


_TEXTS: dict[str, Callable[[RelativePaths, str], str]] = {
    "query": RelativePaths._sql,  # noqa: SLF001
    "sql": RelativePaths._sql,  # noqa: SLF001
    "expression": RelativePaths._sql,  # noqa: SLF001
    "unparsed_identifier": RelativePaths._identifier,  # noqa: SLF001
    "table_name": RelativePaths._identifier,  # noqa: SLF001
    "target_table_name": RelativePaths._identifier,  # noqa: SLF001
}


def _texts(message: Message) -> Iterator[tuple[Message, str, Any]]:
    """Yield each text of a message, list of texts and dictionary of texts, with its part and its name."""
    parts = [message]
    while parts:
        part = parts.pop()
        for field, value in part.ListFields():
            if isinstance(value, Message):
                if field.name not in _WITHOUT_PATHS:
                    parts.append(value)
            elif field.message_type is None:
                if field.type == field.TYPE_STRING:
                    yield part, field.name, value
            elif not field.message_type.GetOptions().map_entry:
                parts += value
            elif field.message_type.fields_by_name["value"].message_type:
                parts += value.values()
            else:
                yield part, field.name, value


def _is_of_files(part: Message) -> bool:
    names = (getattr(part, name, "") for name in ("format", "source", "provider"))
    return all(not name or name.lower() in _FORMATS for name in names)


def _without_wildcards(folder: str) -> str:
    return _WILDCARDS.sub(r"\\\g<0>", folder)


# Texts without one of these, nearly all, are not taken apart.
_MENTION = re.compile(
    rf"\b(?:{'|'.join(_FORMATS)})\b\s*`?\s*(?:/\*.*?\*/\s*)?\.|\b(?:location|inpath|directory)\b|"
    rf"\boptions\b|^\s*(?:add|set)\b",
    re.IGNORECASE | re.DOTALL,
)
# Their paths can stand without quotes.
_COMMAND = re.compile(
    r"\s*(?:add\s+(?:jar|file|archive)s?\s|set\s+spark\.sql\.streaming\.checkpointLocation\s*=)"
    r"\s*[\"']?(?P<path>[^\s\"';]+)",
    re.IGNORECASE,
)
_STATEMENTS = frozenset(("SELECT", "FROM", "WITH", "TABLE", "VALUES"))
# A table's name comes next.
_BEFORE_TABLES = frozenset(("JOIN", "TABLE", "INTO", "OVERWRITE", "UPDATE", "USING", "DESCRIBE", "DESC"))
# Words between those and the name.
_BESIDE_TABLES = frozenset(("IF", "NOT", "EXISTS", "LATERAL", "STREAM", "EXTENDED", "FORMATTED", "ONLY", "("))
_AFTER_TABLES = frozenset(
    (
        *("SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "WINDOW"),
        *("UNION", "EXCEPT", "MINUS", "INTERSECT", "SET", "WHEN", "VALUES", "|>"),
    )
)
_BEFORE_PATHS = frozenset(("LOCATION", "INPATH", "DIRECTORY"))


@dataclass(slots=True)
class _Parenthesis:
    """What is known of the text within a pair of parentheses, or of the whole."""

    has_tables: bool = False
    """Whether a comma separates tables here."""
    is_query: bool = False
    are_options: bool = False


def _tokens(text: str) -> "list[Token]":
    from sqlglot.dialects.spark import Spark  # noqa: PLC0415 - lazy: a tenth of a second
    from sqlglot.errors import TokenError  # noqa: PLC0415 - as above

    try:
        return Spark().tokenize(text)
    except TokenError:
        return []  # Spark says what is wrong with it


def _word(token: "Token") -> str:
    """Return a keyword in capitals; empty for what stands in quotes."""
    from sqlglot.tokenizer_core import TokenType  # noqa: PLC0415 - lazy, as above

    quoted = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
    return "" if token.token_type in quoted else token.text.upper()


def _paths(tokens: "list[Token]") -> "Iterator[Token]":
    """Yield the tokens of a statement that are paths.

    They follow a format's name where a table's can stand, or a word as LOCATION, or a key of OPTIONS. A
    column ``json.a`` is none of them.
    """
    words = [_word(token) for token in tokens]
    levels = [_Parenthesis(is_query=True)]
    is_table_next, is_of_files = False, True
    for index, (token, word) in enumerate(zip(tokens, words, strict=True)):
        level, before = levels[-1], words[index - 1] if index else ""
        if word == "(":
            after = words[index + 1] if index + 1 < len(words) else ""
            levels.append(_Parenthesis(is_table_next, after in _STATEMENTS, before == "OPTIONS"))
        elif word == ")" and len(levels) > 1:
            levels.pop()
            is_table_next = False
        elif word == ",":
            is_table_next = level.has_tables
        elif word == "FROM":
            # Not that of `is distinct from` and `extract(day from ...)`.
            is_table_next = level.has_tables = level.is_query and before != "DISTINCT"
        elif word in _BEFORE_TABLES:
            is_table_next = True
        elif is_table_next and word in _BESIDE_TABLES:
            pass
        elif is_table_next and _is_format(tokens, words, index):
            yield tokens[index + 2]
            is_table_next = False
        else:
            is_table_next = False
            level.has_tables = level.has_tables and word not in _AFTER_TABLES
            is_of_files = token.text.lower() in _FORMATS if before == "USING" else is_of_files
            if not word and (before in _BEFORE_PATHS or (is_of_files and _is_option(tokens, index, level))):
                yield token


def _is_format(tokens: "list[Token]", words: list[str], index: int) -> bool:
    """Return whether a format's name and one name, the path, stand here."""
    dots = [place < len(words) and words[place] == "." for place in (index + 1, index + 3)]
    return tokens[index].text.lower() in _FORMATS and dots == [True, False] and index + 2 < len(tokens)


def _is_option(tokens: "list[Token]", index: int, level: _Parenthesis) -> bool:
    """Return whether the token is the value of an option that holds a path."""
    key = tokens[index - 2 if tokens[index - 1].text == "=" else index - 1].text.lower()
    return level.are_options and key in _PATH_OPTIONS


def _with_folder(written: str, folder: str, token: "Token") -> str:
    """Return a path of a statement as it is written there, in quotes or not, behind the folder."""
    quote = re.match(r"[rR]?([\"'`])", written)
    if quote is None:
        return f"`{_without_wildcards(folder).replace('`', '``')}{token.text}`"
    mark = quote[1]
    before = (
        _without_wildcards(folder).replace("`", "``")
        if mark == "`"
        else folder.replace("\\", "\\\\").replace(mark, f"\\{mark}")
    )
    return f"{quote[0]}{before}{written[quote.end() :]}"
