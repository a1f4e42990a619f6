"""CSV files as typed rows: each column in a type that holds all its values, or refused by name and place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import UnreadableInput
from freezeframe.progress import remark
from freezeframe.script.formats.csv_file import (
    LongRow,
    block_sizes,
    csv_parts,
    csv_text_pieces,
    line_in_part,
    place_of_row,
    read_csv_text,
)
from freezeframe.script.formats.input_parts import PART_BYTES, InputPart
from freezeframe.script.formats.row_format import RowFormat
from freezeframe.script.types.typed_columns import (
    NOTHING_KNOWN,
    NUMBERS_AS_TEXT,
    ColumnRule,
    KnownTypes,
    Left,
    Made,
    both,
    number_shape,
)

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """The CSV files of a stream, and the escape character in them."""

    files: Sequence[Path]
    escape: str = ""

    def columns(self, name: str) -> Iterator[tuple[Path, pa.ChunkedArray]]:
        """Yield the text of a column in each file that has it."""
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
        """Return its line, or its row where the line is costly to find."""
        return place_of_row(self.file, self.row)

    def __str__(self) -> str:
        """The value and its place, for messages."""
        return f"{self.text[:_SHOWN]} ({self.where()})"


def check_columns(source: CsvFiles, known: KnownTypes, left: Mapping[str, Left]) -> None:
    """Refuse a column that does not have the requested type; name columns that look like numbers."""
    for name, found in left.items():
        rule = known.rule(name)
        if found == () and known.is_required(name):
            kind, shown = rule.kind_without_values, "a value does not fit"
            details: dict[str, Any] = {}
            value = _first_beyond(source, name, rule, lambda left: left != ())
            if value is not None:
                unit, _, number = value.where().partition(" ")
                shown = f"{unit} {number} of {str(value.file)!r} has {value.text[:_SHOWN]!r}"
                details = {"file": str(value.file), unit: int(number)}
            raise UnreadableInput(
                f"The column {name!r} cannot be read as {kind}: {shown}.",
                cause="Every value must be exact in the requested type.",
                remedy=f"Correct the value, or ask for another type of {name!r}.",
                column=name,
                **details,
            )
        if found and rule.ways[found[0]] is NUMBERS_AS_TEXT:
            of_stream = f" of {known.stream!r}" if known.stream else ""
            reason, is_long = _reason(source, name)
            remedy = "" if is_long else f'; types={{"{name}": "double"}} reads it as numbers'
            remark(f"Column {name!r}{of_stream} looks like numbers and was kept as text: {reason}{remedy}.")


def _reason(source: CsvFiles, name: str) -> tuple[str, bool]:
    """Return why no type holds a value beside those before it, and whether the value is too long."""
    rule = NOTHING_KNOWN.rule(name)
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
    left: Left = None
    for file, column in source.columns(name):
        after, _ = rule.narrow(column, left)
        if is_good(after):
            left = after
            continue
        rows, present = pc.indices_nonzero(column.is_valid()), pc.drop_null(column)
        low, high = 0, len(present)
        while high - low > 1:
            middle = (low + high) // 2
            after, _ = rule.narrow(present.slice(low, middle - low), left)
            if is_good(after):
                low, left = middle, after
            else:
                high = middle
        return _Value(present[low].as_py(), file, rows[low].as_py())
    return None


def _first_of_another_scale(source: CsvFiles, name: str, value: _Value) -> _Value | None:
    """Return the first value before another one with another number of digits behind the point."""
    digits = len(value.text.partition(".")[2])
    for file, column in source.columns(name):
        for row, text in enumerate(column.to_pylist()):
            if (file, row) == (value.file, value.row):
                return None
            if text is not None and len(text.partition(".")[2]) != digits:
                return _Value(text, file, row)
    return None


@dataclass(frozen=True, slots=True)
class CsvSurvey:
    """What the rows of a part say of its columns, and the size of the blocks in which it can be read."""

    block_bytes: int
    left: Mapping[str, Left]
    kept: Sequence[tuple[pa.Table, Mapping[str, Made]]] | None = None
    """The rows as text, and the values that the survey made of them."""


@dataclass(frozen=True, slots=True)
class CsvFormat(RowFormat):
    """CSV files, with this character before quotes in quoted fields; without one such quotes are doubled."""

    escape: str = ""

    def parts(self, file: Path, part_bytes: int = PART_BYTES) -> Sequence[InputPart]:
        """Return parts of whole rows."""
        return csv_parts(file, part_bytes, escape=self.escape)

    def survey(self, part: InputPart, known: KnownTypes, *, keeps: bool = False) -> CsvSurvey:
        """Return the ways to read each column that are left after all rows of the part."""
        part.require_unchanged()
        for block_bytes in block_sizes():
            left: dict[str, Left] = {}
            kept = []
            pieces = csv_text_pieces(part, block_bytes, self.escape)
            with suppress(LongRow):
                for piece in [read_csv_text(part.file, self.escape)] if keeps else pieces:
                    made = {}
                    for name in piece.column_names:
                        rule, text = known.rule(name), piece.column(name)
                        left[name], made[name] = rule.narrow(text, left.get(name))
                    if keeps:
                        kept.append((piece, made))
                return CsvSurvey(block_bytes, left, kept if keeps else None)
        raise UnreadableInput(
            f"{str(part.file)!r} has a row of more than 2 GiB.",
            cause="A quote may never be closed.",
            remedy="Repair the file, or import it as Parquet.",
            file=str(part.file),
        )

    def joined(
        self, parts: Sequence[InputPart], surveys: Sequence[CsvSurvey], known: KnownTypes
    ) -> dict[str, Left]:
        """Return the ways that are left after all parts."""
        left: dict[str, Left] = {}
        for survey in surveys:
            left |= {name: both(left.get(name), found) for name, found in survey.left.items()}
        files = list(dict.fromkeys(part.file for part in parts))
        check_columns(CsvFiles(files, self.escape), known, left)
        return left

    def schema(self, joined: Mapping[str, Left], known: KnownTypes) -> pa.Schema:
        """Return the columns, each in the type of the first way that is left."""
        return pa.schema([pa.field(name, known.rule(name).kind(left)) for name, left in joined.items()])

    def tables(
        self, part: InputPart, survey: CsvSurvey, joined: Mapping[str, Left], known: KnownTypes
    ) -> Iterator[pa.Table]:
        """Yield the rows, of the text that the survey kept or the file has."""
        part.require_unchanged()
        schema, rules = self.schema(joined, known), {name: known.rule(name) for name in joined}
        pieces = csv_text_pieces(part, survey.block_bytes, self.escape, is_checked=True)
        for piece, made in ((piece, {}) for piece in pieces) if survey.kept is None else survey.kept:
            here = set(piece.column_names)
            columns = [
                rules[name].read(piece.column(name), left, made.get(name))
                if name in here
                else pa.nulls(len(piece), schema.field(name).type)
                for name, left in joined.items()
            ]
            if any(column is None for column in columns):
                raise part.changed()
            yield pa.table(columns, schema=schema)

    def line(self, part: InputPart, row: int) -> int | None:
        """Return the line on which a row begins, found from the part's beginning."""
        return line_in_part(part, row, self.escape)
