"""Rows of a snapshot as Arrow, from the files that may match.

Damage raises ``CorruptData`` with the file's name and never returns rows: a missing file, a size or
number of rows that differs from the log, a page with a wrong checksum, an invalid deletion vector.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import CorruptLog, MissingColumn, NotFound, UnsupportedTable
from freezeframe.log.actions import actions
from freezeframe.log.primitives.arrow import system_memory
from freezeframe.log.replay.replay import select_rows
from freezeframe.log.scan.data_files import file_name, open_parquet
from freezeframe.log.scan.file_rows import FileRead, GroupedFile, file_batches, file_count, file_part, rows_at
from freezeframe.log.schema.column_mapping import Mode, mapping_mode, physical_name
from freezeframe.log.schema.conversion import PartitionColumns
from freezeframe.log.schema.schema import delta_to_arrow, fields_of
from freezeframe.log.schema.type_widening import require_known_changes
from freezeframe.log.statistics.block_index import Skipper
from freezeframe.log.statistics.data_skipping import Predicate, as_expression, columns_of
from freezeframe.storage.base import Storage

_THREADS_MAX = 8
_COLUMNS_AT_ONCE = 8
_WIDE_COLUMNS = 32
_WIDE_BYTES = 8 * 1024 * 1024


class ReadableSnapshot(Protocol):
    """Interface of a snapshot for row scans; ``table`` is its folder in ``storage``."""

    @property
    def storage(self) -> Storage: ...  # noqa: D102 - described in the class
    @property
    def table(self) -> str: ...  # noqa: D102
    @property
    def version(self) -> int: ...  # noqa: D102
    @property
    def protocol(self) -> actions.Protocol: ...  # noqa: D102
    @property
    def metadata(self) -> actions.Metadata: ...  # noqa: D102
    @property
    def time_zone(self) -> tzinfo: ...  # noqa: D102
    @property
    def schema(self) -> Any: ...  # noqa: D102
    @property
    def files(self) -> pa.Table: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Plan of a scan: columns, files and predicate."""

    storage: Storage
    schema: pa.Schema
    where: pc.Expression | None
    reads: tuple[FileRead, ...]


def read(
    snapshot: ReadableSnapshot,
    columns: Sequence[str] | None = None,
    where: Predicate | None = None,
    *,
    verify: bool | None = None,
) -> pa.Table:
    """The snapshot's rows as one table, files in log order, rows in file order.

    ``columns`` are the columns to return, in that order (None: all except type void, which files do
    not store; Spark leaves them out as well). ``where`` is a ``pyarrow.compute`` expression, or
    tuples in the form of ``pyarrow.parquet``: ``[("city", "=", "Bern"), ("age", ">", 17)]`` is a
    conjunction, a list of such lists a disjunction. ``verify`` compares each file with its recorded
    SHA-256, if any: None for files of up to 4 MiB, True for all, False for none.
    """
    if columns is not None and not columns:
        _require_rows(snapshot)
        fields = {field["name"]: field for field in fields_of(snapshot.schema)}
        # Without a column Arrow has no rows to count.
        return read(snapshot, _all_names(fields)[:1], where, verify=verify).select([])
    plan = plan_reads(snapshot, columns, where)
    names = plan.schema.names
    if where is None and len(names) > _WIDE_COLUMNS and _total_bytes(plan) > _WIDE_BYTES:
        # For each column that it reads Arrow holds some pages, a dictionary and a buffer beside the rows, and
        # its own allocator keeps much of what it released.
        with system_memory():
            parts = [
                read(snapshot, names[at : at + _COLUMNS_AT_ONCE], verify=verify if at == 0 else False)
                for at in range(0, len(names), _COLUMNS_AT_ONCE)
            ]
        found = [column for part in parts for column in part.columns]
        return pa.Table.from_arrays(found, schema=plan.schema)
    return _gather(plan, lambda item: file_batches(plan.storage, item, plan.where, verify=verify), plan.reads)


