"""One update of one stream as a Spark plan: join, decide each row's fate, write and count in one job.

Both sides are read into generated names: ``o0 … on`` for stored values, ``n0 … nn`` for those of
the batch, in the order of the target's columns and already of its types. A merge by key is a full
outer join in which each row has a fate; the fates are counted on the rows' way into the files.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.window import Window
from pyspark.sql.types import StructType

from freezeframe.engine.base import MergeResult, MergeTask
from freezeframe.engine.spark_columns import comparable, fitted, quoted, struct_type
from freezeframe.engine.spark_counting import Counting
from freezeframe.engine.spark_files import (
    read_files,
    require_rows,
    rows_in,
    write_files,
)
from freezeframe.engine.spark_keys import key_column, repeated_keys
from freezeframe.engine.spark_layout import Layout, layout_of
from freezeframe.engine.spark_window import inside, require_inside
from freezeframe.errors import CorruptData, DuplicateKeyError, NullKeyError

_FATES = ("kept", "inserted", "updated", "unchanged", "deleted", "clashing")
_KEPT, _INSERTED, _UPDATED, _UNCHANGED, _DELETED, _CLASHING = range(len(_FATES))


@dataclass(frozen=True, slots=True)
class _Sides:
    """What a merge starts from: both sides under the target's names and types."""

    task: MergeTask
    target: StructType
    stored: DataFrame
    batch: DataFrame
    given: frozenset[str]
    """Columns that the batch has; the others say nothing about a row."""
    layout: Layout


def merge(session: SparkSession, task: MergeTask) -> MergeResult:
    """Carry out the task in the session; `TableEngine.merge` says what is promised."""
    target = struct_type(task.target_schema)
    batch_schema = struct_type(task.batch_schema)
    sides = _Sides(
        task,
        target,
        _fitted(
            read_files(session, task.stored, struct_type(task.stored_schema)), task.stored_schema, target
        ),
        _fitted(read_files(session, task.batch, batch_schema), task.batch_schema, target),
        frozenset(batch_schema.names),
        layout_of(task),
    )
    if task.where is not None:
        require_inside(sides.batch, task.where)
    return _merge_by_key(session, sides) if task.key else _merge_by_content(session, sides)


def _fitted(frame: DataFrame, schema: Mapping[str, object], target: StructType) -> DataFrame:
    types = {field.name: field.dataType for field in struct_type(schema).fields}
    return frame.select(
        *(
            (
                fitted(F.col(quoted(field.name)), types[field.name], field.dataType)
                if field.name in types
                else F.lit(None).cast(field.dataType)
            ).alias(field.name)
            for field in target.fields
        )
    )


def _coded(sides: _Sides, frame: DataFrame, letter: str, **further: Column) -> DataFrame:
    """The frame under generated names, so that no name of a stream's can meet one of ours."""
    return frame.select(
        *(F.col(quoted(name)).alias(f"{letter}{index}") for index, name in enumerate(sides.target.names)),
        *(column.alias(name) for name, column in further.items()),
    )


def _merge_by_key(session: SparkSession, sides: _Sides) -> MergeResult:
    task, target = sides.task, sides.target
    key = [target.names.index(name) for name in task.key]
    counting = Counting(
        _joined(sides, key),
        **{name: F.count_if(F.col("fate") == number) for number, name in enumerate(_FATES)},
        null_keys=F.count_if(F.col("has_null_key")),
        repeated=F.count_if((F.col("nth") > 1) & ~F.col("has_null_key")),
        repeated_with_nulls=F.count_if((F.col("nth") > 1) & F.col("has_null_key")),
    )
    files: tuple[str, ...] = ()
    if task.write:
        remaining = counting.frame().where(~F.col("fate").isin(_DELETED, _CLASHING))
        rows = remaining.select(*(F.col(f"r{index}").alias(name) for index, name in enumerate(target.names)))
        files = write_files(session, rows, target, task.output)
    counts = counting.counts() if task.write else counting.asked()
    _require_sound(sides, counts)
    _require_all_met(session, sides, counts)
    written = sum(counts[_FATES[fate]] for fate in (_KEPT, _INSERTED, _UPDATED, _UNCHANGED))
    if task.write:
        require_rows(session, task.output, files, written)
    return MergeResult(
        counts["inserted"],
        counts["updated"],
        counts["unchanged"],
        counts["deleted"],
        files if written else (),
        written,
    )


def _joined(sides: _Sides, key: list[int]) -> DataFrame:
    """Every key of either side once, with its ``fate`` and the resulting values ``r0 … rn``."""
    task = sides.task
    within = inside(task.where) if task.where is not None else F.lit(True)  # noqa: FBT003 - an SQL literal
    stored = _coded(sides, sides.stored, "o", stored=F.lit(1), within=within)
    batch = _coded(sides, sides.batch, "n", given=F.lit(1))
    old_key, new_key = (key_column([f"{letter}{i}" for i in key], task.null_keys) for letter in "on")
    stored = sides.layout.keyed(stored.withColumn("old_key", old_key), [F.col("old_key")])
    batch = sides.layout.keyed(batch.withColumn("new_key", new_key), [F.col("new_key")])
    # The join sorts or splits by the same key, so looking for repeated keys costs next to nothing.
    nth = F.row_number().over(Window.partitionBy("new_key").orderBy("new_key"))
    has_null = functools.reduce(operator.or_, (F.col(f"n{index}").isNull() for index in key))
    batch = batch.withColumns({"nth": nth, "has_null_key": has_null})
    joined = stored.join(sides.layout.hinted(batch), F.col("old_key") == F.col("new_key"), "full_outer")
    return joined.select(_fate(sides, key).alias("fate"), "nth", "has_null_key", *_results(sides, key))


