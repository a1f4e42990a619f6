"""Streams a file's rows in batches, for files larger than memory.

Types are settled before the first row is given: a file of text is gone through twice, first to learn
what every value of a column agrees with.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from freezeframe.errors import UnreadableInput
from freezeframe.script.formats.csv_file import LongRow, block_sizes, csv_text_pieces
from freezeframe.script.formats.input_parts import InputPart, divide
from freezeframe.script.formats.json_rows import joined_json, json_schema, json_tables, survey_json
from freezeframe.script.formats.parquet_files import parquet_parts, parquet_schema, parquet_tables
from freezeframe.script.formats.unpacking import UNLIMITED, UnpackLimits
from freezeframe.script.inputs.input_folder import CsvFiles, check_columns
from freezeframe.script.types.inference import KnownTypes, Left, both

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
    """The joined findings of several parts."""
    left: dict[str, Left] = {}
    for survey in surveys:
        left |= {name: both(left.get(name), found) for name, found in survey.left.items()}
    return left


def csv_schema(known: KnownTypes, left: Mapping[str, Left]) -> pa.Schema:
    """The columns and types that the survey found."""
    return pa.schema([pa.field(name, known.rule(name).kind(found)) for name, found in left.items()])


def csv_tables(
    part: InputPart, survey: CsvSurvey, known: KnownTypes, left: Mapping[str, Left], escape: str = ""
) -> Iterator[pa.Table]:
    """The rows of a part in the columns of all parts that were surveyed; a column that it lacks is NULL."""
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
    """A CSV file's rows, in the known types where every value is exact in them, else as inferred."""
    (part,) = divide(file, [0])
    survey = survey_csv(part, known, escape)
    check_columns(CsvFiles(stream, (file,), escape), known, survey.left)
    return _reader(
        csv_schema(known, survey.left), lambda: csv_tables(part, survey, known, survey.left, escape)
    )


def streamed_json_lines(
    file: Path, known: KnownTypes, columns: pa.Schema | None = None, limits: UnpackLimits = UNLIMITED
) -> pa.RecordBatchReader:
    """A JSON Lines file's rows, as ``read_json_files`` gives them."""
    (part,) = parts = divide(file, [0])
    found = joined_json(parts, [survey_json(part, known, limits)], known, columns)
    return _reader(json_schema(known, found), lambda: json_tables(part, found, known, found))


def streamed_parquet(file: Path, limits: UnpackLimits = UNLIMITED) -> pa.RecordBatchReader:
    """A Parquet file's rows, as ``read_parquet_files`` gives them."""
    schema, (part,) = parquet_schema([file]), parquet_parts(file, sys.maxsize)
    return _reader(schema, lambda: parquet_tables(part, schema, limits))


def _reader(schema: pa.Schema, tables: Callable[[], Iterator[pa.Table]]) -> pa.RecordBatchReader:
    batches = itertools.chain.from_iterable(table.to_batches(_ROWS) for table in tables())
    return pa.RecordBatchReader.from_batches(schema, batches)
