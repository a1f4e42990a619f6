"""A caller's Spark frame as Parquet files: computed once, in the session it belongs to.

The frame is written as it is, and only that happens in the caller's session, classic or Connect.
What the rows are, whether keys repeat or are null, is then asked of the files; a frame that needs
it is written a second time, with one row for each key, below the first.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.window import Window
from pyspark.sql.types import NullType, StructField, StructType

from freezeframe.engine.base import UNIQUE, Landed, LandTask
from freezeframe.engine.configuration import LANDING_CONFIGURATION, WRITE_OPTIONS
from freezeframe.engine.spark_columns import (
    PHYSICAL_NAME,
    any_of,
    comparable,
    quoted,
    undecodable,
    written_fields,
)
from freezeframe.engine.spark_counting import Counting
from freezeframe.engine.spark_files import (
    read_files,
    require_rows,
    write_files,
    write_mode,
    written_names,
)
from freezeframe.engine.spark_keys import duplicate_keys, shown_keys
from freezeframe.engine.valid_text import not_utf8
from freezeframe.errors import BadInput, MissingColumn, NullKeyError


def write_frame(frame: Any, task: LandTask, options: Mapping[str, str] = MappingProxyType({})) -> StructType:
    """Write the frame in its own session, which gets ``options`` for that; the schema of what was written.

    Raises:
        MissingColumn: a key or order column is not in the frame.
        BadInput: two columns have one name, or a type is not one of Parquet's.
    """
    schema = _schema(frame, task)
    held = written_fields(schema)
    if not held:
        raise BadInput("The frame has no column with values to write.", remedy="Pass a frame with columns.")
    renamed = frame.select(*(quoted(field.name) for field in held)).toDF(
        *(_physical(field) for field in held)
    )
    with _configured(frame.sparkSession, {**LANDING_CONFIGURATION, **options}):
        renamed.write.mode(write_mode(task.output)).options(**WRITE_OPTIONS).parquet(task.output)
    return schema


def settle(session: SparkSession, task: LandTask, schema: StructType) -> Landed:
    """Look at the rows that were written, in the engine's session, and leave one for each key.

    Raises:
        NullKeyError, DuplicateKeyError, BadInput: as `TableEngine.land` says.
    """
    files = written_names(session, task.output)
    written = json.loads(schema.json())
    rows = read_files(session, [f"{task.output.rstrip('/')}/{name}" for name in files], schema)
    total, null_keys, repeated, undecodable = _key_counts(rows, task.key, schema)
    if undecodable:
        raise _not_utf8(rows, schema)
    if not task.key:
        return Landed(written, files, total)
    if null_keys and task.null_keys == "error":
        raise NullKeyError(
            f"{null_keys} rows of the frame have a null in the key ({', '.join(task.key)}).",
            remedy="Fill or leave out these rows, or pass null_keys='match' or 'drop'.",
            count=null_keys,
        )
    dropped = null_keys if task.null_keys == "drop" else 0
    if not (repeated or dropped):
        return Landed(written, files, total)
    if dropped:
        rows = rows.where(~_has_null(task.key))
    unique = _unique(rows, task, schema) if repeated else rows
    counting = Counting(unique, rows=F.count(F.lit(1)))
    folder = f"{task.output.rstrip('/')}/{UNIQUE}"
    names = write_files(session, counting.frame(), schema, folder)
    remaining = counting.counts()["rows"]
    require_rows(session, folder, names, remaining)
    return Landed(
        written,
        tuple(f"{UNIQUE}/{name}" for name in names),
        remaining,
        duplicates=total - dropped - remaining,
        null_keys=dropped,
    )


def _schema(frame: Any, task: LandTask) -> StructType:
    given = frame.schema
    absent = [name for name in (*task.key, *task.order_by) if name not in given.names]
    if absent:
        raise MissingColumn(
            f"The frame has no column {', '.join(map(repr, absent))}.",
            cause=f"Its columns are {', '.join(map(repr, given.names))}.",
        )
    repeated = sorted({name for name in given.names if given.names.count(name) > 1})
    if repeated:
        raise BadInput(f"The frame has several columns named {', '.join(map(repr, repeated))}.")
    undecided = [field.name for field in given.fields if isinstance(field.dataType, NullType)]
    if set(undecided) & set(task.key):
        raise NullKeyError(f"Every row of the frame has a null in the key ({', '.join(task.key)}).")
    return StructType([_field(field, task) for field in given.fields])


def _field(field: StructField, task: LandTask) -> StructField:
    physical = task.columns.get(field.name)
    return StructField(field.name, field.dataType, metadata={PHYSICAL_NAME: physical} if physical else None)


def _physical(field: StructField) -> str:
    return str((field.metadata or {}).get(PHYSICAL_NAME, field.name))


@contextlib.contextmanager
def _configured(session: Any, options: Mapping[str, str]) -> Iterator[None]:
    """The session with what a landing needs; it is the caller's, so it gets back what it had."""
    before = {name: session.conf.get(name, None) for name in options}
    for name, value in options.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)


