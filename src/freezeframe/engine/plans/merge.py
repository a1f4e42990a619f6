"""Merge of a batch into stored rows, as Spark plans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.window import Window
from pyspark.sql.types import StructType

from freezeframe.engine.configuration import (
    FILE_BYTES,
    HASHED_BATCH_BYTES,
    SMALL_BYTES,
    TASK_BYTES_MIN,
)
from freezeframe.engine.plans.columns import any_of, comparable, fit_column, quote, struct_type
from freezeframe.engine.plans.key_search import key_column, repeated_keys
from freezeframe.engine.plans.parquet_files import live_rows, rows_in, size_of, unpacked_size_of, write_files
from freezeframe.engine.plans.write_batch import Counting
from freezeframe.engine.protocol import MergeResult, MergeTask, Positions, Validity
from freezeframe.engine.spark_errors import cause_of
from freezeframe.errors import CorruptData, DuplicateKeyError, InvalidOption, NullKeyError, OutsideWindow

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


_ROWS_SHOWN_MAX = 3
_ROW_LENGTH_MAX = 200
# Spark's error classes for values that a predicate cannot handle.
_VALUE_ERRORS = ("CAST_", "ARITHMETIC_", "DIVIDE_", "NUMERIC_", "INVALID_", "CANNOT_PARSE_", "DATETIME_")


def inside(where: str) -> Column:
    """Return whether the predicate is true for a row: false and null are both no."""
    return F.coalesce(F.expr(where), F.lit(False))  # noqa: FBT003 - an SQL literal


def require_inside(batch: DataFrame, where: str) -> None:
    """Check that the predicate is one, and that every row of the batch is inside the window."""
    try:
        outside = batch.where(~inside(where))
        count = outside.count()
    except AnalysisException as error:
        raise _invalid(where, error, batch) from error
    except PySparkException as error:
        if str(error.getCondition() or "").startswith(_VALUE_ERRORS):
            raise _invalid(where, error, batch) from error
        raise
    if count:
        rows = [row.asDict(recursive=True) for row in outside.limit(_ROWS_SHOWN_MAX).collect()]
        shown = "; ".join(str(row)[:_ROW_LENGTH_MAX] for row in rows)
        raise OutsideWindow(
            f"{count} rows of the batch are outside the window that they replace: {where}.",
            cause=f"The first of them: {shown}.",
            remedy="Leave them out, or widen replace_where.",
            count=count,
        )


def _invalid(where: str, error: Exception, batch: DataFrame) -> InvalidOption:
    return InvalidOption(
        f"replace_where is not a predicate over the columns: {where}",
        cause=cause_of(error),
        remedy=f"The columns are {', '.join(quote(name) for name in batch.columns)}; case matters.",
    )


# A row has the period from ``valid_from`` (included) to ``valid_to`` (not included, null for a row that
# holds now). Rows of the result are carried as an array for each key, because a key that changes has two.

_ROWS = "rows"


@dataclass(frozen=True, slots=True)
class PeriodColumns:
    """Positions of the two period columns in the target, and the times of the merge."""

    validity: Validity
    valid_from: int
    valid_to: int

    @classmethod
    def of(cls, validity: Validity, names: Sequence[str]) -> PeriodColumns:
        """Return the columns of a target with these names."""
        return cls(validity, names.index(validity.valid_from), names.index(validity.valid_to))

    @property
    def is_closed(self) -> Column:
        """Whether a stored row is of the past already."""
        return F.col(f"o{self.valid_to}").isNotNull()

    def versions(self, results: Sequence[Column], *, changed: Column, ended: Column) -> Column:
        """Return the rows that a key leads to: as it was, closed, where it ``changed``; and as it is now.

        ``results`` are the values now, in the target's order; where the key ``ended``, they are the old ones.
        """
        moment = F.timestamp_micros(F.lit(self.validity.moment_us))
        since = F.timestamp_micros(F.lit(self.validity.since_us))
        was_from = F.coalesce(F.col(f"o{self.valid_from}"), since)
        is_new = F.col("stored").isNull() | changed
        now = self._row(results, F.when(is_new, moment).otherwise(was_from), F.when(ended, moment))
        before = self._row([F.col(f"o{index}") for index in range(len(results))], was_from, moment)
        return F.when(changed, F.array(before, now)).otherwise(F.array(now)).alias(_ROWS)

    def _row(self, values: Sequence[Column], valid_from: Column, valid_to: Column) -> Column:
        period = {self.valid_from: valid_from, self.valid_to: valid_to}
        return F.struct(*(period.get(index, value).alias(f"r{index}") for index, value in enumerate(values)))


def add_closed_rows(joined: DataFrame, closed: DataFrame, fate: int, width: int) -> DataFrame:
    """Return the joined rows and the closed ones, which have the ``fate`` and stay as they are."""
    row = F.struct(*(F.col(f"o{index}").alias(f"r{index}") for index in range(width)))
    past = closed.select(
        F.lit(fate).alias("fate"),
        F.lit(None).cast("int").alias("nth"),
        F.lit(None).cast("boolean").alias("has_null_key"),
        F.lit(False).alias("is_live"),  # noqa: FBT003 - an SQL literal
        F.array(row).alias(_ROWS),
    )
    return joined.unionByName(past)


def with_periods(joined: DataFrame, width: int) -> DataFrame:
    """Return each row of each key by itself, under ``r0 … rn``."""
    exploded = joined.select(F.explode(_ROWS).alias("row"))
    return exploded.select(*(F.col("row").getField(f"r{index}").alias(f"r{index}") for index in range(width)))


# Both sides are read into generated names: ``o0 … on`` for stored values, ``n0 … nn`` for those of
# the batch, in the order of the target's columns and already of its types. A merge by key is a full
# outer join in which each row has a fate; the fates are counted on the rows' way into the files.
# Where rows keep their past, a key can lead to two rows, and closed rows go by the join
# (``spark_validity``).

_FATES = ("kept", "inserted", "updated", "unchanged", "deleted", "clashing", "closed")
_KEPT, _INSERTED, _UPDATED, _UNCHANGED, _DELETED, _CLASHING, _CLOSED = range(len(_FATES))
# Columns per key besides its rows.
_DECIDED = ("fate", "nth", "has_null_key", "is_live")


@dataclass(frozen=True, slots=True)
class _Sides:
    """Inputs of a merge: both sides under the target's names and types."""

    task: MergeTask
    target: StructType
    stored: DataFrame
    batch: DataFrame
    given: frozenset[str]
    """Columns that the batch has; the others say nothing about a row."""
    layout: Layout

    @property
    def our_columns(self) -> frozenset[int]:
        """Positions of the system columns, whose values follow from a row's fate."""
        validity = self.task.validity
        ours = {self.task.flag} | ({validity.valid_from, validity.valid_to} if validity else set())
        return frozenset(index for index, name in enumerate(self.target.names) if name in ours)

    @property
    def compares_versions(self) -> bool:
        """Whether the batch has system columns: it is a later version, to be compared with an earlier one."""
        return not self.given.isdisjoint(self.target.names[index] for index in self.our_columns)

    @property
    def leaves_deleted(self) -> bool:
        """Whether a deleted row is retained, closed or flagged."""
        return self.task.validity is not None or self.task.flags_absent


