"""Checks of CSV columns once all of their values were seen: types that do not hold, numbers kept as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import UnreadableInput
from freezeframe.progress import remark
from freezeframe.script.formats.csv_file import place_of_row, read_csv_text, read_csv_texts
from freezeframe.script.types.inference import NUMBERS_AS_TEXT, ColumnRule, Left, number_shape
from freezeframe.script.types.typed_columns import KnownTypes

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """The CSV files of a stream, and the escape character in them."""

    stream: str
    files: Sequence[Path]
    escape: str = ""

    def columns(self, name: str) -> Iterator[tuple[Path, pa.ChunkedArray]]:
        """The text of a column in each file that has it."""
        for file in self.files:
            text = read_csv_text(file, self.escape)
            if name in text.column_names:
                yield file, text.column(name)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of a column and where it is."""

    text: str
    file: Path
    row: int

    def where(self) -> str:
        """Its line, or its row where the line is costly to find."""
        return place_of_row(self.file, self.row)

    def __str__(self) -> str:
        """The value and its place, for messages."""
        return f"{self.text[:_SHOWN]} ({self.where()})"


def read_csv_files(source: CsvFiles, known: KnownTypes) -> pa.Table:
    """The rows of all files in typed columns.

    Raises:
        UnreadableInput: as of ``read_csv_text`` and ``check_columns``.
    """
    return typed_csv(source, read_csv_texts(source.files, source.escape), known)


def typed_csv(source: CsvFiles, text: pa.Table, known: KnownTypes) -> pa.Table:
    """The text of CSV files in typed columns.

    Raises:
        UnreadableInput: as of ``check_columns``.
    """
    settled = {name: known.rule(name).settled(text.column(name)) for name in text.column_names}
    check_columns(source, known, {name: left for name, (_, left) in settled.items()})
    return pa.table({name: column for name, (column, _) in settled.items()})


def check_columns(source: CsvFiles, known: KnownTypes, left: Mapping[str, Left]) -> None:
    """Refuse a column that is not of the type that was asked for; name those that look like numbers.

    Raises:
        UnreadableInput: a value is not exact in its column's type; file, line and column are named.
    """
    for name, found in left.items():
        rule = known.rule(name)
        if found == () and known.is_required(name):
            raise _inexact(source, name, rule)
        if found and rule.ways[found[0]] is NUMBERS_AS_TEXT:
            remark(_number_remark(source, name))


def _inexact(source: CsvFiles, name: str, rule: ColumnRule) -> UnreadableInput:
    kind, shown = rule.kind_without_values, "a value does not fit"
    details: dict[str, Any] = {}
    value = _first_beyond(source, name, rule, lambda left: left != ())
    if value is not None:
        place, _, number = value.where().partition(" ")
        shown = f"{place} {number} of {str(value.file)!r} has {value.text[:_SHOWN]!r}"
        details = {"file": str(value.file), place: int(number)}
    return UnreadableInput(
        f"The column {name!r} cannot be read as {kind}: {shown}.",
        cause="Every value must be exact in a type that is asked for.",
        remedy=f"Correct the value, or ask for another type of {name!r}.",
        column=name,
        **details,
    )


def _number_remark(source: CsvFiles, name: str) -> str:
    of_stream = f" of {source.stream!r}" if source.stream else ""
    reason, is_long = _reason(source, name)
    remedy = "" if is_long else f'; types={{"{name}": "double"}} reads it as numbers'
    return f"Column {name!r}{of_stream} looks like numbers and was kept as text: {reason}{remedy}."


def _reason(source: CsvFiles, name: str) -> tuple[str, bool]:
    """Which value no type holds as it is written beside those before it, and whether it is too long."""
    rule = KnownTypes().rule(name)
    value = _first_beyond(
        source, name, rule, lambda left: not left or rule.ways[left[0]] is not NUMBERS_AS_TEXT
    )
    if value is None:
        return "its numbers are not written alike", False
    shape = number_shape(pa.chunked_array([[value.text]], pa.string()))
    if shape is not None and shape.has_minus_zero:
        return f"{value} is a zero with a sign", False
    other = _first_of_another_scale(source, name, value)
    if other is not None:
        return f"{other} and {value} differ in digits behind the point", False
    return f"{value} is too long for a number", True


def _first_beyond(
    source: CsvFiles, name: str, rule: ColumnRule, is_good: Callable[[Left], bool]
) -> _Value | None:
    """The first value from which on a column is not good."""
    left: Left = None
    for file, column in source.columns(name):
        after = rule.narrow(column, left)
        if is_good(after):
            left = after
            continue
        rows, present = pc.indices_nonzero(column.is_valid()), pc.drop_null(column)
        low, high = 0, len(present)
        while high - low > 1:
            middle = (low + high) // 2
            after = rule.narrow(present.slice(low, middle - low), left)
            if is_good(after):
                low, left = middle, after
            else:
                high = middle
        return _Value(present[low].as_py(), file, rows[low].as_py())
    return None


def _first_of_another_scale(source: CsvFiles, name: str, value: _Value) -> _Value | None:
    """The first value before another one with another number of digits behind the point."""
    digits = len(value.text.partition(".")[2])
    for file, column in source.columns(name):
        for row, text in enumerate(column.to_pylist()):
            if (file, row) == (value.file, value.row):
                return None
            if text is not None and len(text.partition(".")[2]) != digits:
                return _Value(text, file, row)
    return None