def _has_null(key: Sequence[str]) -> Column:
    return any_of([F.col(quoted(name)).isNull() for name in key])


def _key_counts(rows: DataFrame, key: Sequence[str], schema: StructType) -> tuple[int, int, int, int]:
    """Rows in all, those with a null in their key, keys (nulls match) that repeat, rows with odd text."""
    keys = [F.col(quoted(name)).alias(f"k{index}") for index, name in enumerate(key)]
    generated = [f"k{index}" for index in range(len(key))]
    found = list(_undecodable(schema).values())
    odd = F.coalesce(any_of(found), F.lit(False)) if found else F.lit(False)  # noqa: FBT003 - an SQL literal
    told = rows.select(*keys, odd.alias("odd"))
    counted = [F.count(F.lit(1)).alias("times"), F.count_if(F.col("odd")).alias("odd")]
    groups = told.groupBy(*generated).agg(*counted) if key else told.agg(*counted)
    null_keys = F.sum(F.when(_has_null(generated), F.col("times"))) if key else F.lit(0)
    sums = groups.agg(F.sum("times"), null_keys, F.count_if(F.col("times") > 1), F.sum("odd")).collect()[0]
    total, nulls, repeated, undecodable = (int(value or 0) for value in sums)
    return total, nulls, repeated, undecodable


def _undecodable(schema: StructType) -> dict[str, Column]:
    """For each column that can hold text whether a text in it is not UTF-8."""
    found = {field.name: undecodable(F.col(quoted(field.name)), field.dataType) for field in schema.fields}
    return {name: condition for name, condition in found.items() if condition is not None}


def _not_utf8(rows: DataFrame, schema: StructType) -> BadInput:
    conditions = _undecodable(schema)
    counts = rows.agg(*(F.count_if(condition) for condition in conditions.values())).collect()[0]
    return not_utf8(next(name for name, count in zip(conditions, counts, strict=True) if count), [])


def _unique(rows: DataFrame, task: LandTask, schema: StructType) -> DataFrame:
    """One row for each key: equal rows collapse, of others the last by ``order_by`` stays."""
    generated = [f"k{index}" for index in range(len(task.key))]
    coded = rows.select(
        *(F.col(quoted(name)).alias(f"c{index}") for index, name in enumerate(schema.names)),
        *(F.col(quoted(name)).alias(code) for name, code in zip(task.key, generated, strict=True)),
        *(F.col(quoted(name)).alias(f"b{index}") for index, name in enumerate(task.order_by)),
    )
    if task.order_by:
        latest = [F.col(f"b{index}").desc_nulls_last() for index in range(len(task.order_by))]
        place = F.rank().over(Window.partitionBy(*generated).orderBy(*latest))
        coded = coded.withColumn("place", place).where(F.col("place") == 1)
    _require_agreement(coded, task, schema, generated)
    nth = F.row_number().over(Window.partitionBy(*generated).orderBy(*generated))
    first = coded.withColumn("nth", nth).where(F.col("nth") == 1)
    return first.select(*(F.col(f"c{index}").alias(name) for index, name in enumerate(schema.names)))


def _require_agreement(coded: DataFrame, task: LandTask, schema: StructType, generated: list[str]) -> None:
    row = F.struct(
        *(
            comparable(F.col(f"c{index}"), field.dataType).alias(f"c{index}")
            for index, field in enumerate(schema.fields)
        )
    )
    kinds = F.count_distinct(row) if task.drop_duplicates else F.count(row)
    groups = coded.groupBy(*generated).agg(kinds.alias("kinds"))
    disputed = shown_keys(groups.where(F.col("kinds") > 1), generated)
    if disputed:
        raise duplicate_keys(disputed, task.key)
