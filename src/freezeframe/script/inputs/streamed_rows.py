"""The files of an input folder by stream, typed in one piece or streamed in batches.

Types are settled before the first row is given: a file of text that is larger than memory is read twice,
first to learn which types hold every value of a column.
"""

import itertools
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import InputNotFound, UnreadableInput
from freezeframe.progress import remark
from freezeframe.script.formats.columnar_files import parquet_parts, parquet_schema, parquet_tables
from freezeframe.script.formats.csv_file import (
    LongRow,
    block_sizes,
    csv_text_pieces,
    place_of_row,
    read_csv_text,
    read_csv_texts,
)
from freezeframe.script.formats.input_parts import UNLIMITED, InputPart, UnpackLimits, divide
from freezeframe.script.formats.json_rows import joined_json, json_schema, json_tables, survey_json
from freezeframe.script.types.typed_columns import (
    NUMBERS_AS_TEXT,
    ColumnRule,
    KnownTypes,
    Left,
    both,
    number_shape,
)
from freezeframe.storage.location import path_text

# A sync names its files ``{stream}-{time}.csv`` (``Account-20200811T121507.csv``). The stream is
# the name up to the last ``-``, if a stamp follows it; a stream may have several files.

CSV_EXTENSIONS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
JSON_EXTENSIONS = (".jsonl", ".ndjson", ".json")
PARQUET_EXTENSIONS = (".parquet",)

_READ_SOMEHOW = frozenset((*CSV_EXTENSIONS, *JSON_EXTENSIONS, *PARQUET_EXTENSIONS, ".arrow"))
# Files that say something of others, and have no rows.
_DESCRIPTIONS = (".snapshot.schema.json", "catalog.json")
_STAMP = re.compile(r"(?=.*[0-9])[0-9TZ_]+")
_NAMED_MAX = 5


def stream_files(
    path: str | os.PathLike[str], extensions: Collection[str], ignore: Collection[str] = ()
) -> dict[str, list[Path]]:
    """Return the files with these extensions (``".csv"``) by stream, ordered by the stamps in their names.

    ``path`` is a folder or a single file. Files of other extensions, hidden ones, schema files, a
    catalog, sub-folders and the streams in ``ignore`` are left out. Streams are in alphabetical order.
    Numbers in stamps are compared as numbers, times as times. Files that no reader of folders takes are
    named in a remark.
    """
    # Absolute: a lazy frame is read by other processes, and when the script may have left its folder.
    location = Path(path_text(path)).absolute()
    if location.is_dir():
        visible = [file for file in location.iterdir() if file.is_file() and file.name[0] not in "._"]
        visible = [file for file in visible if not file.name.endswith(_DESCRIPTIONS)]
        files = [file for file in visible if file_extension(file) in extensions]
        others = sorted(
            file.name for file in visible if file_extension(file) not in {*_READ_SOMEHOW, ".arrow"}
        )
        if others:
            more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
            remark(
                f"Passed over in {str(location)!r}, as no reader of folders takes such files:"
                f" {', '.join(others[:_NAMED_MAX])}{more}."
            )
    elif location.is_file():
        files = [location]
    else:
        raise InputNotFound(
            f"There is no folder {str(path)!r} to read from.",
            cause="A sync that found nothing to do may have written none.",
            remedy="Check INPUT_DIR, or test for the folder before reading it.",
            path=str(path),
        )
    streams: dict[str, list[Path]] = {}
    for file in sorted(files, key=lambda file: (stream_of(file), _moment(file), file.name)):
        stream = stream_of(file)
        if stream not in ignore:
            streams.setdefault(stream, []).append(file)
    return streams


def file_extension(file: Path) -> str:
    """Return what the name ends with, in lower case; of a packed file with what it holds (``.csv.gz``)."""
    inner, outer = Path(file.stem).suffix, file.suffix
    return f"{inner}{outer}".casefold() if outer.casefold() == ".gz" else outer.casefold()


def stream_of(file: Path) -> str:
    """Return the stream that a file's name means."""
    stream, stamp = _stream_and_stamp(file)
    return stream if stamp else _stem(file)


def _stem(file: Path) -> str:
    extension = file_extension(file)
    return file.name[: -len(extension)] if extension and extension != file.name.casefold() else file.name


def _stream_and_stamp(file: Path) -> tuple[str, str]:
    stream, _, stamp = _stem(file).rpartition("-")
    return (stream, stamp) if stream and _STAMP.fullmatch(stamp) else ("", "")


def _moment(file: Path) -> tuple[tuple[int, ...], str]:
    """Return what orders the files of a stream: numbers, and a time of day as text."""
    numbers, _, time = _stream_and_stamp(file)[1].partition("T")
    return tuple(map(int, re.findall(r"\d+", numbers))), time.rstrip("Z")


_SHOWN = 60


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """The CSV files of a stream, and the escape character in them."""

    stream: str
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


def read_csv_files(source: CsvFiles, known: KnownTypes) -> pa.Table:
    """Return the rows of all files in typed columns."""
    return typed_csv(source, read_csv_texts(source.files, source.escape), known)


