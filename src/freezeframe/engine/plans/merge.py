"""Two contents compared, and a window without a key replaced, as Spark plans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from freezeframe.engine.configuration import (
    FILE_BYTES,
    HASHED_BATCH_BYTES,
    SMALL_BYTES,
    TASK_BYTES_MIN,
)
from freezeframe.engine.plans.columns import any_of, comparable, quote, struct_type
from freezeframe.engine.plans.key_search import key_column
from freezeframe.engine.plans.parquet_files import (
    live_rows,
    read_files,
    rows_in,
    size_of,
    unpacked_size_of,
    write_files,
)
from freezeframe.engine.plans.window import fit_frame, inside, require_inside
from freezeframe.engine.plans.write_batch import Counting
from freezeframe.engine.protocol import MergeResult, MergeTask, Positions
from freezeframe.errors import CorruptData

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
        """Return the batch with the join hint for its size."""
        return batch.hint("shuffle_hash") if self.is_batch_hashed else batch


def layout_of(session: SparkSession, task: MergeTask) -> Layout:
    """Return the layout of a merge in the session; see ``choose_layout``."""
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
    """Choose one task per output file, and for smaller merges enough to use all cores where it pays.

    ``size`` are the bytes of all input files, ``unpacked_batch`` those of the batch's rows (None: unknown),
    ``at_once`` the tasks that Spark runs at once.
    """
    partitions = max(math.ceil(size / FILE_BYTES), min(at_once, math.ceil(size / TASK_BYTES_MIN)))
    is_hashed = unpacked_batch is not None and unpacked_batch / partitions <= HASHED_BATCH_BYTES
    return Layout(partitions, is_batch_hashed=is_hashed)


def tasks_at_once(session: SparkSession) -> int:
    """Return the number of tasks that the session's Spark runs at once, wherever it is; Spark is asked once.

    It splits a range into as many parts, unless their number is given.
    """
    if session not in _at_once:
        parts = session.range(_RANGE).select(F.spark_partition_id().alias("part"))
        _at_once[session] = int(parts.agg(F.max("part")).collect()[0][0]) + 1
    return _at_once[session]


# Both sides are read into generated names: ``o0 … on`` for stored values, ``n0 … nn`` for those of
# the batch, in the order of the target's columns and already of its types. A comparison by key is a full
# outer join in which each key has a fate.

_FATES = _INSERTED, _UPDATED, _UNCHANGED, _DELETED = "inserted", "updated", "unchanged", "deleted"


@dataclass(frozen=True, slots=True)
class _Sides:
    """Inputs of a merge: both sides under the target's names and types."""

    task: MergeTask
    target: StructType
    stored: DataFrame
    batch: DataFrame
    layout: Layout


def merge(session: SparkSession, task: MergeTask) -> MergeResult:
    """Run the merge in the session; see `TableEngine.merge`."""
    target = struct_type(task.target_schema)
    tries = not task.output  # compared only, so the type need not hold every value of the rows' own
    stored = live_rows(session, task.stored, struct_type(task.stored_schema), task.deleted)
    batch = read_files(session, task.batch, struct_type(task.batch_schema))
    sides = _Sides(
        task,
        target,
        fit_frame(stored, task.stored_schema, target, tries=tries),
        fit_frame(batch, task.batch_types or task.batch_schema, target, tries=tries),
        layout_of(session, task),
    )
    if task.where is not None:
        require_inside(sides.batch, task.where)
    return _compare_by_key(session, sides) if task.key else _merge_by_content(session, sides)


def _compare_by_key(session: SparkSession, sides: _Sides) -> MergeResult:
    task, names = sides.task, sides.target.names
    key = [names.index(name) for name in task.key]
    stored = _encode(sides, sides.stored, "o", stored=F.lit(1))
    batch = _encode(sides, sides.batch, "n", given=F.lit(1))
    if task.period:  # rows of the past take no part
        stored = stored.where(F.col(f"o{names.index(task.period[1])}").isNull())
    old_key, new_key = (key_column([f"{letter}{i}" for i in key], task.null_keys) for letter in "on")
    stored = sides.layout.repartition_by_key(stored.withColumn("old_key", old_key), [F.col("old_key")])
    batch = sides.layout.repartition_by_key(batch.withColumn("new_key", new_key), [F.col("new_key")])
    joined = stored.join(
        sides.layout.add_join_hint(batch), F.col("old_key") == F.col("new_key"), "full_outer"
    ).select(_fate(sides, key).alias("fate"))
    inserted, updated, unchanged, deleted = joined.agg(
        *(F.count_if(F.col("fate") == name) for name in _FATES)
    ).collect()[0]
    met = updated + unchanged
    _require_all_met(session, sides, deleted + met, inserted + met)
    return MergeResult(inserted, updated, unchanged, deleted)