def merge(session: SparkSession, task: MergeTask) -> MergeResult:
    """Run the merge in the session; see `TableEngine.merge`."""
    target = struct_type(task.target_schema)
    batch_schema = struct_type(task.batch_schema)
    # Compared only, so the type need not hold every value of the rows' own.
    tries = not task.write
    sides = _Sides(
        task,
        target,
        _fit_frame(
            live_rows(session, task.stored, struct_type(task.stored_schema), task.deleted),
            task.stored_schema,
            target,
            tries=tries,
        ),
        _fit_frame(
            live_rows(session, task.batch, batch_schema, task.batch_deleted),
            task.batch_types or task.batch_schema,
            target,
            tries=tries,
        ),
        frozenset(batch_schema.names),
        layout_of(session, task),
    )
    if task.where is not None:
        require_inside(sides.batch, task.where)
    return _merge_by_key(session, sides) if task.key else _merge_by_content(session, sides)


def _fit_frame(
    frame: DataFrame, schema: Mapping[str, object], target: StructType, *, tries: bool = False
) -> DataFrame:
    types = {field.name: field.dataType for field in struct_type(schema).fields}
    return frame.select(
        *(
            (
                fit_column(F.col(quote(field.name)), types[field.name], field.dataType, tries=tries)
                if field.name in types
                else F.lit(None).cast(field.dataType)
            ).alias(field.name)
            for field in target.fields
        )
    )


def _encode(sides: _Sides, frame: DataFrame, letter: str, **further: Column) -> DataFrame:
    """Return the frame under generated names, which cannot clash with the stream's names."""
    return frame.select(
        *(F.col(quote(name)).alias(f"{letter}{index}") for index, name in enumerate(sides.target.names)),
        *(column.alias(name) for name, column in further.items()),
    )


