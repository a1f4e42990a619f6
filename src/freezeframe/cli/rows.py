"""Rows on standard output, and keys of rows from the command line or a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pyarrow as pa
import typer

from freezeframe.cli.output import Output, cell_changes
from freezeframe.errors import BadInput, InputNotFound, InvalidOption, MissingColumn
from freezeframe.script.formats.csv_file import read_csv_text
from freezeframe.script.types.written_values import exact_values, written_values

if TYPE_CHECKING:
    from freezeframe.store import Stream


Format = Literal["table", "csv", "json"]
FormatOption = Annotated[Format, typer.Option("--format", help="The format of the rows.")]


def print_rows(title: str, rows: pa.Table, form: Format, *, as_json: bool) -> None:
    """Print rows: with a title and aligned columns, as CSV with a header, or as a JSON array of objects."""
    from freezeframe.engine.frames.python_values import shown_rows
    from freezeframe.store.table.written_rows import csv_text, json_rows

    if form == "csv" and not as_json:
        sys.stdout.write(csv_text(rows))
        return
    output = Output(as_json=as_json or form == "json")
    output.table(title, (json_rows if output.as_json else shown_rows)(rows), columns=rows.column_names)


def print_changes(
    name: str,
    table: pa.Table,
    key: Sequence[str],
    limit: int,
    *,
    total: int | None = None,
    as_json: bool = False,
) -> None:
    """Print the first changes of a stream's ``total`` (default: all that the table has) by their cells."""
    from freezeframe.store.diff.row_changes import RowChanges
    from freezeframe.store.table.written_rows import json_rows

    first = table.slice(0, limit)
    Output(as_json=as_json).table(
        f"{name}: {len(first)} of {table.num_rows if total is None else total} changes",
        json_rows(first) if as_json else cell_changes(RowChanges(first, tuple(key))),
        columns=table.column_names if as_json else ("change", *key, "cells"),
    )


def named_keys(stream: Stream, texts: Sequence[str], file: Path | None) -> list[tuple[Any, ...]]:
    """Return the keys that are given as text and those of a CSV file, as values of the stream's types."""
    names = stream.key
    if not names:
        raise InvalidOption(
            f"The stream {stream.name!r} has no key.", remedy="Replace its content by an update instead."
        )
    rows = [_parts(text, names) for text in texts]
    if file is not None:
        rows += _rows_of(file, names)
    if not rows:
        raise InvalidOption("No key is named.", remedy="Name rows by --key or --keys-file.")
    columns = [
        _convert([row[place] for row in rows], stream.schema.field(name)) for place, name in enumerate(names)
    ]
    return list(zip(*columns, strict=True))


def _parts(text: str, names: tuple[str, ...]) -> list[str | None]:
    if len(names) == 1:
        return [text]
    try:
        parts = json.loads(text)
    except ValueError:
        parts = None
    if not isinstance(parts, list) or len(parts) != len(names):
        raise BadInput(
            f"{text!r} is not a key of the stream.",
            cause=f"Its key has the columns {list(names)}.",
            remedy=f"Write it as a JSON array of {len(names)} values, in that order.",
        )
    return [part if isinstance(part, str) else json.dumps(part) for part in parts]


def _rows_of(file: Path, names: tuple[str, ...]) -> list[list[str | None]]:
    if not file.is_file():
        raise InputNotFound(f"There is no file {file}.", remedy="Check the path.", path=str(file))
    table = read_csv_text(file)
    problem = f"The file {file} lacks the column {{}} of the key."
    MissingColumn.refuse(names, table.column_names, problem, "Name the columns as the stream does.")
    columns = [table.column(name).to_pylist() for name in names]
    return [list(row) for row in zip(*columns, strict=True)]


def _convert(texts: list[str | None], field: pa.Field) -> list[Any]:
    if None not in texts:
        text = pa.chunked_array([pa.array(texts, pa.string())])
        values = written_values(text, field.type)
        if values is None:
            values = exact_values(text, field.type, naive_is_utc=True)
        if values is not None:
            return list(values.to_pylist())
    raise BadInput(
        f"A key has a value that does not fit the column {field.name!r}.",
        cause=f"The column is of type {field.type}, and a key has no missing value.",
        remedy="Write each value as the stream shows it; nothing was erased.",
        column=field.name,
    )
