"""Spark frames whose rows this process may hold: read by one request, or from the files that Spark wrote.

The request carries a limit of rows and of bytes, which Spark's tasks apply row by row: a frame beyond it ends
the request, whatever its plan promised, and takes the route over files. So does a frame with repeated or
missing keys.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

from freezeframe.engine.configuration.session_settings import set_configs
from freezeframe.engine.frames.batch import bounded_rows
from freezeframe.engine.plans.parquet_files import local_folder
from freezeframe.engine.protocol.table_engine import INLINE_KEYS_MAX, WriteTask

ROWS_MAX = INLINE_KEYS_MAX
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


def collect_small(frame: Any, schema: StructType) -> pa.Table | None:
    """All rows of a Spark Connect frame with this schema; None for a classic frame and a larger one."""
    if not isinstance(frame, DataFrame):
        return None
    with _interpreting(frame.sparkSession):
        try:
            return _collect_rows(_limited(frame, schema))
        except PySparkException as error:
            if _TOO_LARGE not in str(error):
                raise
            return None


def _limited(frame: DataFrame, schema: StructType) -> Any:
    """The frame, failing with ``_TOO_LARGE`` as soon as a task has read more than the limits allow.

    A task cannot sum the bytes of the rows before: each row may take its share of ``BYTES_MAX``, as if all
    rows so far had its size. What a partition may return is bounded by that, and rows of about one size are
    taken up to ``BYTES_MAX``.
    """
    coded = frame.toDF(*(f"c{place}" for place in range(len(schema))))
    texts = [
        F.col(name) if isinstance(field.dataType, StringType) else F.col(name).cast("string")
        for name, field in zip(coded.columns, schema.fields, strict=True)
        if isinstance(field.dataType, StringType | BinaryType | ArrayType | MapType | StructType)
    ]
    size = F.octet_length(F.concat_ws("", *texts)) if texts else F.lit(0)
    rows = F.monotonically_increasing_id().bitwiseAND(F.lit(_POSITION)) + 1
    bytes_so_far = rows * (size + _VALUE_BYTES * len(schema))
    is_large = (rows > ROWS_MAX) | (bytes_so_far > BYTES_MAX)
    return coded.where(F.when(is_large, F.raise_error(_TOO_LARGE).cast("boolean")).otherwise(F.lit(True)))  # noqa: FBT003 - an SQL literal


def rows_to_write(rows: pa.Table, task: WriteTask, schema: StructType) -> pa.Table | None:
    """The rows cast to ``schema``; None if they are not plain."""
    target = to_arrow_schema(schema, **_IN_UTC)
    try:
        table = rows.rename_columns(target.names).cast(target)
    except pa.ArrowException:
        return None
    return table if _are_plain(table, task) else None


def read_back(task: WriteTask, rows: int) -> tuple[tuple[str, ...], pa.Table] | None:
    """Names and rows of the files that Spark wrote for the task, which are ``rows`` in all.

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
    """Whether all text is UTF-8, and no key repeats, is null, or is a floating-point number."""
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
    """All rows; None once those of all tasks exceed a limit."""
    client = frame.sparkSession.client
    answers: Any = client.to_table_as_iterator(frame._plan.to_proto(client), {})  # noqa: SLF001
    parts, rows, size = [], 0, 0
    with contextlib.closing(answers):
        for answer in answers:
            if isinstance(answer, pa.Table):
                parts.append(answer)
                rows += len(answer)
                size += answer.get_total_buffer_size()  # ``nbytes`` ends the process for lists of maps
                if rows > ROWS_MAX or size > BYTES_MAX:
                    return None
    return pa.concat_tables(parts) if parts else None


def _has_plain_keys(table: pa.Table, task: WriteTask) -> bool:
    """Whether no key is null or repeats, by equality that every engine agrees on."""
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
