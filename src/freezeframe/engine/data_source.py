"""The Spark format ``freezeframe``, as Spark's Python workers call it.

Spark asks for columns and partitions in one process of its server, reads and writes each partition in others,
and commits in one more: whatever goes between them is pickled. ``script.spark_format``, which knows nothing
of Spark, says what is read and written.
"""

import inspect
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import datasource as pyspark
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freezeframe.engine.plans.python_tasks import spark_ddl

NAME = "freezeframe"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Spark refuses a source that takes conditions where a session has not switched this on."""


def register_format(session: Any, source: Any) -> None:
    """Make the format known to a session, classic or Connect, with conditions that prune files.

    ``source`` is a ``script.spark_format.Format``, whose plans are pickled. That of a query has a ``target``,
    which reads parts in the tasks; that of a stream has offsets, the version of each tenant; and that of a
    write gives the names of the files that its tasks wrote to its end.
    """
    # Spark's processes import this module too, and have no use for a client of Spark.
    from freezeframe.engine.process_session import own_address  # noqa: PLC0415

    # A class of its own is sent by value: with it the workers get the source.
    own = {"source": source.on_server(own_address(session))}
    session.dataSource.register(type("Freezeframe", (_Format,), own))
    session.conf.set(PUSHDOWN, "true")


class _Format(pyspark.DataSource):
    source: ClassVar[Any]
    _plan: Any = None

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        # Kept: the rows are those of the versions that the columns are of.
        self._plan = self.source.read_plan(self.options)
        return spark_ddl(self._plan.schema)

    def reader(self, schema: StructType) -> pyspark.DataSourceReader:
        # Spark sends the format itself to every task: not with the parts of all others.
        plan, self._plan = self._plan, None
        return _Reader(plan or self.source.read_plan(self.options), _arrow_schema(schema))

    def streamReader(self, schema: StructType) -> pyspark.DataSourceStreamReader:  # noqa: N802 - Spark's name
        self._plan = None  # as above
        return _StreamReader(self.source.stream_plan(self.options), _arrow_schema(schema))

    def writer(self, schema: StructType, overwrite: bool) -> pyspark.DataSourceWriter:  # noqa: FBT001 - Spark's
        plan = self.source.write_plan(self.options, _arrow_schema(schema), is_overwrite=overwrite)
        return _Writer(plan)


def _arrow_schema(schema: StructType) -> pa.Schema:
    """Return the types in which Spark takes and gives batches."""
    names = inspect.signature(to_arrow_schema).parameters  # until 4.2 it is UTC without a word
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in names else {}
    return to_arrow_schema(schema, **zone)


class _PartReader(pyspark.DataSourceReader):
    """What is left of a reader in the process of a task."""

    def __init__(self, target: Any, schema: pa.Schema) -> None:
        self._target, self._schema = target, schema

    def read(self, partition: pyspark.InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is not None and partition.value is not None:  # Spark's own, where there are none
            yield from self._target.read(partition.value, self._schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _PartReader, (self._target, self._schema)


class _Reader(_PartReader):
    def __init__(self, plan: Any, schema: pa.Schema) -> None:
        super().__init__(plan.target, schema)
        self._plan = plan

    def pushFilters(self, filters: list[pyspark.Filter]) -> Iterator[pyspark.Filter]:  # noqa: N802
        self._plan = self._plan.narrowed([found for item in filters if (found := _condition(item))])
        yield from filters  # Spark filters the rows

    def partitions(self) -> list[pyspark.InputPartition]:
        return list(map(pyspark.InputPartition, self._plan.parts()))


_COMPARISONS = {
    pyspark.EqualTo: "eq",
    pyspark.In: "in",
    pyspark.GreaterThan: "gt",
    pyspark.GreaterThanOrEqual: "ge",
    pyspark.LessThan: "lt",
    pyspark.LessThanOrEqual: "le",
}


def _condition(given: Any) -> tuple[str, str, Any] | None:
    """Return a column, a comparison as ``operator`` names it, and a value; None for another condition."""
    comparison = _COMPARISONS.get(type(given))
    if comparison is None or len(given.attribute) != 1:  # a part of a nested column
        return None
    return given.attribute[0], comparison, given.value


_AvailableNow: Any = object
with suppress(ImportError):  # Spark 4.1 reads all there is as one batch
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as _AvailableNow


class _StreamReader(_PartReader, pyspark.DataSourceStreamReader, _AvailableNow):  # type: ignore[misc]
    def __init__(self, plan: Any, schema: pa.Schema) -> None:
        super().__init__(plan.target, schema)
        self._plan = plan
        self._first: Any = None
        self._start: Any = None

    def initialOffset(self) -> Any:  # noqa: N802 - Spark's names
        # Spark asks until there is a first batch: what comes in between belongs to it.
        if self._first is None:
            self._first = self._start = self._plan.first()
        return self._first

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> Any:  # noqa: N802
        # Spark 4.1 gives neither, and reads all that there is.
        is_all = limit is None or type(limit).__name__ == "ReadAllAvailable"
        known = self._start if start is None else start
        return self._plan.newest(known, None if is_all else self._plan.versions_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._plan = self._plan.ended()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - asked for from Spark 4.2 on
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles  # noqa: PLC0415 - as above

        versions_max = self._plan.versions_max
        return ReadAllAvailable() if versions_max is None else ReadMaxFiles(versions_max)

    def partitions(self, start: Any, end: Any) -> list[pyspark.InputPartition]:  # type: ignore[override]
        self._start = end  # of the next batch
        return list(map(pyspark.InputPartition, self._plan.parts(start, end, self._schema)))


@dataclass
class _Kept(pyspark.WriterCommitMessage):
    files: tuple[str, ...]


class _Writer(pyspark.DataSourceArrowWriter):
    def __init__(self, plan: Any) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> pyspark.WriterCommitMessage:
        return _Kept(self._plan.write(iterator))

    def commit(self, messages: list[Any]) -> None:
        self._plan.commit([file for message in messages for file in message.files])

    def abort(self, messages: list[Any]) -> None:  # None: of a task that failed
        self._plan.abort([file for message in messages if message is not None for file in message.files])
