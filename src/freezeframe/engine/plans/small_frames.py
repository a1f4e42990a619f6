"""Small Spark frames as Arrow tables: read by one request, not written to files and searched there.

Spark's own estimate of the result's bytes says which frames are tried; the rows are counted as they come. A
frame whose keys repeat or are missing goes the other way, which knows what to do with them.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pyarrow as pa
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freezeframe.engine.protocol.table_engine import INLINE_KEYS_MAX, WriteTask

ROWS_MAX = INLINE_KEYS_MAX
ESTIMATE_BYTES_MAX = 4 * 1024 * 1024

_ESTIMATE = re.compile(r"== Optimized Logical Plan ==\n.*?Statistics\(sizeInBytes=([\d.E+]+) (\w+)")
_UNITS = {unit: 1024**power for power, unit in enumerate(["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])}
# What may give more bytes than it gets, so that the estimate says little.
_GROWS = re.compile(r"\b(Generate|MapIn\w+|FlatMap\w+|Expand|\w*Python\w*|\w*UDF\w*)\b")


def small_rows(frame: Any, task: WriteTask, schema: StructType) -> pa.Table | None:
    """The rows of a Spark Connect frame in the types of ``schema``, if they are few; None where files serve.

    Files serve a frame of more than ``ROWS_MAX`` rows or an estimate of more than ``ESTIMATE_BYTES_MAX``, a
    classic frame, and rows whose keys repeat, are null, or are floating-point numbers.
    """
    if not isinstance(frame, DataFrame):
        return None
    plan = frame._explain_string(mode="cost")  # noqa: SLF001 - ``explain`` prints it
    found = _ESTIMATE.search(plan)
    if found is None or float(found[1]) * _UNITS.get(found[2], float("inf")) > ESTIMATE_BYTES_MAX:
        return None
    table = _collected(frame.limit(ROWS_MAX + 1) if _GROWS.search(plan) else frame)
    if table is None:
        return None
    target = to_arrow_schema(schema)
    try:
        table = table.rename_columns(target.names).cast(target)
        table.validate(full=True)
    except pa.ArrowException:
        return None  # Text that is not UTF-8: the search of files names its column
    return table if _has_plain_keys(table, task) else None


def _collected(frame: Any) -> pa.Table | None:
    """All rows; None as soon as they are too many."""
    client = frame.sparkSession.client
    answers: Any = client.to_table_as_iterator(frame._plan.to_proto(client), {})  # noqa: SLF001
    parts, rows = [], 0
    with contextlib.closing(answers):
        for answer in answers:
            if isinstance(answer, pa.Table):
                parts.append(answer)
                rows += len(answer)
                if rows > ROWS_MAX:
                    return None
    return pa.concat_tables(parts) if parts else None


def _has_plain_keys(table: pa.Table, task: WriteTask) -> bool:
    """Whether no key is null or repeats, by equality that every engine agrees on."""
    keys = table.select(list(task.key))
    if any(column.null_count or pa.types.is_floating(column.type) for column in keys.columns):
        return False
    try:
        return not task.key or len(keys.group_by(list(task.key)).aggregate([])) == len(table)
    except pa.ArrowNotImplementedError:
        return False
