"""The files of a folder as lazy Spark frames: our own readers, run by Spark's workers, a part of a file each.

Types are settled first, by one job over the parts of all streams; a frame then reads its parts when it is
computed, as often as it is. What a few files of a stream hold comes from this process, in one piece.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from freezeframe.engine.spark_schema import spark_ddl
from freezeframe.engine.spark_tasks import answers, frame_of
from freezeframe.script.csv_file import read_csv_texts
from freezeframe.script.input_parts import PART_BYTES, csv_parts
from freezeframe.script.parquet_files import parquet_parts, parquet_schema, parquet_tables, read_parquet_files
from freezeframe.script.streamed_rows import csv_schema, csv_tables, joined_left, survey_csv
from freezeframe.script.typed_columns import KnownTypes

IN_PROCESS_BYTES_MAX = 4 * 2**20


def csv_frames(
    session: Any,
    streams: Mapping[str, tuple[Sequence[Path], KnownTypes]],
    in_process_bytes_max: int = IN_PROCESS_BYTES_MAX,
    part_bytes: int = PART_BYTES,
) -> dict[str, Any]:
    """By stream the rows of its CSV files, typed by what is known of its columns.

    Raises:
        UnreadableInput: as ``read_csv_text`` does.
        StorageNotShared: a worker does not see a file.
        SetupError: the workers cannot run freezeframe.
    """
    frames, parts = {}, {}
    for stream, (files, known) in streams.items():
        if _bytes(files) <= in_process_bytes_max:
            frames[stream] = _local(session, known.table(read_csv_texts(files)))
        else:
            parts[stream] = [part for file in files for part in csv_parts(file, part_bytes)]
    surveys = iter(
        answers(
            session,
            [
                functools.partial(survey_csv, part, streams[stream][1])
                for stream, some in parts.items()
                for part in some
            ],
        )
    )
    for stream, some in parts.items():
        known, found = streams[stream][1], list(itertools.islice(surveys, len(some)))
        left = joined_left(found)
        calls = [
            functools.partial(csv_tables, part, survey.block_bytes, known, left)
            for part, survey in zip(some, found, strict=True)
        ]
        frames[stream] = frame_of(session, calls, csv_schema(known, left))
    return {stream: frames[stream] for stream in streams}


def parquet_frame(
    session: Any,
    files: Sequence[Path],
    in_process_bytes_max: int = IN_PROCESS_BYTES_MAX,
    part_bytes: int = PART_BYTES,
) -> Any:
    """The rows of a stream's Parquet files; errors as of ``read_parquet_files``."""
    if _bytes(files) <= in_process_bytes_max:
        return _local(session, read_parquet_files(files))
    parts = [part for file in files for part in parquet_parts(file, part_bytes)]
    schema = parquet_schema(files)
    return frame_of(session, [functools.partial(parquet_tables, part, schema) for part in parts], schema)


def _local(session: Any, rows: pa.Table) -> Any:
    """Rows of this process as a frame."""
    return session.createDataFrame(rows, schema=spark_ddl(rows.schema))


def _bytes(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files)