def _encode(sides: _Sides, frame: DataFrame, letter: str, **further: Column) -> DataFrame:
    """Return the frame under generated names, which cannot clash with the stream's names."""
    return frame.select(
        *(F.col(quote(name)).alias(f"{letter}{index}") for index, name in enumerate(sides.target.names)),
        *(column.alias(name) for name, column in further.items()),
    )


def _fate(sides: _Sides, key: list[int]) -> Column:
    differences = [F.lit(False)]  # noqa: FBT003 - an SQL literal
    for index, field in enumerate(sides.target.fields):
        if index not in key and field.name not in sides.task.period:
            old, new = (comparable(F.col(f"{letter}{index}"), field.dataType) for letter in "on")
            differences.append(~old.eqNullSafe(new))
    return (
        F.when(F.col("stored").isNull(), _INSERTED)
        .when(F.col("given").isNull(), _DELETED)
        .when(any_of(differences), _UPDATED)
        .otherwise(_UNCHANGED)
    )


def _require_all_met(session: SparkSession, sides: _Sides, stored: int, batch: int) -> None:
    """Check by the files' own counts that the join returned every row of both sides exactly once."""
    task = sides.task
    # Of a history, rows of the past are not met.
    rows_stored = stored if task.period else _live_rows_in(session, task.stored, task.deleted)
    rows_batch = rows_in(session, task.batch)
    if (stored, batch) != (rows_stored, rows_batch):
        raise CorruptData(
            f"The stored rows hold a key ({', '.join(task.key)}) more than once.",
            cause=f"{rows_stored} stored rows and {rows_batch} new ones joined as {stored} and {batch}.",
            remedy="Replace the stream's content with override=True.",
        )


def _merge_by_content(session: SparkSession, sides: _Sides) -> MergeResult:
    """Replace rows without a key; unchanged rows are counted as a multiset intersection."""
    task = sides.task
    replaced, content = sides.stored, sides.batch
    if task.where is not None:
        replaced = sides.stored.where(inside(task.where))
        content = sides.stored.where(~inside(task.where)).unionByName(sides.batch)
    inserted, deleted, unchanged = _multiset_difference(sides, replaced, sides.batch)
    if not task.output:
        return MergeResult(inserted, 0, unchanged, deleted)
    counting = Counting(content.coalesce(sides.layout.partitions), rows=F.count(F.lit(1)))
    files = write_files(session, counting.frame(), sides.target, task.output)
    rows = counting.counts()["rows"]
    return MergeResult(inserted, 0, unchanged, deleted, files if rows else (), rows)


def _multiset_difference(sides: _Sides, old: DataFrame, new: DataFrame) -> tuple[int, int, int]:
    """Return number of rows only in ``new``, only in ``old`` and in both, as multisets."""
    values = [
        comparable(F.col(quote(field.name)), field.dataType).alias(f"v{index}")
        for index, field in enumerate(sides.target.fields)
    ]
    names = [f"v{index}" for index in range(len(values))]
    rows = old.select(*values, F.lit(1).alias("old"), F.lit(0).alias("new")).union(
        new.select(*values, F.lit(0).alias("old"), F.lit(1).alias("new"))
    )
    alike = sides.layout.repartition_by_key(rows, [F.col(name) for name in names]).groupBy(*names)
    counts = alike.agg(F.sum("old").alias("old"), F.sum("new").alias("new"))
    sums = counts.agg(
        F.sum(F.greatest(F.col("new") - F.col("old"), F.lit(0))),
        F.sum(F.greatest(F.col("old") - F.col("new"), F.lit(0))),
        F.sum(F.least("old", "new")),
    ).collect()[0]
    inserted, deleted, unchanged = (int(value or 0) for value in sums)
    return inserted, deleted, unchanged


def _live_rows_in(session: SparkSession, files: Sequence[str], deleted: Mapping[str, Positions]) -> int:
    return rows_in(session, files) - sum(map(len, deleted.values()))
