"""The one place where commands print: as text for people, or as one JSON value for programs.

Results go to standard output, errors to standard error, so a pipe holds results only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from freezeframe.errors import FreezeframeError

_MISSING = "-"
_WIDTH_IN_A_PIPE = 200  # a table in a file should not be cut to a terminal that is not there


class Output:
    """Prints results as text, or as JSON when ``as_json``."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json
        self._console = Console(width=None if sys.stdout.isatty() else _WIDTH_IN_A_PIPE)

    def table(self, title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
        """Rows of equal fields: a table with a heading, or a JSON array of objects.

        ``columns`` are the fields of the text table and their order; without it those of the first row.
        """
        if self._as_json:
            self._json([dict(row) for row in rows])
            return
        names = list(columns) or list(rows[0] if rows else ())
        table = Table(title=escape(title), title_justify="left")
        for name in names:
            numeric = bool(rows) and all(_is_number(row.get(name)) for row in rows)
            table.add_column(escape(name), justify="right" if numeric else "left")
        for row in rows:
            table.add_row(*(_cell(row.get(name)) for name in names))
        self._console.print(table)

    def record(self, fields: Mapping[str, Any]) -> None:
        """One thing by its fields: a line each, or a JSON object."""
        if self._as_json:
            self._json(dict(fields))
            return
        width = max((len(name) for name in fields), default=0)
        for name, value in fields.items():
            self._console.print(f"[bold]{escape(name):<{width}}[/]  {_cell(value)}")

    def line(self, text: str) -> None:
        """A sentence for people; programs get the data alone."""
        if not self._as_json:
            self._console.print(escape(text))

    def error(self, error: FreezeframeError) -> None:
        """Problem, cause and remedy on standard error, a line each, or ``{"error": {...}}``."""
        if self._as_json:
            sys.stderr.write(json.dumps({"error": error.to_json()}, default=str) + "\n")
            return
        console = Console(stderr=True, soft_wrap=True)
        console.print(f"[bold red]{escape(error.problem)}[/]")
        for label, text in (("Cause", error.cause), ("Remedy", error.remedy)):
            if text:
                console.print(f"[bold]{label}:[/] {escape(text)}")

    def _json(self, value: object) -> None:
        sys.stdout.write(json.dumps(value, default=str, ensure_ascii=False) + "\n")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return _MISSING
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple):
        return escape(", ".join(map(str, value))) or _MISSING
    return escape(str(value)).replace("\n", "⏎")