def _fate(sides: _Sides, key: list[int]) -> Column:
    alone = {
        "upsert": F.lit(_KEPT),
        "overwrite": F.lit(_DELETED),
        "replace_where": F.when(F.col("within"), _DELETED).otherwise(_KEPT),
    }[sides.task.mode]
    return (
        F.when(F.col("stored").isNull(), _INSERTED)
        .when(F.col("given").isNull(), alone)
        .when(~F.col("within"), _CLASHING)
        .when(_changed(sides, key), _UPDATED)
        .otherwise(_UNCHANGED)
    )


def _changed(sides: _Sides, key: list[int]) -> Column:
    """Whether any cell gets another value, null-safe; a cell that the batch does not decide does not."""
    task = sides.task
    differences = [F.lit(False)]  # noqa: FBT003 - an SQL literal
    for index, field in enumerate(sides.target.fields):
        if index in key or (task.mode == "upsert" and field.name not in sides.given):
            continue
        old, new = F.col(f"o{index}"), F.col(f"n{index}")
        differs = ~comparable(old, field.dataType).eqNullSafe(comparable(new, field.dataType))
        keeps = task.mode == "upsert" and task.nulls == "keep"
        differences.append(new.isNotNull() & differs if keeps else differs)
    return functools.reduce(operator.or_, differences)


def _results(sides: _Sides, key: list[int]) -> list[Column]:
    task = sides.task
    results = []
    for index, name in enumerate(sides.target.names):
        old, new = F.col(f"o{index}"), F.col(f"n{index}")
        if task.mode == "upsert" and name not in sides.given:
            result = old
        elif index in key or (task.mode == "upsert" and task.nulls == "keep"):
            result = F.coalesce(new, old)
        else:
            result = F.when(F.col("given").isNotNull(), new).otherwise(old)
        results.append(result.alias(f"r{index}"))
    return results


def _require_sound(sides: _Sides, counts: Mapping[str, int]) -> None:
    """Check what the counts say of the input; nothing of this merge may be used if they say it is wrong."""
    task, key = sides.task, ", ".join(sides.task.key)
    if task.null_keys == "error" and counts["null_keys"]:
        raise NullKeyError(
            f"{counts['null_keys']} rows of the batch have a null in the key ({key}).",
            remedy="Fill or leave out these rows, or pass null_keys='match' or 'drop'.",
            count=counts["null_keys"],
        )
    if counts["repeated"] or (task.null_keys == "match" and counts["repeated_with_nulls"]):
        raise repeated_keys(sides.batch, task.key)
    if counts["clashing"]:
        raise DuplicateKeyError(
            f"{counts['clashing']} keys ({key}) of the batch are stored outside the window {task.where}.",
            cause="To write them would give the stream two rows of one key.",
            remedy="Widen replace_where, or use an upsert.",
            count=counts["clashing"],
        )


def _require_all_met(session: SparkSession, sides: _Sides, counts: Mapping[str, int]) -> None:
    """Check that every row of both sides came out of the join exactly once, by the files' own counts."""
    task = sides.task
    met = counts["updated"] + counts["unchanged"]
    stored = counts["kept"] + counts["deleted"] + met
    batch = counts["inserted"] + met
    rows_stored, rows_batch = rows_in(session, task.stored), rows_in(session, task.batch)
    if (stored, batch) != (rows_stored, rows_batch):
        raise CorruptData(
            f"The stored rows hold a key ({', '.join(task.key)}) more than once.",
            cause=f"{rows_stored} stored rows and {rows_batch} new ones joined as {stored} and {batch}.",
            remedy="Replace the stream's content with override=True.",
        )


def _merge_by_content(session: SparkSession, sides: _Sides) -> MergeResult:
    """Replace rows that have no key; what stays the same is told by the rows as a multiset."""
    task = sides.task
    replaced, content = sides.stored, sides.batch
    if task.where is not None:
        replaced = sides.stored.where(inside(task.where))
        content = sides.stored.where(~inside(task.where)).unionByName(sides.batch)
    inserted, deleted, unchanged = _multiset_difference(sides, replaced, sides.batch)
    if not task.write:
        return MergeResult(inserted, 0, unchanged, deleted)
    counting = Counting(content.coalesce(sides.layout.partitions), rows=F.count(F.lit(1)))
    files = write_files(session, counting.frame(), sides.target, task.output)
    rows = counting.counts()["rows"]
    require_rows(session, task.output, files, rows)
    return MergeResult(inserted, 0, unchanged, deleted, files if rows else (), rows)


def _multiset_difference(sides: _Sides, old: DataFrame, new: DataFrame) -> tuple[int, int, int]:
    """How many rows are only in ``new``, only in ``old`` and in both, repetitions counted."""
    values = [
        comparable(F.col(quoted(field.name)), field.dataType).alias(f"v{index}")
        for index, field in enumerate(sides.target.fields)
    ]
    names = [f"v{index}" for index in range(len(values))]
    rows = old.select(*values, F.lit(1).alias("old"), F.lit(0).alias("new")).union(
        new.select(*values, F.lit(0).alias("old"), F.lit(1).alias("new"))
    )
    alike = sides.layout.keyed(rows, [F.col(name) for name in names]).groupBy(*names)
    counts = alike.agg(F.sum("old").alias("old"), F.sum("new").alias("new"))
    sums = counts.agg(
        F.sum(F.greatest(F.col("new") - F.col("old"), F.lit(0))),
        F.sum(F.greatest(F.col("old") - F.col("new"), F.lit(0))),
        F.sum(F.least("old", "new")),
    ).collect()[0]
    inserted, deleted, unchanged = (int(value or 0) for value in sums)
    return inserted, deleted, unchanged
