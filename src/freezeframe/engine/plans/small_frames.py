"""Spark frames whose rows this process may hold: read by one request, or from the files that Spark wrote.

Spark's estimate of the result's bytes selects the frames to try; rows are counted on arrival. A frame with
repeated or missing keys takes the route over files, which handles them.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import threading
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freezeframe.engine.configuration.session_settings import set_configs
from freezeframe.engine.frames.bounded_rows import bounded_rows
from freezeframe.engine.plans.parquet_files import local_folder
from freezeframe.engine.protocol.table_engine import INLINE_KEYS_MAX, WriteTask

ROWS_MAX = INLINE_KEYS_MAX
ESTIMATE_BYTES_MAX = 4 * 1024 * 1024

_ESTIMATE = re.compile(r"== Optimized Logical Plan ==\n.*?Statistics\(sizeInBytes=([\d.E+]+) (\w+)")
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_UNITS = {unit: 1024**power for power, unit in enumerate(["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])}
# PySpark 4.2 asks for the time zone that 4.1 takes by itself.
_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)
# Operators that may return more bytes than they read, so that the estimate is unreliable.
_GROWS = re.compile(r"\b(Generate|MapIn\w+|FlatMap\w+|Expand|\w*Python\w*|\w*UDF\w*)\b")


@dataclass(frozen=True, slots=True)
class SmallFrame:
    """The rows of a frame in this process, as received from Spark."""

    schema: StructType
    rows: pa.Table


def collect_small(frame: Any) -> SmallFrame | None:
    """A Spark Connect frame's rows, if they are few; None where files serve.

    Files serve a classic frame, and one of more than ``ROWS_MAX`` rows or with an estimate of more than
    ``ESTIMATE_BYTES_MAX``.
    """
    if not isinstance(frame, DataFrame):
        return None
    plan = frame._explain_string(mode="cost")  # noqa: SLF001 - ``explain`` prints it
    found = _ESTIMATE.search(plan)
    if found is None or float(found[1]) * _UNITS.get(found[2], float("inf")) > ESTIMATE_BYTES_MAX:
        return None
    with _interpreting(frame.sparkSession):
        return _collect_rows(frame.limit(ROWS_MAX + 1) if _GROWS.search(plan) else frame)


def rows_to_write(small: SmallFrame, task: WriteTask, schema: StructType) -> pa.Table | None:
    """The rows cast to ``schema``; None if they are not plain."""
    target = to_arrow_schema(schema, **_IN_UTC)
    try:
        table = small.rows.rename_columns(target.names).cast(target)
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


def _collect_rows(frame: Any) -> SmallFrame | None:
    """All rows; None once they exceed the limit."""
    client = frame.sparkSession.client
    answers: Any = client.to_table_as_iterator(frame._plan.to_proto(client), {})  # noqa: SLF001
    schema, parts, rows = StructType(), [], 0
    with contextlib.closing(answers):
        for answer in answers:
            if isinstance(answer, StructType):
                schema = answer
            elif isinstance(answer, pa.Table):
                parts.append(answer)
                rows += len(answer)
                if rows > ROWS_MAX:
                    return None
    return SmallFrame(schema, pa.concat_tables(parts)) if parts else None


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