def _merge_by_key(session: SparkSession, sides: _Sides) -> MergeResult:
    task, target = sides.task, sides.target
    key = [target.names.index(name) for name in task.key]
    counting = Counting(
        _join_sides(sides, key),
        **{name: F.count_if(F.col("fate") == number) for number, name in enumerate(_FATES)},
        live=F.count_if(F.col("is_live")),
        lost=F.count_if(F.col("is_live") & (F.col("fate") == _DELETED)),
        null_keys=F.count_if(F.col("has_null_key")),
        repeated=F.count_if((F.col("nth") > 1) & ~F.col("has_null_key")),
        repeated_with_nulls=F.count_if((F.col("nth") > 1) & F.col("has_null_key")),
    )
    files: tuple[str, ...] = ()
    if task.write:
        gone = [_CLASHING] if sides.leaves_deleted else [_DELETED, _CLASHING]
        remaining = _rows(sides, counting.frame().where(~F.col("fate").isin(*gone)))
        files = write_files(session, remaining, target, task.output)
    counts = counting.counts() if task.write else counting.query()
    _require_sound(sides, counts)
    _require_all_met(session, sides, counts)
    written = _rows_written(sides, counts)
    return MergeResult(
        counts["inserted"],
        counts["updated"],
        counts["unchanged"],
        counts["deleted"],
        files if written else (),
        written,
        counts["live"],
        counts["lost"],
    )


def _rows(sides: _Sides, joined: DataFrame) -> DataFrame:
    results = with_periods(joined, len(sides.target.names)) if sides.task.validity else joined
    return results.select(*(F.col(f"r{index}").alias(name) for index, name in enumerate(sides.target.names)))


def _rows_written(sides: _Sides, counts: Mapping[str, int]) -> int:
    written = sum(counts[_FATES[fate]] for fate in (_KEPT, _INSERTED, _UPDATED, _UNCHANGED, _CLOSED))
    past = counts["updated"] if sides.task.validity else 0
    return written + past + (counts["deleted"] if sides.leaves_deleted else 0)


def _join_sides(sides: _Sides, key: list[int]) -> DataFrame:
    """Return every key of either side once, with its ``fate`` and the resulting values ``r0 … rn``."""
    task = sides.task
    within = inside(task.where) if task.where is not None else F.lit(True)  # noqa: FBT003 - an SQL literal
    stored = _encode(sides, sides.stored, "o", stored=F.lit(1), within=within)
    batch = _encode(sides, sides.batch, "n", given=F.lit(1))
    if task.validity is None:
        return _match_keys(sides, key, stored, batch).select(*_DECIDED, *_results(sides, key))
    periods = PeriodColumns.of(task.validity, sides.target.names)
    batch = batch.where(F.col(f"n{periods.valid_to}").isNull())
    matched = _match_keys(sides, key, stored.where(~periods.is_closed), batch)
    versions = periods.versions(
        _results(sides, key), changed=F.col("fate") == _UPDATED, ended=F.col("fate") == _DELETED
    )
    rows = add_closed_rows(
        matched.select(*_DECIDED, versions), stored.where(periods.is_closed), _CLOSED, len(sides.target.names)
    )
    return rows.coalesce(1) if sides.layout.partitions == 1 else rows


def _match_keys(sides: _Sides, key: list[int], stored: DataFrame, batch: DataFrame) -> DataFrame:
    """Join both sides of each key in one row, with the key's fate."""
    old_key, new_key = (key_column([f"{letter}{i}" for i in key], sides.task.null_keys) for letter in "on")
    stored = sides.layout.repartition_by_key(stored.withColumn("old_key", old_key), [F.col("old_key")])
    batch = sides.layout.repartition_by_key(batch.withColumn("new_key", new_key), [F.col("new_key")])
    # The join sorts or partitions by the same key, so the check for repeated keys is almost free.
    nth = F.row_number().over(Window.partitionBy("new_key").orderBy("new_key"))
    has_null = any_of([F.col(f"n{index}").isNull() for index in key])
    batch = batch.withColumns({"nth": nth, "has_null_key": has_null})
    joined = stored.join(
        sides.layout.add_join_hint(batch), F.col("old_key") == F.col("new_key"), "full_outer"
    )
    is_live = F.col("stored").isNotNull() & ~_is_flagged(sides)
    return joined.withColumns({"fate": _fate(sides, key), "is_live": is_live})


