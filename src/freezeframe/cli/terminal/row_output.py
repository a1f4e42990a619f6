"""Rows of an Arrow table on standard output: a table for people, CSV or JSON for programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.terminal.output import Output

if TYPE_CHECKING:
    import pyarrow as pa


class Format(StrEnum):
    """Output format of rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


FormatOption = Annotated[
    Format,
    typer.Option("--format", help="The format of the rows."),
]


def print_rows(title: str, rows: pa.Table, form: Format, *, as_json: bool) -> None:
    """Print rows: with a title and aligned columns, as CSV with a header, or as a JSON array of objects."""
    from freezeframe.engine.frames.python_values import shown_rows
    from freezeframe.script.formats.written_rows import csv_text

    if form is Format.CSV and not as_json:
        sys.stdout.write(csv_text(rows))
        return
    output = Output(as_json=as_json or form is Format.JSON)
    output.table(title, shown_rows(rows), columns=rows.column_names)
