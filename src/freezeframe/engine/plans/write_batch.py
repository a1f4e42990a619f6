"""A Spark frame as the batch of an update: few rows by one request, more as Parquet files."""

from __future__ import annotations

import contextlib
import inspect
import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import Window as ClassicWindow
from pyspark.sql.connect import proto
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.observation import Observation as ConnectObservation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.window import Window
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructField, StructType

from freezeframe.engine.configuration import LANDING_CONFIGURATION, WRITE_OPTIONS
from freezeframe.engine.frames.arrow_columns import not_utf8, with_offsets
from freezeframe.engine.frames.batch import bounded_rows, require_key_columns, require_order_columns
from freezeframe.engine.plans.columns import (
    PHYSICAL_NAME,
    F,
    any_of,
    comparable,
    functions_of,
    layout_settings,
    nullable_type,
    quote,
    require_kept_types,
    to_file,
    undecodable,
    written_fields,
)
from freezeframe.engine.plans.parquet_files import (
    NO_OPTIONS,
    local_folder,
    read_files,
    require_rows,
    write_files,
    write_mode,
    written_names,
)
from freezeframe.engine.protocol import UNIQUE, WriteTask, WrittenBatch, require_found
from freezeframe.errors import BadInput, DuplicateKeyError, EngineUnavailable, NullKeyError


def set_configs(client: SparkConnectClient, options: Mapping[str, str]) -> None:
    """Set all options for the client's session; Spark's errors pass through."""
    pairs = [proto.KeyValue(key=name, value=value) for name, value in options.items()]
    client.config(proto.ConfigRequest.Operation(set=proto.ConfigRequest.Set(pairs=pairs)))


ROWS_MAX = 20_000
BYTES_MAX = 16 * 1024 * 1024

_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# PySpark 4.2 asks for the time zone that 4.1 takes by itself.
_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)
_TOO_LARGE = "freezeframe writes this frame to files: it is too large for one request."
# ``monotonically_increasing_id`` holds the position of a row in its partition in these bits.
_POSITION = 2**33 - 1
_VALUE_BYTES = 8
_KEYS_SHOWN_MAX = 10


def collect_small(frame: Any, schema: StructType) -> pa.Table | None:
    """Return all rows of a small Spark Connect frame; None for a classic or a larger one."""
    if not isinstance(frame, ConnectFrame):
        return None
    with _interpreting(frame.sparkSession):
        try:
            return _collect_rows(_limited(frame, schema))
        except PySparkException as error:
            if _TOO_LARGE not in str(error):
                raise
            return None


def _limited(frame: ConnectFrame, schema: StructType) -> Any:
    """Return the frame, failing with ``_TOO_LARGE`` as soon as a task has read more than the limits allow.

    A task cannot sum the bytes of the rows before: each row may take its share of ``BYTES_MAX``, as if all
    rows so far had its size. What a partition may return is bounded by that, and rows of about one size are
    taken up to ``BYTES_MAX``.
    """
    names = [f"c{index}" for index in range(len(schema))]  # ``coded.columns`` would be a request
    coded = frame.toDF(*names)
    texts = [
        F.col(name) if isinstance(field.dataType, StringType) else F.col(name).cast("string")
        for name, field in zip(names, schema.fields, strict=True)
        if isinstance(field.dataType, StringType | BinaryType | ArrayType | MapType | StructType)
    ]
    size = F.octet_length(F.concat_ws("", *texts)) if texts else F.lit(0)
    rows = F.monotonically_increasing_id().bitwiseAND(F.lit(_POSITION)) + 1
    bytes_so_far = rows * (size + _VALUE_BYTES * len(schema))
    is_large = (rows > ROWS_MAX) | (bytes_so_far > BYTES_MAX)
    return coded.where(F.when(is_large, F.raise_error(_TOO_LARGE).cast("boolean")).otherwise(F.lit(True)))  # noqa: FBT003 - an SQL literal


