"""The Spark format ``freezeframe``, as Spark's Python workers call it.

Spark asks for columns and partitions in one process of its server, reads and writes each partition in others,
and commits in one more: whatever goes between them is pickled. What is read and written a ``FormatSource``
says (``script.spark_format``), which knows nothing of Spark.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from pyspark.sql import datasource as pyspark
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freezeframe.engine.plans.python_tasks import spark_ddl
from freezeframe.engine.process_session import own_address

NAME = "freezeframe"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Spark refuses a source that takes conditions where a session has not switched this on."""

Condition = tuple[str, str, Any]
"""A column, a comparison as PyArrow names it, and a value."""


class FormatSource(Protocol):
    """Says what options mean; raises typed errors for those that are wrong. Its plans are pickled.

    A plan to read has ``schema``, ``reader`` (with ``read(part, schema)``, for the tasks), ``parts()`` and
    ``narrowed(conditions)``; that of a stream ``first()``, ``newest(start, versions_max)``, ``ended()`` (a
    plan that ends with the versions of now) and ``parts(start, end, schema)``, where an offset is the version
    of each tenant; that of a write ``write(batches)``, which returns names of files, ``commit(files)`` and
    ``abort(files)``.
    """

    def read_plan(self, options: Mapping[str, str]) -> Any: ...  # noqa: D102 - described in the class
    def stream_plan(self, options: Mapping[str, str]) -> Any: ...  # noqa: D102
    def write_plan(self, options: Mapping[str, str], schema: pa.Schema, *, is_overwrite: bool) -> Any: ...  # noqa: D102


def register_format(session: Any, source: Callable[[str], FormatSource]) -> None:
    """Make the format known to a session, classic or Connect, with conditions that prune files.

    ``source`` gets the address of the session's server, if that is ours.
    """
    # A class of its own is sent by value: with it the workers get the source.
    own = {"source": source(own_address(session))}
    session.dataSource.register(type("Freezeframe", (_Format,), own))
    session.conf.set(PUSHDOWN, "true")


class _Format(pyspark.DataSource):
    source: ClassVar[FormatSource]
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

    def __init__(self, reader: Any, schema: pa.Schema) -> None:
        self._reader = reader
        self._schema = schema

    def read(self, partition: pyspark.InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is not None and partition.value is not None:  # Spark's own, where there are none
            yield from self._reader.read(partition.value, self._schema)


class _Reader(_PartReader):
    def __init__(self, plan: Any, schema: pa.Schema) -> None:
        super().__init__(plan.reader, schema)
        self._plan = plan

    def __reduce__(self) -> tuple[Any, ...]:
        return _PartReader, (self._reader, self._schema)

    def pushFilters(self, filters: list[pyspark.Filter]) -> Iterator[pyspark.Filter]:  # noqa: N802
        self._plan = self._plan.narrowed([found for item in filters if (found := _condition(item))])
        yield from filters  # Spark filters the rows

    def partitions(self) -> list[pyspark.InputPartition]:
        return list(map(pyspark.InputPartition, self._plan.parts()))


_COMPARISONS = {
    pyspark.EqualTo: "=",
    pyspark.In: "in",
    pyspark.GreaterThan: ">",
    pyspark.GreaterThanOrEqual: ">=",
    pyspark.LessThan: "<",
    pyspark.LessThanOrEqual: "<=",
    pyspark.IsNull: "null",
    pyspark.IsNotNull: "not null",
}


def _condition(given: pyspark.Filter) -> Condition | None:
    comparison = _COMPARISONS.get(type(given))
    path: tuple[str, ...] = getattr(given, "attribute", ())
    if comparison is None or len(path) != 1:  # a part of a nested column
        return None
    return path[0], comparison, getattr(given, "value", None)


_AvailableNow: Any = object
with suppress(ImportError):  # Spark 4.1 reads all there is as one batch
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as _AvailableNow


class _StreamReader(pyspark.DataSourceStreamReader, _AvailableNow):  # type: ignore[misc]
    def __init__(self, plan: Any, schema: pa.Schema) -> None:
        self._plan = plan
        self._schema = schema
        self._first: Any = None
        self._start: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _PartReader, (self._plan.reader, self._schema)

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

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[pyspark.InputPartition]:
        self._start = end  # of the next batch
        return list(map(pyspark.InputPartition, self._plan.parts(start, end, self._schema)))

    def read(self, partition: pyspark.InputPartition) -> Iterator[pa.RecordBatch]:
        yield from self._plan.reader.read(partition.value, self._schema)


@dataclass
class _Kept(pyspark.WriterCommitMessage):
    files: tuple[str, ...]


class _Writer(pyspark.DataSourceArrowWriter):
    def __init__(self, plan: Any) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> pyspark.WriterCommitMessage:
        return _Kept(self._plan.write(iterator))

    def commit(self, messages: list[Any]) -> None:
        self._plan.commit(_files(messages))

    def abort(self, messages: list[Any]) -> None:
        self._plan.abort(_files(messages))


def _files(messages: list[Any]) -> list[str]:
    return [file for message in messages if message is not None for file in message.files]
