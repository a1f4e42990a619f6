"""A file's rows piece by piece, for files that are larger than memory: the same rows, types and errors.

Types are settled before the first row is given: a file of text is gone through twice, first to learn
what every value of a column agrees with.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from freezeframe.engine.frames import to_arrow
from freezeframe.errors import UnreadableInput
from freezeframe.script.csv_file import LongRow, block_sizes, csv_text_pieces
from freezeframe.script.inference import Left, both
from freezeframe.script.input_parts import InputPart, divided
from freezeframe.script.json_lines import json_line_pieces
from freezeframe.script.parquet_batches import parquet_batches
from freezeframe.script.parquet_files import opened_parquet
from freezeframe.script.typed_columns import KnownTypes
from freezeframe.script.unpacking import UNLIMITED, UnpackLimits

_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class CsvSurvey:
    """What the rows of a part say of its columns, and the size of the blocks in which it can be read."""

    block_bytes: int
    left: Mapping[str, Left]


def survey_csv(part: InputPart, known: KnownTypes) -> CsvSurvey:
    """Go through a part once.

    Raises:
        UnreadableInput: as ``read_csv_text`` does.
    """
    part.require_unchanged()
    for block_bytes in block_sizes():
        left: dict[str, Left] = {}
        with suppress(LongRow):
            for piece in csv_text_pieces(part, block_bytes):
                for name in piece.column_names:
                    left[name] = known.rule(name).left(piece.column(name), left.get(name))
            return CsvSurvey(block_bytes, left)
    raise UnreadableInput(
        f"{str(part.file)!r} has a row of more than 2 GiB.",
        cause="A quote may never be closed.",
        remedy="Repair the file, or import it as Parquet.",
        file=str(part.file),
    )


def joined_left(surveys: Iterable[CsvSurvey]) -> dict[str, Left]:
    """What several parts together say of their columns."""
    left: dict[str, Left] = {}
    for survey in surveys:
        left |= {name: both(left.get(name), found) for name, found in survey.left.items()}
    return left


def csv_schema(known: KnownTypes, left: Mapping[str, Left]) -> pa.Schema:
    """The columns of what was surveyed."""
    return pa.schema([pa.field(name, known.rule(name).kind(found)) for name, found in left.items()])


def csv_tables(
    part: InputPart, block_bytes: int, known: KnownTypes, left: Mapping[str, Left]
) -> Iterator[pa.Table]:
    """The rows of a part in the columns of all parts that were surveyed; a column that it lacks is NULL.

    Raises:
        UnreadableInput: the file was changed since.
    """
    part.require_unchanged()
    schema, rules = csv_schema(known, left), {name: known.rule(name) for name in left}
    for piece in csv_text_pieces(part, block_bytes):
        columns = [
            rules[name].read(piece.column(name), found)
            if name in piece.column_names
            else pa.nulls(len(piece), schema.field(name).type)
            for name, found in left.items()
        ]
        if any(column is None for column in columns):
            raise part.changed()
        yield pa.table(columns, schema=schema)


def streamed_csv(file: Path, columns: pa.Schema | None) -> pa.RecordBatchReader:
    """A CSV file's rows, in the types of ``columns`` where every value is exact in them, else as inferred.

    Raises:
        UnreadableInput: as ``read_csv_text`` does; the whole file has been gone through by then.
    """
    (part,), known = divided(file, [0]), KnownTypes(columns)
    survey = survey_csv(part, known)
    return _reader(
        csv_schema(known, survey.left), lambda: csv_tables(part, survey.block_bytes, known, survey.left)
    )


def streamed_json_lines(
    file: Path, columns: pa.Schema | None, limits: UnpackLimits = UNLIMITED
) -> pa.RecordBatchReader:
    """A JSON Lines file's rows, in the types of ``columns``, others as their values are.

    Raises:
        UnreadableInput: as ``read_json_lines`` does; the whole file has been gone through by then.
    """
    found: pa.Schema | None = columns
    for piece in json_line_pieces(file, columns, _ROWS, limits):
        found = piece.schema if found is None else _joined(file, found, piece.schema)
    schema = found if found is not None else pa.schema([])
    return _reader(schema, lambda: json_line_pieces(file, schema, _ROWS, limits))


def streamed_parquet(file: Path, limits: UnpackLimits = UNLIMITED) -> pa.RecordBatchReader:
    """A Parquet file's rows.

    Raises:
        TooLarge: it unpacks to more than a limit; at the start, or when the reading comes to it.
        UnreadableInput: it is damaged or no Parquet; at the start, or when the reading comes to it.
        SchemaDriftError: it holds what a stream cannot keep.
    """
    with opened_parquet(file) as parquet:
        empty = to_arrow(pa.Table.from_batches([], parquet.schema_arrow).replace_schema_metadata())

    def tables() -> Iterator[pa.Table]:
        with opened_parquet(file) as parquet:
            bounded = limits is not UNLIMITED
            for batch in parquet_batches(file, limits) if bounded else parquet.iter_batches(_ROWS):
                yield to_arrow(pa.Table.from_batches([batch])).cast(empty.schema)

    return _reader(empty.schema, tables)


def _reader(schema: pa.Schema, tables: Callable[[], Iterator[pa.Table]]) -> pa.RecordBatchReader:
    batches = itertools.chain.from_iterable(table.to_batches(_ROWS) for table in tables())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _joined(file: Path, one: pa.Schema, other: pa.Schema) -> pa.Schema:
    try:
        return pa.unify_schemas([one, other], promote_options="permissive")
    except pa.ArrowException as error:
        raise UnreadableInput(
            f"{str(file)!r} cannot be read as JSON Lines.",
            cause=str(error).splitlines()[0],
            remedy="Write one JSON object a line, with one kind of value in each column.",
            file=str(file),
        ) from error
