"""Python calls as tasks of Spark, and the types, the order and the rows of frames.

Python workers import this module to run the calls, so it imports PySpark only in functions that they do not
run.
"""

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from freezeframe.engine.protocol import Calls
from freezeframe.errors import FreezeframeError
from freezeframe.nested_types import fold_type

_NAMES: dict[pa.DataType, str] = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", tz="UTC"): "timestamp",
}


def spark_ddl(schema: pa.Schema) -> str:
    """Return the schema as ``createDataFrame`` and ``StructType.fromDDL`` take it.

    Args:
        schema: types that a stream can keep (``engine.arrow_columns.stored_type``).
    """
    return ", ".join(f"{_quote(field.name)} {fold_type(field.type, _type)}" for field in schema)


def _type(kind: pa.DataType, inside: list[str]) -> str:
    if pa.types.is_struct(kind):
        members = (f"{_quote(field.name)}: {name}" for field, name in zip(kind, inside, strict=True))
        return f"struct<{', '.join(members)}>"
    if inside:
        return f"{'map' if pa.types.is_map(kind) else 'array'}<{','.join(inside)}>"
    return f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else _NAMES[kind]


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def collect(frame: Any) -> pa.Table:
    """Return all rows of a frame; of a Connect frame by one request.

    ``toArrow`` and ``toPandas`` ask for the schema or for settings before it.
    """
    plan = getattr(frame, "_plan", None)  # a classic frame has none
    if plan is None:
        table: pa.Table = frame.toArrow()
        return table
    client = frame.sparkSession.client
    return client.to_table(plan.to_proto(client), {})[0]


# Calls are carried out by Python workers, wherever Spark runs them. A call is a function of an importable
# module with its arguments (``functools.partial``): workers import it, and get its arguments pickled.

_ROWS = 100_000


def answers(session: Any, calls: Calls, tasks_max: int | None = None) -> list[Any]:
    """Return the results of the calls, in order; each call is a task, or at most so many share them."""
    if not calls:
        return []
    tasks = min(tasks_max or len(calls), len(calls))
    dealt = sorted(enumerate(calls), key=lambda numbered: numbered[0] % tasks)
    with _spark_errors():
        frame = _numbers(session, len(calls), tasks).mapInArrow(
            functools.partial(_run_calls, dealt), _answer_type()
        )
        rows = collect(frame).sort_by("place").column("answer").to_pylist()
    found = [pickle.loads(row) for row in rows]  # noqa: S301 - written by our own function
    for answer in found:
        if isinstance(answer, FreezeframeError):
            raise answer
    return found


def workers_of(session: Any) -> tuple[str, int]:
    """Return the version of this package that Spark's Python workers import (empty: none), and their user."""

    # A function inside of another is sent as it is: the worker need not import this module for it.
    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os  # noqa: PLC0415 - in the worker

        try:
            from freezeframe import __version__ as found  # noqa: PLC0415
        except ImportError:
            found = ""
        for batch in batches:
            columns = {"version": [found] * batch.num_rows, "user": [os.getuid()] * batch.num_rows}
            yield pa.RecordBatch.from_pydict(columns)

    rows = collect(_numbers(session, 1, 1).mapInArrow(told, "version string, user bigint"))
    return rows["version"][0].as_py(), rows["user"][0].as_py()


def frame_of(session: Any, calls: Calls, schema: pa.Schema) -> Any:
    """Return a lazy frame of the rows of the calls, each of which yields tables of ``schema``."""
    with _spark_errors():
        if not calls:
            return session.createDataFrame([], spark_ddl(schema))
        return _numbers(session, len(calls), len(calls)).mapInArrow(
            functools.partial(_rows, tuple(calls)), spark_ddl(schema)
        )


def _numbers(session: Any, count: int, tasks: int) -> Any:
    """Return the numbers of the calls as a frame, for whose columns a Connect session asks no server."""
    from pyspark.sql.types import LongType, StructField, StructType  # noqa: PLC0415 - workers do without

    frame = session.range(0, count, 1, tasks)
    if hasattr(frame, "_cached_schema"):
        frame._cached_schema = StructType([StructField("id", LongType(), nullable=False)])  # noqa: SLF001
    return frame


def _answer_type() -> Any:
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType  # noqa: PLC0415 - as below

    # Spark would be asked what a text of the types means.
    return StructType([StructField("place", LongType()), StructField("answer", BinaryType())])


def _spark_errors() -> contextlib.AbstractContextManager[None]:
    from freezeframe.engine.spark_errors import spark_errors  # noqa: PLC0415 - workers do without

    return spark_errors()


def _run_calls(
    dealt: Sequence[tuple[int, Callable[[], Any]]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for index in batch.column(0).to_pylist():
            place, call = dealt[index]
            try:
                answer = call()
            except FreezeframeError as error:
                answer = error
            yield pa.record_batch({"place": [place], "answer": [pickle.dumps(answer)]})


def _rows(calls: Calls, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for index in batch.column(0).to_pylist():
            for table in calls[index]():
                yield from table.to_batches(_ROWS)


# A frame is marked by the reader that knows the order of its files. What is derived from it without moving
# rows between partitions has them in the same order, so Spark can number them (decision 0040).

# What Spark Connect calls the steps that keep the rows of each partition in their order.
_KEEPING = frozenset(
    {"Drop", "Filter", "Hint", "MapPartitions", "NADrop", "NAFill", "NAReplace", "Project", "SubqueryAlias"}
) | {"ToDF", "ToSchema", "WithColumns", "WithColumnsRenamed"}
_MARK = "_freezeframe_in_file_order"


def mark_file_order(frame: Any) -> Any:
    """Return the frame, known to have its rows in the order of their files."""
    with contextlib.suppress(AttributeError):
        setattr(getattr(frame, "_plan", frame), _MARK, True)
    return frame


def numbered_rows(frame: Any, name: str) -> Any | None:
    """Add a column of growing numbers; None if the order of the frame's rows is not that of files."""
    step = getattr(frame, "_plan", frame)
    while not getattr(step, _MARK, False):
        if type(step).__name__ not in _KEEPING:
            return None
        step = step._child  # noqa: SLF001 - the plan of a Connect frame is a chain of these
    # A window function is a part of a projection, and moves rows.
    if step is not getattr(frame, "_plan", frame) and "Exchange" in frame._explain_string():  # noqa: SLF001
        return None
    return frame.selectExpr("*", f"monotonically_increasing_id() as {name}")