def _fate(sides: _Sides, key: list[int]) -> Column:
    absent = F.when(_is_flagged(sides), _KEPT).otherwise(_DELETED) if sides.task.flags_absent else None
    alone = {
        "upsert": F.lit(_KEPT),
        "full": F.lit(_DELETED) if absent is None else absent,
        "overwrite": F.lit(_DELETED),
        "replace_where": F.when(F.col("within"), _DELETED).otherwise(_KEPT),
    }[sides.task.mode]
    ended = _is_flagged(sides, "n") & ~_is_flagged(sides)
    return (
        F.when(F.col("stored").isNull(), _INSERTED)
        .when(F.col("given").isNull(), alone)
        .when(~F.col("within"), _CLASHING)
        .when(ended, _DELETED)
        .when(_has_changes(sides, key), _UPDATED)
        .otherwise(_UNCHANGED)
    )


def _is_flagged(sides: _Sides, letter: str = "o") -> Column:
    """Return whether the stored row, or (``n``) that of the batch, is flagged as deleted."""
    if not sides.task.flag:
        return F.lit(False)  # noqa: FBT003 - an SQL literal
    index = sides.target.names.index(sides.task.flag)
    return F.coalesce(F.col(f"{letter}{index}"), F.lit(False))  # noqa: FBT003 - an SQL literal


def _updates_cells(sides: _Sides) -> bool:
    """Return whether rows of the batch update cells of stored rows; else they replace the rows."""
    return sides.task.mode in ("upsert", "full")


def _has_changes(sides: _Sides, key: list[int]) -> Column:
    """Return whether any cell that the batch decides gets another value, null-safe."""
    task, updates = sides.task, _updates_cells(sides)
    # A row that comes back is no longer deleted.
    differences = [_is_flagged(sides) & ~_is_flagged(sides, "n")]
    for index, field in enumerate(sides.target.fields):
        undecided = updates and field.name not in sides.given
        if index in key or index in sides.our_columns or undecided:
            continue
        old, new = F.col(f"o{index}"), F.col(f"n{index}")
        differs = ~comparable(old, field.dataType).eqNullSafe(comparable(new, field.dataType))
        keeps = updates and task.nulls == "keep"
        differences.append(new.isNotNull() & differs if keeps else differs)
    return any_of(differences)


def _results(sides: _Sides, key: list[int]) -> list[Column]:
    task, updates = sides.task, _updates_cells(sides)
    results = []
    for index, name in enumerate(sides.target.names):
        old, new = F.col(f"o{index}"), F.col(f"n{index}")
        if name == task.flag:
            is_absent = F.col("given").isNull()
            result = is_absent if task.flags_absent else is_absent & _is_flagged(sides)
        elif updates and name not in sides.given:
            result = old
        elif updates and index in key:
            # Equal keys may differ in the sign of a zero: an unchanged row keeps its own.
            result = F.when(F.col("fate") == _UNCHANGED, old).otherwise(F.coalesce(new, old))
        elif index in key or (updates and task.nulls == "keep"):
            result = F.coalesce(new, old)
        else:
            result = F.when(F.col("given").isNotNull(), new).otherwise(old)
        results.append(result.alias(f"r{index}"))
    return results


def _require_sound(sides: _Sides, counts: Mapping[str, int]) -> None:
    """Validate the input by its counts; an error forbids the use of the merge's files."""
    task, key = sides.task, ", ".join(sides.task.key)
    if task.null_keys == "error" and counts["null_keys"]:
        raise NullKeyError(
            f"{counts['null_keys']} rows of the batch have a null in the key ({key}).",
            remedy="Fill or leave out these rows, or pass null_keys='match' or null_keys='drop'.",
            count=counts["null_keys"],
        )
    if counts["repeated"] or (task.null_keys == "match" and counts["repeated_with_nulls"]):
        raise repeated_keys(sides.batch, task.key)
    if counts["clashing"]:
        raise DuplicateKeyError(
            f"{counts['clashing']} keys ({key}) of the batch are stored outside the window {task.where}.",
            cause="Writing them would give the stream two rows with the same key.",
            remedy="Widen replace_where, or use an upsert.",
            count=counts["clashing"],
        )


def _require_all_met(session: SparkSession, sides: _Sides, counts: Mapping[str, int]) -> None:
    """Check by the files' own counts that the join returned every row of both sides exactly once."""
    task = sides.task
    met = counts["updated"] + counts["unchanged"]
    stored = counts["kept"] + counts["deleted"] + counts["closed"] + met
    batch = counts["inserted"] + met
    rows_stored = _live_rows_in(session, task.stored, task.deleted)
    # Of a version, rows of the past and rows that are flagged are met and not counted.
    rows_batch = batch if sides.compares_versions else _live_rows_in(session, task.batch, task.batch_deleted)
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
    if not task.write:
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
