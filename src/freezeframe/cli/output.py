"""The one place where commands print: as text for people, or as one JSON value for programs.

Results go to standard output, errors to standard error, so a pipe holds results only. A terminal gets
tables in its width and colours; a pipe, a file or ``TERM=dumb`` gets plain aligned lines of any length.
Rich is loaded by the first text for a terminal: neither ``--help`` nor ``--json`` waits for it.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from freezeframe.cli.visible import visible, visible_json, visible_lines
from freezeframe.errors import FreezeframeError

if TYPE_CHECKING:
    from rich.console import Console

_MISSING = "-"


class Output:
    """Prints results as text, or as JSON when ``as_json``."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        return Console(highlight=False, emoji=False)

    def table(self, title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
        """Rows of equal fields: a table with a heading, or a JSON array of objects.

        ``columns`` are the fields of the text table and their order; without it those of the first row.
        """
        if self.as_json:
            write_json([dict(row) for row in rows])
            return
        names = list(columns) or list(rows[0] if rows else ())
        cells = [[_cell(row.get(name)) for name in names] for row in rows]
        numeric = [bool(rows) and all(_is_number(row.get(name)) for row in rows) for name in names]
        if is_terminal(sys.stdout):
            self._rich_table(title, names, numeric, cells)
        else:
            _write(_plain_table(title, names, numeric, cells))

    def record(self, fields: Mapping[str, Any]) -> None:
        """One thing by its fields: a line each, or a JSON object."""
        if self.as_json:
            write_json(dict(fields))
            return
        width = max((_width(visible(name)) for name in fields), default=0)
        for name, value in fields.items():
            label = _padded(visible(name), width, is_right=False)
            if is_terminal(sys.stdout):
                from rich.text import Text

                self._console.print(Text.assemble((label, "bold"), "  ", _cell(value)))
            else:
                _write([f"{label}  {_cell(value)}".rstrip()])

    def line(self, text: str) -> None:
        """A sentence, or lines of text, for people; programs get the data alone."""
        if not self.as_json:
            _write([visible_lines(text)])

    def error(self, error: FreezeframeError) -> None:
        """Problem, cause and remedy on standard error, a line each, or ``{"error": {...}}``."""
        if self.as_json:
            write_json({"error": error.to_json()}, sys.stderr)
            return
        parts = [("", error.problem), ("Cause: ", error.cause), ("Remedy: ", error.remedy)]
        lines = [(label, visible_lines(text)) for label, text in parts if text]
        if not is_terminal(sys.stderr):
            _write([f"{label}{text}" for label, text in lines], sys.stderr)
            return
        from rich.console import Console
        from rich.text import Text

        console = Console(stderr=True, soft_wrap=True, highlight=False, emoji=False)
        for label, text in lines:
            console.print(Text.assemble((label, "bold"), (text, "" if label else "bold red")))

    def _rich_table(self, title: str, names: list[str], numeric: list[bool], cells: list[list[str]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name, is_number in zip(names, numeric, strict=True):
            justify = "right" if is_number else "left"
            table.add_column(Text(visible(name)), justify=justify, overflow="fold")  # type: ignore[arg-type]
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        self._console.print(Text(visible(title), style="bold"))
        self._console.print(table)


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at it with more than a typewriter."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def write_json(value: object, stream: TextIO | None = None) -> None:
    """One line of JSON; where the stream cannot say a letter, its escape."""
    target = sys.stdout if stream is None else stream
    text = visible_json(json.dumps(value, default=str, ensure_ascii=False))
    try:
        text.encode(target.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, default=str)
    target.write(text + "\n")


def _write(lines: Sequence[str], stream: TextIO | None = None) -> None:
    target = sys.stdout if stream is None else stream
    encoding = target.encoding or "utf-8"
    for line in lines:
        # A terminal of another alphabet shows the escapes of what it cannot say.
        target.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _plain_table(
    title: str, names: Sequence[str], numeric: Sequence[bool], cells: Sequence[Sequence[str]]
) -> list[str]:
    heads = [visible(name) for name in names]
    widths = [max(map(_width, column)) for column in zip(heads, *cells, strict=True)]
    lines = ["  ".join(map(_padded, row, widths, numeric)).rstrip() for row in [heads, *cells]]
    return [visible(title), *lines]


def _padded(text: str, width: int, is_right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if is_right else text + space


def _width(text: str) -> int:
    """How many columns a terminal gives the text: two for wide letters, none for marks above others."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return _MISSING
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple):
        return visible(", ".join(map(str, value))) or _MISSING
    return visible(str(value))