def rows_to_write(rows: pa.Table, task: WriteTask, schema: StructType) -> pa.Table | None:
    """Return the rows cast to ``schema``; None if they are not plain."""
    target = to_arrow_schema(schema, **_IN_UTC)
    try:
        table = rows.rename_columns(target.names).cast(target)
    except pa.ArrowException:
        return None
    return table if _are_plain(table, task) else None


def read_back(task: WriteTask, rows: int) -> tuple[tuple[str, ...], pa.Table] | None:
    """Return names and rows of the files that Spark wrote for the task, which are ``rows`` in all.

    None if the folder is not of this machine, if the rows are not all here, take more than
    ``task.read_bytes_max``, or are not plain: then Spark is asked about them.
    """
    folder = local_folder(task.output)
    paths = [] if folder is None else sorted(folder.glob("*.parquet"))
    if not paths or sum(path.stat().st_size for path in paths) > task.read_bytes_max:
        return None
    try:
        table = bounded_rows((pq.ParquetFile(path, pre_buffer=False) for path in paths), task.read_bytes_max)
    except (pa.ArrowException, OSError):
        return None
    if table is None or len(table) != rows or not _are_plain(table, task):
        return None
    return tuple(path.name for path in paths), table


def _are_plain(table: pa.Table, task: WriteTask) -> bool:
    """Return whether all text is UTF-8, and no key repeats, is null, or is a floating-point number."""
    try:
        table.validate(full=True)
    except pa.ArrowException:
        return False
    return _has_plain_keys(table, task)


