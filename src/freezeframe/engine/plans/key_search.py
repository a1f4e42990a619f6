"""Key search by Spark: one scan of the key's columns in a stream's files, joined with the batch's keys.

Only the key's columns are read. The result has a file, a position and a key number for each match.
The caller filters deleted rows and decides on the others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.plan import LocalRelation
from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.configuration.spark_configuration import (
    BROADCAST_KEYS_MAX,
    FILE_BYTES,
    KEYS_PER_TASK,
    SMALL_BYTES,
)
from freezeframe.engine.plans.collection import collect
from freezeframe.engine.plans.columns import fit_column, quote, struct_type
from freezeframe.engine.plans.keys import key_column
from freezeframe.engine.plans.parquet_files import FILE, ROW, read_files, size_of
from freezeframe.engine.protocol.table_engine import INLINE_KEYS_MAX, FindTask
from freezeframe.errors import CorruptData

_PLACE, _TASK = "place", "task"


def find(session: SparkSession, task: FindTask) -> pa.Table:
    """Run the search; see `TableEngine.find`."""
    names = [ROW, _PLACE] if len(task.stored) == 1 else [ROW, _PLACE, FILE]
    found = collect(_matches(session, task, in_one_task=_is_small(task)).select(*names))
    numbers = (
        _file_indexes(found[FILE], task) if len(task.stored) > 1 else pa.array(np.zeros(len(found), np.int32))
    )
    return _answer(found, numbers)


def _answer(found: pa.Table, numbers: pa.Array) -> pa.Table:
    return pa.table({"file": numbers, "row": found[ROW], "place": found[_PLACE]})


def _is_small(task: FindTask) -> bool:
    """Whether one Spark task suffices for all files."""
    if task.rows > INLINE_KEYS_MAX:
        return False
    keys = () if isinstance(task.keys, pa.Table) else task.keys
    size = size_of([*task.stored, *keys])
    return size is not None and size <= SMALL_BYTES


def find_all(session: SparkSession, tasks: Sequence[FindTask]) -> tuple[pa.Table, ...]:
    """Run the searches in one query; see `TableEngine.find_all`."""
    parts = [
        _matches(session, task, in_one_task=_is_small(task)).select(
            F.lit(number).alias(_TASK), ROW, _PLACE, FILE
        )
        for number, task in enumerate(tasks)
    ]
    found = collect(functools.reduce(lambda above, part: above.union(part), parts))
    answers = []
    for number, task in enumerate(tasks):
        own = found.filter(pc.equal(found[_TASK], number))
        answers.append(_answer(own, _file_indexes(own[FILE], task)))
    return tuple(answers)


def count_found(session: SparkSession, task: FindTask) -> tuple[int, ...]:
    """Count the matches; see `TableEngine.count_found`."""
    counted = _matches(session, task).groupBy(FILE).agg(F.count(F.lit(1)).alias("rows")).collect()
    numbers = _file_indexes(pa.chunked_array([[row[0] for row in counted]], pa.string()), task).to_pylist()
    rows = dict(zip(numbers, (row[1] for row in counted), strict=True))
    return tuple(int(rows.get(number, 0)) for number in range(len(task.stored)))


def _matches(session: SparkSession, task: FindTask, *, in_one_task: bool = False) -> DataFrame:
    """One row per stored row, deleted or not, with a key of the batch.

    ``in_one_task``: nothing goes to other tasks, so it takes no job of Spark's to get the keys there.
    """
    schema, target = struct_type(task.stored_schema), struct_type(task.target_schema)
    old_names, new_names = ([f"{letter}{i}" for i in range(len(target))] for letter in "on")
    read = read_files(session, task.stored, schema, with_places=True)
    values = [
        fit_column(F.col(quote(ours.name)), ours.dataType, theirs.dataType).alias(name)
        for name, ours, theirs in zip(old_names, schema.fields, target.fields, strict=True)
    ]
    stored = read.select(*values, FILE, ROW)
    batch = _batch(session, task, new_names)
    old_key, new_key = (key_column(names, task.null_keys) for names in (old_names, new_names))
    stored = stored.select(old_key.alias("old_key"), FILE, ROW)
    batch = batch.select(new_key.alias("new_key"), _PLACE)
    is_same = F.col("old_key") == F.col("new_key")
    if in_one_task:
        return stored.coalesce(1).join(batch.coalesce(1).hint("shuffle_hash"), is_same)
    if task.rows <= BROADCAST_KEYS_MAX:
        return stored.join(F.broadcast(batch), is_same)
    # By the whole key, which is unique, so that tasks have equal sizes even if its parts repeat.
    tasks = _split(task.rows, task.size_bytes)
    return stored.repartition(tasks, "old_key").join(batch.repartition(tasks, "new_key"), is_same)


def _split(keys: int, size_bytes: int) -> int:
    """The number of tasks of a search that splits both sides by key."""
    return max(math.ceil(keys / KEYS_PER_TASK), math.ceil(size_bytes / FILE_BYTES))


def _batch(session: SparkSession, task: FindTask, names: Sequence[str]) -> DataFrame:
    """The keys under these names, and the index of each."""
    if isinstance(task.keys, pa.Table):
        places = pa.array(np.arange(len(task.keys)), pa.int64())
        table = task.keys.rename_columns(list(names)).append_column(_PLACE, places)
        # ``createDataFrame`` first requests nine settings from the server.
        return ConnectFrame(LocalRelation(table), session)
    target = struct_type(task.target_schema)
    keys = read_files(session, task.keys, target, with_places=True)
    columns = [F.col(quote(field.name)).alias(name) for name, field in zip(names, target.fields, strict=True)]
    return keys.select(*columns, F.col(ROW).alias(_PLACE))


def _file_indexes(names: pa.ChunkedArray, task: FindTask) -> pa.ChunkedArray:
    """The files' names as indexes into the task's."""
    known = pa.array([_file_name(path) for path in task.stored], pa.string())
    numbers = pc.index_in(names, value_set=known)
    if numbers.null_count:
        strange = names.filter(pc.is_null(numbers)).unique().to_pylist()
        raise CorruptData(
            f"Spark read files that it was not asked to read: {', '.join(map(str, strange))}.",
            remedy="Run the call again; nothing of it was written.",
        )
    return numbers


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
