"""Output of commands: exit codes, confirmations, text for people or one JSON value for programs."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from freezeframe.errors import (
    ConflictError,
    FixTheRequest,
    FreezeframeError,
    IdempotencyConflict,
    InvalidOption,
    NotFound,
)
from freezeframe.store.model.json_fields import json_field

if TYPE_CHECKING:
    from rich.console import Console

    from freezeframe.store.diff.row_changes import RowChanges


OK = 0
FAILED = 1
USAGE = 2
CONFLICT = 3
NOT_FOUND = 4
INTERRUPTED = 130

# The first class that fits counts, so the narrower ones stand first.
_TABLE: tuple[tuple[type[FreezeframeError], int], ...] = (
    (NotFound, NOT_FOUND),
    (ConflictError, CONFLICT),
    (IdempotencyConflict, CONFLICT),
    (FixTheRequest, USAGE),
    (FreezeframeError, FAILED),
)


def exit_code(error: FreezeframeError) -> int:
    """0 ok, 1 failure or damage, 2 the call must change, 3 a conflict, 4 not found."""
    return next(code for kind, code in _TABLE if isinstance(error, kind))


def require_yes(question: str) -> None:
    """Return only if the question is answered with yes on a terminal; ``--yes`` skips it."""
    import typer

    if not sys.stdin.isatty():
        raise InvalidOption(
            f"Confirmation required: {question}",
            cause="There is no terminal to ask on.",
            remedy="Add --yes; where the command has --dry-run, that shows the effect first.",
        )
    # Prompts go to standard error: standard output holds only the result.
    typer.confirm(question, abort=True, err=True)


def near_path(path: Path) -> str:
    """Return the path relative to the working directory, or unchanged if that was deleted."""
    whole = str(path)
    try:
        near = os.path.relpath(path)
    except OSError:  # the working directory is gone
        return whole
    return near if len(near) < len(whole) else whole


_SPARKS = "▁▂▃▄▅▆▇█"
_KIND, _BEFORE = "_change_type", "_before"


def cell_changes(changes: RowChanges) -> list[dict[str, Any]]:
    """Return the kind, key and cells of each change: the changed cells of an update, else all with a value.

    A changed cell reads ``column: old → new``, any other one ``column: value``.
    """
    from freezeframe.engine.frames.python_values import shown_rows

    found = []
    for number, row in enumerate(shown_rows(changes.table)):
        kind, before = row.pop(_KIND), row.pop(_BEFORE, None) or {}
        if kind == "update":
            names = [name for name, mask in changes.changed.items() if mask[number]]
            cells = [f"{name}: {_text(before.get(name))} → {_text(row[name])}" for name in names]
        else:
            held = {name: value for name, value in row.items() if name not in changes.key}
            cells = [f"{name}: {_text(value)}" for name, value in held.items() if value is not None]
        # The old key of a deleted row may not fit the column's current type.
        keys = {name: before.get(name) if row[name] is None else row[name] for name in changes.key}
        found.append({"change": kind, **keys, "cells": cells})
    return found


def change_of(row: Any, key: Sequence[str]) -> dict[str, Any]:
    """Return the kind and the cells of one row that differs, as ``cell_changes`` shows them."""
    held = {name: value for name, value in (row.after or row.before).items() if name not in key}
    cells = [f"{name}: {_text(value)}" for name, value in held.items() if value is not None]
    if row.fate == "update":
        cells = [f"{name}: {_text(row.before.get(name))} → {_text(row.after[name])}" for name in row.changed]
    return {"change": row.fate, "cells": cells}


def sparkline(counts: Sequence[int]) -> str:
    """Return the counts as a line of bars, from none for 0 to a full one for the largest."""
    highest = max(counts, default=0)
    if not highest:
        return _SPARKS[0] * len(counts)
    return "".join(_SPARKS[round(count * (len(_SPARKS) - 1) / highest)] for count in counts)


def _text(value: Any) -> str:
    return "(null)" if value is None else _cut(str(value))


_CELL_LETTERS_MAX = 1_000


def _cut(text: str) -> str:
    """Return the text of a cell; of a long one its beginning, and how many letters it has."""
    if len(text) <= _CELL_LETTERS_MAX:
        return text
    return f"{text[:_CELL_LETTERS_MAX]}… ({len(text):,} letters; --json has all)"


# All control characters, line ends that only Unicode knows, what changes the direction of writing, and
# halves of letters (names of files that are not UTF-8).
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_UNSAFE_IN_LINES = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def visible(text: str) -> str:
    """One line: line ends as ``⏎``, all else that is unsafe as its escape, such as backslash, x, 1b."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n").replace("\n", "⏎"))


def visible_lines(text: str) -> str:
    """As ``visible`` for text of several lines; line ends and tabs stay."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def visible_json(text: str) -> str:
    """JSON with the same meaning and all unsafe characters escaped; JSON itself escapes only some."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    return (
        found[0].encode("ascii", "backslashreplace").decode() if found[0] > "\x7f" else repr(found[0])[1:-1]
    )


# Results go to standard output, errors to standard error, so a pipe holds results only. A terminal gets
# tables in its width and colours; a pipe, a file or ``TERM=dumb`` gets plain aligned lines of any length.
# Rich is loaded by the first text for a terminal: neither ``--help`` nor ``--json`` waits for it.

_MISSING = "-"
_FOLDED_LETTERS = 30  # a narrower column is unreadable
_GAP = 3  # between two columns