def read_batches(
    snapshot: ReadableSnapshot,
    columns: Sequence[str] | None = None,
    where: Predicate | None = None,
    *,
    verify: bool | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of ``read``, in the same order, as an iterator of batches for tables larger than memory.

    The call raises for invalid arguments; the iteration raises for damage.
    """
    plan = plan_reads(snapshot, columns, where)
    return (
        batch for item in plan.reads for batch in file_batches(plan.storage, item, plan.where, verify=verify)
    )


def read_at(
    snapshot: ReadableSnapshot,
    positions: Mapping[str, npt.NDArray[np.int64]],
    columns: Sequence[str],
    *,
    verify: bool | None = None,
) -> pa.Table:
    """The rows at positions (ascending, counted from 0) of files, by path as in ``snapshot.files``.

    Files come in the order of ``positions``; requested deleted rows are included.
    """
    plan = plan_reads(snapshot, columns, None)
    reads = {item.path: item for item in plan.reads}
    wanted = [reads[path] for path in positions]
    return _gather(
        plan, lambda item: rows_at(plan.storage, item, positions[item.path], verify=verify), wanted
    )


def read_without(
    snapshot: ReadableSnapshot, positions: Mapping[str, npt.NDArray[np.int64]]
) -> Iterator[pa.RecordBatch]:
    """The live rows of some files, by path, except those at the given positions.

    Batches in the order of ``positions``, with all columns that files can store.
    """
    plan = plan_reads(snapshot, None, None)
    reads = {item.path: item for item in plan.reads}
    return (
        batch
        for path, without in positions.items()
        for batch in file_batches(plan.storage, reads[path], None, without=without)
    )


def read_files(snapshot: ReadableSnapshot, files: pa.Table) -> dict[str, pa.Table]:
    """Return all rows of ``files`` by path, deleted rows included, with all stored columns."""
    plan = plan_reads(snapshot, None, None, files)
    return {
        item.path: pa.Table.from_batches(file_part(plan.storage, item, 0, 1)[1], plan.schema)
        for item in plan.reads
    }


def whole_files(
    snapshot: ReadableSnapshot, files: pa.Table, columns: Sequence[str], storage: Storage | None = None
) -> list[tuple[int, Callable[[int, int], tuple[int, Iterator[pa.RecordBatch]]]]]:
    """Number of rows and part reader of each of ``files`` (rows of ``snapshot.files``).

    The number includes deleted rows and is 0 where the log has no count. The reader is ``file_part``
    in ``storage`` (None: the snapshot's own); errors as for ``read``.
    """
    plan = plan_reads(snapshot, columns, None, files)
    return [
        (item.rows or 0, functools.partial(file_part, storage or plan.storage, item)) for item in plan.reads
    ]


def grouped_files(
    snapshot: ReadableSnapshot,
    columns: Sequence[str],
    where: Predicate | None,
    only: Mapping[str, npt.NDArray[np.int64]],
) -> dict[str, Callable[[], GroupedFile]]:
    """The files that may hold a matching row, by path, each as a function that opens it.

    Their rows have ``columns``, then the columns that only ``where`` needs; files in ``only`` are
    restricted to its positions. Errors as for ``read``.
    """
    plan = plan_reads(snapshot, columns, where)
    return {
        item.path: functools.partial(GroupedFile, plan.storage, item, only.get(item.path))
        for item in plan.reads
    }


def count(snapshot: ReadableSnapshot) -> int:
    """The number of rows, from the log's statistics where present, else from the files' footers."""
    return sum(file_count(snapshot.storage, item) for item in plan_reads(snapshot, None, None).reads)


def require_files(snapshot: ReadableSnapshot) -> None:
    """Open the footer of every data file, to detect a missing file before a read."""
    require_present(snapshot.storage, snapshot.table, snapshot.files)


def require_present(storage: Storage, table: str, files: pa.Table) -> None:
    """``require_files`` for some files, given as rows of ``Snapshot.files``."""
    for path, size in zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True):
        open_parquet(storage, file_name(storage, table, path), size)


def file_uris(snapshot: ReadableSnapshot, where: Predicate | None = None) -> list[str]:
    """The local path or URL of each live file; with ``where`` only of files that may match."""
    files = snapshot.files if where is None else files_matching(snapshot, where)
    root = snapshot.storage.root.rstrip("/")
    names = (file_name(snapshot.storage, snapshot.table, path) for path in files["path"].to_pylist())
    return [str(name) if isinstance(name, Path) else f"{root}/{name}" for name in names]


def partitions(snapshot: ReadableSnapshot) -> list[dict[str, Any]]:
    """The distinct combinations of typed partition values of the live files, by column."""
    fields = {field["name"]: field for field in fields_of(snapshot.schema)}
    mode = mapping_mode(snapshot.protocol, snapshot.metadata)
    listed = _files(snapshot.files, partition_columns(snapshot, fields, mode))
    found = {tuple(value.as_py() for value in values.values()): values for _, values in listed}
    return [{name: value.as_py() for name, value in values.items()} for values in found.values() if values]


def files_matching(snapshot: ReadableSnapshot, where: Predicate) -> pa.Table:
    """The rows of ``snapshot.files`` whose files may hold a matching row; errors as for ``read``."""
    files = snapshot.files
    if not files.num_rows:
        return files
    return _matching_files(snapshot, as_expression(where), delta_to_arrow(snapshot.schema))


def _total_bytes(plan: ReadPlan) -> int:
    return sum(item.size for item in plan.reads)


def _gather(
    plan: ReadPlan, batches_of: Callable[[FileRead], Iterator[pa.RecordBatch]], reads: Sequence[FileRead]
) -> pa.Table:
    """The batches of all files as one table in their order; reads several files concurrently."""
    workers = min(_THREADS_MAX, os.cpu_count() or 1, len(reads))
    if workers <= 1:
        found = [list(batches_of(item)) for item in reads]
    else:
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(lambda item: list(batches_of(item)), reads))
    return pa.Table.from_batches([batch for batches in found for batch in batches], plan.schema)


def plan_reads(
    snapshot: ReadableSnapshot,
    columns: Sequence[str] | None,
    where: Predicate | None,
    files: pa.Table | None = None,
) -> ReadPlan:
    """Plan the scan of ``files`` (rows of ``snapshot.files``; None: all that may match)."""
    _require_rows(snapshot)
    mode = mapping_mode(snapshot.protocol, snapshot.metadata)
    fields = {field["name"]: field for field in fields_of(snapshot.schema)}
    names = _all_names(fields) if columns is None else list(columns)
    for name in names:
        _require_column(name, fields)
    whole = delta_to_arrow(snapshot.schema)
    expression = None if where is None else as_expression(where)
    needed = [] if expression is None else columns_of(expression, whole)
    partition = partition_columns(snapshot, fields, mode)
    read_names = [*names, *(name for name in needed if name not in names)]
    if files is None:
        files = snapshot.files if expression is None else _matching_files(snapshot, expression, whole)
    wanted_fields = tuple(fields[name] for name in read_names)
    reads = tuple(
        FileRead.of(snapshot.table, row, values, wanted_fields, len(names), mode)
        for row, values in _files(files, partition)
    )
    return ReadPlan(snapshot.storage, pa.schema([whole.field(name) for name in names]), expression, reads)


def _matching_files(snapshot: ReadableSnapshot, where: pc.Expression, whole: pa.Schema) -> pa.Table:
    """The rows of ``snapshot.files`` whose files may hold a matching row."""
    mode = mapping_mode(snapshot.protocol, snapshot.metadata)
    fields = {field["name"]: field for field in fields_of(snapshot.schema)}
    skipper = Skipper(
        where,
        pa.schema([whole.field(name) for name in columns_of(where, whole)]),
        {name: physical_name(field, mode) for name, field in fields.items()},
        partition_columns(snapshot, fields, mode),
    )
    return select_rows(snapshot.files, skipper.mask(snapshot.files))


def _all_names(fields: dict[str, Any]) -> list[str]:
    return [name for name, field in fields.items() if field["type"] not in ("void", "null")]


def _require_rows(snapshot: ReadableSnapshot) -> None:
    if snapshot.version < 0:
        raise NotFound(
            f"There is no table at {snapshot.storage.root}/{snapshot.table}.",
            cause="Its log holds no version.",
            remedy="Check the path, or write the table first.",
            code="DELTA_TABLE_NOT_FOUND",
        )
    if not fields_of(snapshot.schema):
        raise UnsupportedTable(
            "You are trying to read a Delta table that does not have any columns.",
            cause="Its schema is empty.",
            remedy="Write rows into it first.",
            code="DELTA_READ_TABLE_WITHOUT_COLUMNS",
        )
    require_known_changes(snapshot.schema)


def _require_column(name: str, fields: dict[str, Any]) -> None:
    if name not in fields:
        raise MissingColumn(
            f"The table has no column {name!r}.",
            cause=f"Its columns are {', '.join(fields)}.",
            remedy="Ask for columns that it has; upper and lower case matter.",
            column=name,
        )


def partition_columns(snapshot: ReadableSnapshot, fields: dict[str, Any], mode: Mode) -> PartitionColumns:
    """The partition columns among the table's fields, matched regardless of case."""
    lower = {name.lower(): field for name, field in fields.items()}
    columns = snapshot.metadata.partition_columns
    for name in columns:
        if name.lower() not in lower:
            raise CorruptLog(
                f"The partition column {name!r} is not in the table's schema.",
                cause="A faulty writer changed one of both; where the rows belong is not known.",
                remedy="Restore the log from a copy.",
                code="FIELD_NOT_FOUND",
            )
    return PartitionColumns.of([lower[name.lower()] for name in columns], mode, snapshot.time_zone)


def _files(files: pa.Table, partition: PartitionColumns) -> list[tuple[dict[str, Any], dict[str, pa.Scalar]]]:
    """Each file's log row, with its typed partition values by column name."""
    columns = ["path", "partition_values", "size", "stats", "deletion_vector", "tags"]
    found = files.select(columns).to_pylist()
    return [(row, partition.values(dict(row["partition_values"] or ()))) for row in found]
