"""Numbers of tasks and output files of a merge, by the size of its input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.configuration.spark_configuration import (
    FILE_BYTES,
    HASHED_BATCH_BYTES,
    SMALL_BYTES,
    TASK_BYTES_MIN,
)
from freezeframe.engine.plans.parquet_files import size_of, unpacked_size_of
from freezeframe.engine.protocol.table_engine import MergeTask

# More rows than any cluster has cores, so that every part of the range has one.
_RANGE = 1 << 16
_at_once: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Layout:
    """Number of partitions, and whether a partition's share of the batch fits in memory."""

    partitions: int
    is_batch_hashed: bool

    def repartition_by_key(self, frame: DataFrame, key: list[Column]) -> DataFrame:
        """Partition the rows by key; one partition needs no shuffle."""
        return frame.coalesce(1) if self.partitions == 1 else frame.repartition(self.partitions, *key)

    def add_join_hint(self, batch: DataFrame) -> DataFrame:
        """The batch with the join hint for its size."""
        return batch.hint("shuffle_hash") if self.is_batch_hashed else batch


def layout_of(session: SparkSession, task: MergeTask) -> Layout:
    """The layout of a merge in the session; see ``choose_layout``."""
    batch, stored = size_of(task.batch), size_of(task.stored)
    size = task.size_bytes
    if size is None and batch is not None and stored is not None:
        size = batch + stored
    if size is None:
        # Unknown size: two partitions per core, and a join that can spill.
        return Layout(tasks_at_once(session) * 2, is_batch_hashed=False)
    if size <= SMALL_BYTES:
        return Layout(1, is_batch_hashed=False)
    unpacked = None if batch is None else unpacked_size_of(task.batch)
    return choose_layout(size, unpacked, tasks_at_once(session))


def choose_layout(size: int, unpacked_batch: int | None, at_once: int) -> Layout:
    """One task per output file; of a smaller merge so many that all cores have work, if it is worth a task.

    ``size`` are the bytes of all input files, ``unpacked_batch`` those of the batch's rows (None: unknown),
    ``at_once`` the tasks that Spark runs at once.
    """
    partitions = max(math.ceil(size / FILE_BYTES), min(at_once, math.ceil(size / TASK_BYTES_MIN)))
    is_hashed = unpacked_batch is not None and unpacked_batch / partitions <= HASHED_BATCH_BYTES
    return Layout(partitions, is_batch_hashed=is_hashed)


def tasks_at_once(session: SparkSession) -> int:
    """The number of tasks that the session's Spark runs at once, wherever it is; Spark is asked once.

    It splits a range into as many parts, unless it is told into how many.
    """
    if session not in _at_once:
        parts = session.range(_RANGE).select(F.spark_partition_id().alias("part"))
        _at_once[session] = int(parts.agg(F.max("part")).collect()[0][0]) + 1
    return _at_once[session]