class Output:
    """Prints results as text, or as JSON when ``as_json``."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        return Console(highlight=False, emoji=False)

    def table(self, title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
        """Rows of equal fields: a table with a heading (none for ""), or a JSON array of objects.

        ``columns`` are the fields of the text table and their order; without it those of the first row.
        """
        if self.as_json:
            write_json([dict(row) for row in rows])
            return
        names = list(columns) or list(rows[0] if rows else ())
        cells = [[_table_cell(row.get(name)) for name in names] for row in rows]
        numeric = [bool(rows) and all(_is_number(row.get(name)) for row in rows) for name in names]
        if is_terminal(sys.stdout):
            self._on_terminal(title, names, numeric, cells)
        else:
            _write(_plain_table(title, names, numeric, cells))

    def record(self, fields: Mapping[str, Any]) -> None:
        """One thing by its fields: a line each, or a JSON object."""
        if self.as_json:
            write_json(dict(fields))
            return
        self.record_of({name: _cell(value) for name, value in fields.items()})

    def record_of(self, fields: Mapping[str, str]) -> None:
        """As ``record`` for values that are formatted already; never as JSON."""
        width = max((_width(visible(name)) for name in fields), default=0)
        for name, value in fields.items():
            label = _pad(visible(name), width, is_right=False)
            if is_terminal(sys.stdout):
                from rich.text import Text

                self._console.print(Text.assemble((label, "bold"), "  ", value))
            else:
                _write([f"{label}  {value}".rstrip()])

    def line(self, text: str) -> None:
        """Print a sentence or lines for people; with ``--json`` nothing."""
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
            folded = _fold(f"{label}{text}", console.width).removeprefix(label)
            console.print(Text.assemble((label, "bold"), (folded, "" if label else "bold red")))

    def warning(self, problem: str, remedy: str) -> None:
        """A warning on standard error: a line, or ``{"warning": {...}}``."""
        if self.as_json:
            write_json({"warning": {"problem": problem, "remedy": remedy}}, sys.stderr)
        else:
            _write([visible_lines(f"Warning: {problem} {remedy}")], sys.stderr)

    def _on_terminal(self, title: str, names: list[str], numeric: list[bool], cells: list[list[str]]) -> None:
        """A table if it fits this width; else without empty columns, else row by row."""
        room = self._console.width
        kept = list(range(len(names)))
        if cells and _needed_width(names, cells, kept) > room:
            kept = [place for place in kept if any(row[place] != _MISSING for row in cells)]
        rows = [[row[place] for place in kept] for row in cells]
        shown = [names[place] for place in kept]
        if cells and _needed_width(shown, rows, range(len(shown)), _FOLDED_LETTERS) > room:
            self._row_by_row(title, shown, rows)
        else:
            self._rich_table(title, shown, [numeric[place] for place in kept], rows)
        if len(kept) < len(names):
            hidden = ", ".join(name for place, name in enumerate(names) if place not in kept)
            self.line(f"Nothing is in: {hidden}")

    def _row_by_row(self, title: str, names: list[str], cells: list[list[str]]) -> None:
        from rich.text import Text

        self._heading(title)
        for number, row in enumerate(cells, start=1):
            self._console.print(Text(f"{number} ".ljust(self._console.width, "─"), style="dim"))
            self.record_of({name: cell for name, cell in zip(names, row, strict=True) if cell != _MISSING})

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
        self._heading(title)
        self._console.print(table)

    def _heading(self, title: str) -> None:
        from rich.text import Text

        if title:
            self._console.print(Text(visible(title), style="bold"))


def _fold(text: str, width: int) -> str:
    """Return the text with lines broken between words; a path stays whole, so that it can be copied."""
    fold = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    return "\n".join("\n".join(fold.wrap(line)) for line in text.split("\n"))


def _needed_width(
    names: Sequence[str], cells: Sequence[Sequence[str]], places: Iterable[int], widest: int | None = None
) -> int:
    """Return the width of a table of some of the columns, each at most ``widest`` wide."""
    widths = [max(_width(visible(names[place])), *(_width(row[place]) for row in cells)) for place in places]
    return sum(width if widest is None else min(width, widest) for width in widths) + _GAP * len(widths)


def is_terminal(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that supports cursor movement."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def write_json(value: object, stream: TextIO | None = None) -> None:
    """Write one line of JSON, flushed; letters that the stream cannot encode are escaped."""
    target = sys.stdout if stream is None else stream
    shown = json_field(value)  # a number that JSON lacks is text, as in exports
    text = visible_json(json.dumps(shown, default=str, ensure_ascii=False))
    try:
        text.encode(target.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(shown, default=str)
    target.write(text + "\n")
    target.flush()  # a reader of the pipe waits for a service's address or the next log line


def _write(lines: Sequence[str], stream: TextIO | None = None) -> None:
    target = sys.stdout if stream is None else stream
    encoding = target.encoding or "utf-8"
    for line in lines:
        # A terminal with another encoding shows escapes for characters that it lacks.
        target.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    target.flush()


def _plain_table(
    title: str, names: Sequence[str], numeric: Sequence[bool], cells: Sequence[Sequence[str]]
) -> list[str]:
    heads = [visible(name) for name in names]
    widths = [max(map(_width, column)) for column in zip(heads, *cells, strict=True)]
    lines = ["  ".join(map(_pad, row, widths, numeric)).rstrip() for row in [heads, *cells]]
    return [visible(title), *lines] if title else lines


def _pad(text: str, width: int, is_right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if is_right else text + space


def _width(text: str) -> int:
    """Return the width of the text in columns: two for wide letters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _table_cell(value: object) -> str:
    return _cell([_cut(str(item)) for item in value]) if isinstance(value, list) else _cut(_cell(value))


def _cell(value: object) -> str:
    if value is None:
        return _MISSING
    if isinstance(value, list | tuple):
        return visible(", ".join(map(str, value))) or _MISSING
    return visible(str(value))
