"""Numbers of tasks and output files of a merge, by the size of its input."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from freezeframe.engine.configuration.spark_configuration import (
    FILE_BYTES,
    HASHED_BATCH_BYTES,
    SMALL_BYTES,
    cores,
)
from freezeframe.engine.plans.parquet_files import size_of, unpacked_size_of
from freezeframe.engine.protocol.table_engine import MergeTask


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


def layout_of(task: MergeTask) -> Layout:
    """One task for a small merge; else one per output file, and at least one per core."""
    batch = size_of(task.batch)
    stored = size_of(task.stored)
    size = task.size_bytes
    if size is None and batch is not None and stored is not None:
        size = batch + stored
    if size is None:
        # Unknown size: two partitions per core, and a join that can spill.
        return Layout(cores() * 2, is_batch_hashed=False)
    if size <= SMALL_BYTES:
        return Layout(1, is_batch_hashed=False)
    partitions = max(cores(), math.ceil(size / FILE_BYTES))
    share = (size if batch is None else unpacked_size_of(task.batch)) / partitions
    return Layout(partitions, is_batch_hashed=share <= HASHED_BATCH_BYTES)
