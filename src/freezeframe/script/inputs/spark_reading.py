"""Read CSV, JSON Lines and Parquet files as lazy Spark frames.

Spark's workers run this package's readers, part by part. Types are settled first, by one job over the parts
of all streams. Small files of a stream are read by this process, in one piece.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.untyped import has_untyped
from freezeframe.engine.plans.python_tasks import answers, frame_of, mark_file_order, spark_ddl
from freezeframe.script.formats.columnar_files import (
    parquet_parts,
    parquet_schema,
    parquet_tables,
    read_parquet_files,
)
from freezeframe.script.formats.csv_file import csv_parts
from freezeframe.script.formats.input_parts import PART_BYTES, InputPart
from freezeframe.script.formats.json_rows import (
    joined_json,
    json_parts,
    json_schema,
    json_tables,
    read_json_files,
    survey_json,
)
from freezeframe.script.inputs.streamed_rows import (
    CsvFiles,
    CsvSurvey,
    check_columns,
    csv_schema,
    csv_tables,
    joined_left,
    read_csv_files,
    survey_csv,
)
from freezeframe.script.types.typed_columns import KnownTypes, Left

IN_PROCESS_BYTES_MAX = 4 * 2**20


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A text format: its files read whole, or divided, surveyed and read by parts.

    A survey is what the values of a part say of the columns; ``joined`` is what all parts of a stream say.
    """

    whole: Callable[[str, Sequence[Path], KnownTypes], pa.Table]
    parts: Callable[[Path, int], Sequence[InputPart]]
    survey: Callable[[InputPart, KnownTypes], Any]
    joined: Callable[[str, Sequence[InputPart], Sequence[Any], KnownTypes], Any]
    schema: Callable[[KnownTypes, Any], pa.Schema]
    tables: Callable[[InputPart, Any, KnownTypes, Any], Iterator[pa.Table]]


def csv_format(escape: str = "") -> TextFormat:
    """Return the format of CSV files with this escape character before quotes in quoted fields."""

    def joined(
        stream: str, parts: Sequence[InputPart], surveys: Sequence[CsvSurvey], known: KnownTypes
    ) -> dict[str, Left]:
        left = joined_left(surveys)
        check_columns(CsvFiles(stream, list(dict.fromkeys(part.file for part in parts)), escape), known, left)
        return left

    return TextFormat(
        whole=lambda stream, files, known: read_csv_files(CsvFiles(stream, files, escape), known),
        parts=lambda file, part_bytes: csv_parts(file, part_bytes, escape=escape),
        survey=functools.partial(survey_csv, escape=escape),
        joined=joined,
        schema=csv_schema,
        tables=functools.partial(csv_tables, escape=escape),
    )


CSV = csv_format()
JSON_LINES = TextFormat(
    whole=lambda _, files, known: read_json_files(files, known),
    parts=json_parts,
    survey=survey_json,
    joined=lambda _, parts, surveys, known: joined_json(parts, surveys, known),
    schema=json_schema,
    tables=json_tables,
)


def text_frames(
    text: TextFormat,
    session: Any,
    streams: Mapping[str, tuple[Sequence[Path], KnownTypes]],
    in_process_bytes_max: int = IN_PROCESS_BYTES_MAX,
    part_bytes: int = PART_BYTES,
) -> dict[str, Any]:
    """Return the rows of each stream's files, typed by what is known of its columns."""
    frames, parts = {}, {}
    for stream, (files, known) in streams.items():
        if _bytes(files) <= in_process_bytes_max:
            frames[stream] = _local(session, text.whole(stream, files, known))
        else:
            parts[stream] = [part for file in files for part in text.parts(file, part_bytes)]
    calls = [
        functools.partial(text.survey, part, streams[stream][1])
        for stream, some in parts.items()
        for part in some
    ]
    surveys = iter(answers(session, calls))
    for stream, some in parts.items():
        known, found = streams[stream][1], list(itertools.islice(surveys, len(some)))
        joined = text.joined(stream, some, found, known)
        tables = [
            functools.partial(text.tables, part, survey, known, joined)
            for part, survey in zip(some, found, strict=True)
        ]
        frames[stream] = mark_file_order(frame_of(session, tables, text.schema(known, joined)))
    return {stream: frames[stream] for stream in streams}


def parquet_frame(
    session: Any,
    files: Sequence[Path],
    in_process_bytes_max: int = IN_PROCESS_BYTES_MAX,
    part_bytes: int = PART_BYTES,
) -> Any:
    """Return the rows of a stream's Parquet files."""
    if _bytes(files) <= in_process_bytes_max:
        return _local(session, read_parquet_files(files))
    parts = [part for file in files for part in parquet_parts(file, part_bytes)]
    schema = parquet_schema(files)
    answers(session, [parts[0].require_unchanged])  # a worker that cannot read fails here
    calls = [functools.partial(parquet_tables, part, schema) for part in parts]
    return mark_file_order(frame_of(session, calls, schema))


def _local(session: Any, rows: pa.Table) -> Any:
    if any(pa.types.is_nested(item.type) and has_untyped(item.type) for item in rows.schema):
        # ``createDataFrame`` casts the rows, and PyArrow gives nested nulls a wrong length by that.
        return mark_file_order(frame_of(session, [functools.partial(list, (rows,))], rows.schema))
    return mark_file_order(session.createDataFrame(rows, schema=spark_ddl(rows.schema)))


def _bytes(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files)
