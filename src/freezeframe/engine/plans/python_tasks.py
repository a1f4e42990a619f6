"""Python calls as tasks of Spark: one call is one task, in a Python worker, wherever Spark runs it.

A call is a function of an importable module with its arguments (``functools.partial``): workers load
freezeframe, PyArrow and the function by their names, and get the arguments pickled.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from freezeframe.engine.errors.spark_errors import spark_errors
from freezeframe.engine.plans.collection import collect
from freezeframe.engine.plans.schema_ddl import spark_ddl
from freezeframe.errors import FreezeframeError

Calls = Sequence[Callable[[], Any]]

_ROWS = 100_000
_ANSWERS = StructType([StructField("place", LongType()), StructField("answer", BinaryType())])


def answers(session: Any, calls: Calls) -> list[Any]:
    """The results of the calls, in order.

    Raises:
        FreezeframeError: the error of the first call that raised one.
        SetupError: the workers have no freezeframe, or another Python than this process.
        EngineUnavailable: Spark failed.
    """
    if not calls:
        return []
    with spark_errors():
        told = _tasks(session, len(calls)).mapInArrow(functools.partial(_run_calls, tuple(calls)), _ANSWERS)
        rows = collect(told).sort_by("place").column("answer").to_pylist()
    found = [pickle.loads(one) for one in rows]  # noqa: S301 - written by our own function
    for answer in found:
        if isinstance(answer, FreezeframeError):
            raise answer
    return found


def frame_of(session: Any, calls: Calls, schema: pa.Schema) -> Any:
    """A lazy frame of the rows that the calls give; each call gives tables with the columns of ``schema``."""
    with spark_errors():
        if not calls:
            return session.createDataFrame([], spark_ddl(schema))
        return _tasks(session, len(calls)).mapInArrow(
            functools.partial(_rows, tuple(calls)), spark_ddl(schema)
        )


def _tasks(session: Any, count: int) -> Any:
    return session.range(0, count, 1, count)


def _run_calls(calls: Calls, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for place in batch.column(0).to_pylist():
            try:
                answer = calls[place]()
            except FreezeframeError as error:
                answer = error
            yield pa.record_batch({"place": [place], "answer": [pickle.dumps(answer)]})


def _rows(calls: Calls, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for place in batch.column(0).to_pylist():
            for table in calls[place]():
                yield from table.to_batches(_ROWS)
