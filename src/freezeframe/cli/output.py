"""The one place where commands print: as text for people, or as one JSON value for programs.

Results go to standard output, errors to standard error, so a pipe holds results only. Rich is loaded
by the first text that is printed: neither ``--help`` nor ``--json`` waits for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from freezeframe.errors import FreezeframeError

if TYPE_CHECKING:
    from rich.console import Console

_MISSING = "-"
_WIDTH_IN_A_PIPE = 200  # a table in a file should not be cut to a terminal that is not there


class Output:
    """Prints results as text, or as JSON when ``as_json``."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        return Console(width=None if sys.stdout.isatty() else _WIDTH_IN_A_PIPE)

    def table(self, title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
        """Rows of equal fields: a table with a heading, or a JSON array of objects.

        ``columns`` are the fields of the text table and their order; without it those of the first row.
        """
        if self.as_json:
            self._json([dict(row) for row in rows])
            return
        from rich.table import Table

        names = list(columns) or list(rows[0] if rows else ())
        table = Table(title=_plain(title), title_justify="left")
        for name in names:
            numeric = bool(rows) and all(_is_number(row.get(name)) for row in rows)
            table.add_column(_plain(name), justify="right" if numeric else "left")
        for row in rows:
            table.add_row(*(_cell(row.get(name)) for name in names))
        self._console.print(table)

    def record(self, fields: Mapping[str, Any]) -> None:
        """One thing by its fields: a line each, or a JSON object."""
        if self.as_json:
            self._json(dict(fields))
            return
        width = max((len(name) for name in fields), default=0)
        for name, value in fields.items():
            self._console.print(f"[bold]{_plain(name):<{width}}[/]  {_cell(value)}")

    def line(self, text: str) -> None:
        """A sentence for people; programs get the data alone."""
        if not self.as_json:
            self._console.print(_plain(text))

    def error(self, error: FreezeframeError) -> None:
        """Problem, cause and remedy on standard error, a line each, or ``{"error": {...}}``."""
        if self.as_json:
            sys.stderr.write(json.dumps({"error": error.to_json()}, default=str) + "\n")
            return
        from rich.console import Console

        console = Console(stderr=True, soft_wrap=True)
        console.print(f"[bold red]{_plain(error.problem)}[/]")
        for label, text in (("Cause", error.cause), ("Remedy", error.remedy)):
            if text:
                console.print(f"[bold]{label}:[/] {_plain(text)}")

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
        return _plain(", ".join(map(str, value))) or _MISSING
    return _plain(str(value)).replace("\n", "⏎")


def _plain(text: str) -> str:
    """The text with nothing in it that Rich would take for markup."""
    from rich.markup import escape

    return escape(text)