def typed_csv(source: CsvFiles, text: pa.Table, known: KnownTypes) -> pa.Table:
    """Return the text of CSV files in typed columns."""
    settled = {name: known.rule(name).settled(text.column(name)) for name in text.column_names}
    check_columns(source, known, {name: left for name, (_, left) in settled.items()})
    return pa.table({name: column for name, (column, _) in settled.items()})


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
            of_stream = f" of {source.stream!r}" if source.stream else ""
            reason, is_long = _reason(source, name)
            remedy = "" if is_long else f'; types={{"{name}": "double"}} reads it as numbers'
            remark(f"Column {name!r}{of_stream} looks like numbers and was kept as text: {reason}{remedy}.")


def _reason(source: CsvFiles, name: str) -> tuple[str, bool]:
    """Return why no type holds a value beside those before it, and whether the value is too long."""
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
    """Return the first value before another one with another number of digits behind the point."""
    digits = len(value.text.partition(".")[2])
    for file, column in source.columns(name):
        for row, text in enumerate(column.to_pylist()):
            if (file, row) == (value.file, value.row):
                return None
            if text is not None and len(text.partition(".")[2]) != digits:
                return _Value(text, file, row)
    return None


_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class CsvSurvey:
    """What the rows of a part say of its columns, and the size of the blocks in which it can be read."""

    block_bytes: int
    left: Mapping[str, Left]


def survey_csv(part: InputPart, known: KnownTypes, escape: str = "") -> CsvSurvey:
    """Survey a part in one pass."""
    part.require_unchanged()
    for block_bytes in block_sizes():
        left: dict[str, Left] = {}
        with suppress(LongRow):
            for piece in csv_text_pieces(part, block_bytes, escape):
                for name in piece.column_names:
                    left[name] = known.rule(name).narrow(piece.column(name), left.get(name))
            return CsvSurvey(block_bytes, left)
    raise UnreadableInput(
        f"{str(part.file)!r} has a row of more than 2 GiB.",
        cause="A quote may never be closed.",
        remedy="Repair the file, or import it as Parquet.",
        file=str(part.file),
    )


def joined_left(surveys: Iterable[CsvSurvey]) -> dict[str, Left]:
    """Return the joined findings of several parts."""
    left: dict[str, Left] = {}
    for survey in surveys:
        left |= {name: both(left.get(name), found) for name, found in survey.left.items()}
    return left


def csv_schema(known: KnownTypes, left: Mapping[str, Left]) -> pa.Schema:
    """Return the columns and types that the survey found."""
    return pa.schema([pa.field(name, known.rule(name).kind(found)) for name, found in left.items()])


def csv_tables(
    part: InputPart, survey: CsvSurvey, known: KnownTypes, left: Mapping[str, Left], escape: str = ""
) -> Iterator[pa.Table]:
    """Yield the rows of a part in the columns of all surveyed parts; a column that it lacks is NULL."""
    part.require_unchanged()
    schema, rules = csv_schema(known, left), {name: known.rule(name) for name in left}
    for piece in csv_text_pieces(part, survey.block_bytes, escape, is_checked=True):
        here = set(piece.column_names)
        columns = [
            rules[name].read(piece.column(name), found)
            if name in here
            else pa.nulls(len(piece), schema.field(name).type)
            for name, found in left.items()
        ]
        if any(column is None for column in columns):
            raise part.changed()
        yield pa.table(columns, schema=schema)


def streamed_csv(file: Path, known: KnownTypes, stream: str = "", escape: str = "") -> pa.RecordBatchReader:
    """Return a CSV file's rows, in the known types where every value is exact in them, else as inferred."""
    (part,) = divide(file, [0])
    survey = survey_csv(part, known, escape)
    check_columns(CsvFiles(stream, (file,), escape), known, survey.left)
    return _reader(
        csv_schema(known, survey.left), lambda: csv_tables(part, survey, known, survey.left, escape)
    )


def streamed_json_lines(
    file: Path, known: KnownTypes, columns: pa.Schema | None = None, limits: UnpackLimits = UNLIMITED
) -> pa.RecordBatchReader:
    """Return a JSON Lines file's rows, as ``read_json_files`` gives them."""
    (part,) = parts = divide(file, [0])
    found = joined_json(parts, [survey_json(part, known, limits)], known, columns)
    return _reader(json_schema(known, found), lambda: json_tables(part, found, known, found))


def streamed_parquet(file: Path, limits: UnpackLimits = UNLIMITED) -> pa.RecordBatchReader:
    """Return a Parquet file's rows, as ``read_parquet_files`` gives them."""
    schema, (part,) = parquet_schema([file]), parquet_parts(file, sys.maxsize)
    return _reader(schema, lambda: parquet_tables(part, schema, limits))


def _reader(schema: pa.Schema, tables: Callable[[], Iterator[pa.Table]]) -> pa.RecordBatchReader:
    batches = itertools.chain.from_iterable(table.to_batches(_ROWS) for table in tables())
    return pa.RecordBatchReader.from_batches(schema, batches)