class _Interpretation:
    """Has Spark interpret a session's queries: to compile one takes longer than to run it on few rows.

    Each job compiled its queries anew, since Spark keeps compiled ones by session (decision 0031). Threads of
    a script share the session: the first one changes its settings, and the last one restores them.
    """

    def __init__(self, client: SparkConnectClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._threads = 0
        self._before: dict[str, str] = {}

    def __enter__(self) -> None:
        with self._lock:
            if not self._threads:
                values = self._client.get_configs(*_INTERPRETED)
                self._before = dict(zip(_INTERPRETED, map(str, values), strict=True))
                set_configs(self._client, _INTERPRETED)
            self._threads += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._threads -= 1
            if not self._threads:
                set_configs(self._client, self._before)


_interpretations: WeakKeyDictionary[SparkSession, _Interpretation] = WeakKeyDictionary()
_making = threading.Lock()


def _interpreting(session: SparkSession) -> _Interpretation:
    with _making:
        return _interpretations.setdefault(session, _Interpretation(session.client))


def _collect_rows(frame: Any) -> pa.Table | None:
    """Return all rows; None once those of all tasks exceed a limit."""
    client = frame.sparkSession.client
    answers: Any = client.to_table_as_iterator(frame._plan.to_proto(client), {})  # noqa: SLF001
    parts, rows, size = [], 0, 0
    with contextlib.closing(answers):
        for answer in answers:
            if isinstance(answer, pa.Table):
                part = with_offsets(answer)
                parts.append(part)
                rows += len(part)
                size += part.nbytes
                if rows > ROWS_MAX or size > BYTES_MAX:
                    return None
    return pa.concat_tables(parts) if parts else None


def _has_plain_keys(table: pa.Table, task: WriteTask) -> bool:
    """Return whether no key is null or repeats, by equality that every engine agrees on."""
    if not len(table):
        return True
    if not set(task.key) <= set(table.column_names):  # files lack a key's column that has no type
        return False
    keys = table.select(list(task.key))
    if any(column.null_count or pa.types.is_floating(column.type) for column in keys.columns):
        return False
    try:
        return not task.key or len(keys.group_by(list(task.key)).aggregate([])) == len(table)
    except pa.ArrowNotImplementedError:
        return False


# Spark reports counts that it observes while it writes through a listener, and its Connect server waits 100
# ms for it. A busy server responds without them (SPARK-54279), and so does a plan with an empty counted part
# (SPARK-54620). A query then counts the same rows: its input is immutable files, so the result is the same.


class Counting:
    """Named counts over a frame, classic or Connect: write ``frame()``, then ask for ``counts()``."""

    def __init__(self, frame: DataFrame, **counts: Column) -> None:
        functions = functions_of(frame)
        self._rows = frame
        self._columns = [
            functions.coalesce(column, functions.lit(0)).alias(name) for name, column in counts.items()
        ]
        self._names = frozenset(counts)
        self._observation: Any = ConnectObservation() if isinstance(frame, ConnectFrame) else Observation()

    @classmethod
    def of_rows(cls, frame: DataFrame) -> Counting:
        """Return the number of rows, under the name ``rows``."""
        functions = functions_of(frame)
        return cls(frame, rows=functions.count(functions.lit(1)))

    def frame(self) -> DataFrame:
        """Return the frame to write, once, with the counts observed."""
        return self._rows.observe(self._observation, *self._columns)

    def read_metrics(self) -> Mapping[str, int] | None:
        """Return the counts after the frame was written; None if Spark did not report them."""
        metrics = self._observation.get
        if self._names - metrics.keys() or None in metrics.values():
            return None
        return {name: int(value) for name, value in metrics.items()}

    def counts(self) -> Mapping[str, int]:
        """Return the counts after the frame was written; query them if Spark did not report them."""
        return self.read_metrics() or self.query()

    def query(self) -> Mapping[str, int]:
        """Return the counts by a separate query, for a frame that is not written."""
        row = self._rows.agg(*self._columns).collect()[0]
        return {name: int(row[name]) for name in self._names}


# Only the unchanged frame is written in the caller's session, classic or Connect: Spark counts the rows
# during the write, and no setting changes. Queries over the files then check for completeness and for
# repeated or null keys. A frame that needs it (repeated keys, a session that
# writes timestamps as INT96) is written a second time, in the engine's session, below the first.


@dataclass(frozen=True, slots=True)
class Written:
    """Schema and row count of a frame's files, reported by the session that wrote them."""

    schema: StructType
    rows: int
    is_counted: bool
    """Whether the rows were counted on their way; else the frame was computed again for it."""
    is_as_stored: bool
    """Whether the files have the layout of stored ones; else they are written again in our session."""


def write_frame(
    frame: Any, task: WriteTask, schema: StructType, options: Mapping[str, str] = NO_OPTIONS
) -> Written:
    """Write the frame in its own session, whose settings stay as they are.

    ``schema`` is what ``batch_schema`` gave, with a column that has a type; ``options`` are for this write
    alone: what the session has to know to write there.
    """
    held, functions = written_fields(schema), functions_of(frame)
    columns = [to_file(functions.col(quote(field.name)), field, functions) for field in held]
    renamed = frame.select(*columns).toDF(*(_physical(field) for field in held))
    session, names = frame.sparkSession, layout_settings(held)
    is_as_stored = _has_our_settings(session, names)
    counting = Counting.of_rows(renamed)
    writer = counting.frame().write.mode(write_mode(task.output))
    writer.options(**WRITE_OPTIONS, **options).parquet(task.output)
    counts = counting.read_metrics()
    # Read again: the session is the caller's, whose threads may have changed it meanwhile.
    is_as_stored = is_as_stored and _has_our_settings(session, names)
    rows = (counts or counting.query())["rows"]
    return Written(schema, rows, counts is not None, is_as_stored)


def settle(session: SparkSession, task: WriteTask, frame: Written) -> WrittenBatch:
    """Validate the rows that were written, in the engine's session, and keep one for each key."""
    schema, files = frame.schema, written_names(session, task.output)
    paths = [f"{task.output.rstrip('/')}/{name}" for name in files]
    rows = read_files(session, paths, schema)
    total, null_keys, repeated, undecodable = _key_counts(rows, task.key, schema)
    _require_all(frame, files, total)
    if undecodable:
        raise _not_utf8(rows, schema)
    if null_keys and task.null_keys == "error":
        raise _null_keys(rows, task.key, null_keys)
    dropped = null_keys if task.null_keys == "drop" else 0
    written = json.loads(schema.json())
    if frame.is_as_stored and not (repeated or dropped):
        return WrittenBatch(written, files, total)
    if dropped:
        rows = rows.where(~_has_null(task.key))
    unique = _unique(rows, task, schema) if repeated else rows
    counting = Counting.of_rows(unique)
    folder = f"{task.output.rstrip('/')}/{UNIQUE}"
    names = write_files(session, counting.frame(), schema, folder)
    remaining = counting.counts()["rows"]
    require_rows(session, folder, names, remaining)
    return WrittenBatch(
        written,
        tuple(f"{UNIQUE}/{name}" for name in names),
        remaining,
        duplicates=total - dropped - remaining,
        null_keys=dropped,
    )


def _require_all(frame: Written, files: Sequence[str], rows: int) -> None:
    """Check that as many rows are here as the frame's session wrote."""
    if files and rows != frame.rows and not frame.is_counted:
        raise EngineUnavailable(
            f"Spark did not report how many rows it wrote; {rows} are here.",
            cause=f"The frame has {frame.rows} rows when it is computed again, so it may return other rows"
            " each time.",
            remedy="Run the call again; nothing was changed. If it fails again, checkpoint the frame first.",
        )
    require_found(files, rows, frame.rows)


def _has_our_settings(session: Any, names: Sequence[str]) -> bool:
    """Return whether a session writes what these settings are about in the way that stored files have."""
    if not names:
        return True
    if isinstance(session, SparkSession):
        values = session.client.get_configs(*names)  # one query for all
    else:
        values = tuple(session.conf.get(name) for name in names)
    return all(str(value) == LANDING_CONFIGURATION[name] for name, value in zip(names, values, strict=True))


def batch_schema(given: StructType, task: WriteTask) -> StructType:
    """Check the schema of a frame before anything is written, and add the physical names of the task."""
    if given.names:  # a frame without any column is an empty file of rows
        require_key_columns(given.names, task.key)
        require_order_columns(given.names, task.order_by)
    repeated = sorted(name for name, count in Counter(given.names).items() if count > 1)
    if repeated:
        raise BadInput(f"The frame has several columns named {', '.join(map(repr, repeated))}.")
    require_kept_types(given)
    return StructType([_field(field, task) for field in given.fields])


def _field(field: StructField, task: WriteTask) -> StructField:
    physical = task.columns.get(field.name)
    return StructField(
        field.name, nullable_type(field.dataType), metadata={PHYSICAL_NAME: physical} if physical else None
    )


def _physical(field: StructField) -> str:
    return str((field.metadata or {}).get(PHYSICAL_NAME, field.name))


def _has_null(key: Sequence[str]) -> Column:
    return any_of([F.col(quote(name)).isNull() for name in key])


def _null_keys(rows: DataFrame, key: Sequence[str], count: int) -> NullKeyError:
    """Return the error for rows with a null in their key, with the first of these keys."""
    keys = _shown_keys(rows.where(_has_null(key)), key)
    return NullKeyError(
        f"{count} rows of the frame have a null in the key ({', '.join(key)}): {', '.join(map(repr, keys))}"
        + (" and more." if count > len(keys) else "."),
        cause="A row without a key cannot be found again, so each sync would insert it again.",
        remedy="Fill or leave out these rows, or pass null_keys='drop' or null_keys='match'.",
        count=count,
        keys=[repr(item) for item in keys],
    )


def _key_counts(rows: DataFrame, key: Sequence[str], schema: StructType) -> tuple[int, int, int, int]:
    """Count all rows, rows with a null key, repeated keys (nulls match), and rows with invalid text."""
    keys = [F.col(quote(name)).alias(f"k{index}") for index, name in enumerate(key)]
    generated = [f"k{index}" for index in range(len(key))]
    found = list(_undecodable(schema).values())
    odd = F.coalesce(any_of(found), F.lit(False)) if found else F.lit(False)  # noqa: FBT003 - an SQL literal
    metrics = rows.select(*keys, odd.alias("odd"))
    counted = [F.count(F.lit(1)).alias("times"), F.count_if(F.col("odd")).alias("odd")]
    groups = metrics.groupBy(*generated).agg(*counted) if key else metrics.agg(*counted)
    null_keys = F.sum(F.when(_has_null(generated), F.col("times"))) if key else F.lit(0)
    repeated = F.count_if(F.col("times") > 1) if key else F.lit(0)
    sums = groups.agg(F.sum("times"), null_keys, repeated, F.sum("odd")).collect()[0]
    total, nulls, twice, undecodable = (int(value or 0) for value in sums)
    return total, nulls, twice, undecodable


def _undecodable(schema: StructType) -> dict[str, Column]:
    """Return, for each column that can hold text, whether a text in it is not UTF-8."""
    found = {field.name: undecodable(F.col(quote(field.name)), field.dataType) for field in schema.fields}
    return {name: condition for name, condition in found.items() if condition is not None}


def _not_utf8(rows: DataFrame, schema: StructType) -> BadInput:
    conditions = _undecodable(schema)
    counts = rows.agg(*(F.count_if(condition) for condition in conditions.values())).collect()[0]
    return not_utf8(next(name for name, count in zip(conditions, counts, strict=True) if count), [])


def _unique(rows: DataFrame, task: WriteTask, schema: StructType) -> DataFrame:
    """Return one row for each key: equal rows collapse, of others the last by ``order_by`` stays."""
    window: Any = Window if isinstance(rows, ConnectFrame) else ClassicWindow
    generated = [f"k{index}" for index in range(len(task.key))]
    coded = rows.select(
        *(F.col(quote(name)).alias(f"c{index}") for index, name in enumerate(schema.names)),
        *(F.col(quote(name)).alias(code) for name, code in zip(task.key, generated, strict=True)),
        *(F.col(quote(name)).alias(f"b{index}") for index, name in enumerate(task.order_by)),
    )
    if task.order_by:
        latest = [F.col(f"b{index}").desc_nulls_last() for index in range(len(task.order_by))]
        rank = F.rank().over(window.partitionBy(*generated).orderBy(*latest))
        coded = coded.withColumn("place", rank).where(F.col("place") == 1)
    _require_agreement(coded, task, schema, generated)
    nth = F.row_number().over(window.partitionBy(*generated).orderBy(*generated))
    first = coded.withColumn("nth", nth).where(F.col("nth") == 1)
    return first.select(*(F.col(f"c{index}").alias(name) for index, name in enumerate(schema.names)))


def _require_agreement(coded: DataFrame, task: WriteTask, schema: StructType, generated: list[str]) -> None:
    row = F.struct(
        *(
            comparable(F.col(f"c{index}"), field.dataType).alias(f"c{index}")
            for index, field in enumerate(schema.fields)
        )
    )
    kinds = F.count_distinct(row) if task.drop_duplicates else F.count(row)
    groups = coded.groupBy(*generated).agg(kinds.alias("kinds"))
    disputed = _shown_keys(groups.where(F.col("kinds") > 1), generated)
    if disputed:
        raise DuplicateKeyError(
            f"Several rows of the batch share a key ({', '.join(task.key)}):"
            f" {', '.join(map(repr, disputed))}.",
            cause="A snapshot has one row for each key, and rows of a Spark frame have no order.",
            remedy="Leave one row of each, or pass order_by= to say which is the last.",
            keys=[repr(value) for value in disputed],
        )


def _shown_keys(frame: DataFrame, key: Sequence[str]) -> list[Any]:
    """Return up to ten keys of the frame as Python values, composite ones as tuples."""
    columns = [F.col(quote(name)).alias(f"k{index}") for index, name in enumerate(key)]
    rows = frame.select(*columns).limit(_KEYS_SHOWN_MAX).collect()
    return [row[0] if len(key) == 1 else tuple(row) for row in rows]
