"""Read CSV, JSON Lines and Parquet files as lazy Spark frames.

Spark's workers run this package's readers, part by part. Types are settled first, by one job over the parts
of all streams. Small files of a stream are read by this process, in one piece.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.untyped import has_untyped
from freezeframe.engine.plans.python_tasks import answers, frame_of, mark_file_order, spark_ddl
from freezeframe.script.formats.input_parts import PART_BYTES
from freezeframe.script.formats.row_format import RowFormat
from freezeframe.script.types.typed_columns import KnownTypes

IN_PROCESS_BYTES_MAX = 4 * 2**20


def spark_frames(
    form: RowFormat,
    session: Any,
    streams: Mapping[str, tuple[Sequence[Path], KnownTypes]],
    in_process_bytes_max: int = IN_PROCESS_BYTES_MAX,
    part_bytes: int = PART_BYTES,
) -> dict[str, Any]:
    """Return the rows of each stream's files, typed by what is known of its columns."""
    frames, parts = {}, {}
    for stream, (files, known) in streams.items():
        if sum(file.stat().st_size for file in files) <= in_process_bytes_max:
            frames[stream] = _local(session, form.whole(files, known))
        else:
            parts[stream] = [part for file in files for part in form.parts(file, part_bytes)]
    calls = [
        functools.partial(form.survey, part, streams[stream][1])
        for stream, some in parts.items()
        for part in (some if form.is_surveyed else some[:1])  # a worker that cannot read fails here
    ]
    surveys = iter(answers(session, calls))
    for stream, some in parts.items():
        known = streams[stream][1]
        found = list(itertools.islice(surveys, len(some) if form.is_surveyed else 1))
        found += [None] * (len(some) - len(found))
        joined = form.joined(some, found, known)
        tables = [
            functools.partial(form.tables, part, survey, joined, known)
            for part, survey in zip(some, found, strict=True)
        ]
        frames[stream] = mark_file_order(frame_of(session, tables, form.schema(joined, known)))
    return {stream: frames[stream] for stream in streams}


def _local(session: Any, rows: pa.Table) -> Any:
    if any(pa.types.is_nested(item.type) and has_untyped(item.type) for item in rows.schema):
        # ``createDataFrame`` casts the rows, and PyArrow gives nested nulls a wrong length by that.
        return mark_file_order(frame_of(session, [functools.partial(list, (rows,))], rows.schema))
    return mark_file_order(session.createDataFrame(rows, schema=spark_ddl(rows.schema)))
