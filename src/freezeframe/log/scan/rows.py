"""Rows of a snapshot as Arrow, from the files that may match.

Damage raises ``CorruptData`` with the file's name and never returns rows: a missing file, a size or
number of rows that differs from the log, a page with a wrong checksum, an invalid deletion vector.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds
from pyarrow.fs import FileInfo, FileSystemHandler, FileType, PyFileSystem

from freezeframe.errors import CorruptLog, MissingColumn, NotFound, UnsupportedTable
from freezeframe.log.format import actions
from freezeframe.log.format.conversion import PartitionColumns
from freezeframe.log.format.schema import (
    Mode,
    arrow_field,
    delta_to_arrow,
    every_field,
    fields_of,
    mapping_mode,
    physical_name,
    require_known_changes,
)
from freezeframe.log.primitives.arrow import select_rows, system_memory
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile, parquet_leaves
from freezeframe.log.scan.block_index import Skipper
from freezeframe.log.scan.data_files import file_name, open_parquet, parquet_source
from freezeframe.log.scan.data_skipping import (
    FileFacts,
    Predicate,
    always_true,
    as_expression,
    claims_of,
    columns_of,
)
from freezeframe.log.scan.file_rows import (
    FileRead,
    GroupedFile,
    Part,
    file_batches,
    file_count,
    file_part,
    rows_at,
    whole_file,
)
from freezeframe.log.scan.file_statistics import bounded_columns, columns_beyond_bounds
from freezeframe.storage.base import Storage
from freezeframe.storage.read_ahead import map_concurrently, processors

if TYPE_CHECKING:
    import pyarrow.dataset as ds

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
    def delta_schema(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def files(self) -> pa.Table: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A ``ReadableSnapshot`` of some files only; ``files`` has the columns of ``Snapshot.files``."""

    storage: Storage
    table: str
    version: int
    protocol: actions.Protocol
    metadata: actions.Metadata
    time_zone: tzinfo
    delta_schema: dict[str, Any]
    files: pa.Table


def part_of(snapshot: ReadableSnapshot, files: pa.Table) -> SnapshotPart:
    """Return the part of a snapshot that ``files`` (rows of its ``files``) are."""
    return SnapshotPart(
        snapshot.storage,
        snapshot.table,
        snapshot.version,
        snapshot.protocol,
        snapshot.metadata,
        snapshot.time_zone,
        snapshot.delta_schema,
        files,
    )


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
    """Return the snapshot's rows as one table, files in log order, rows in file order.

    ``columns`` are the columns to return, in that order (None: all except type void, which files do
    not store; Spark leaves them out as well). ``where`` is SQL text, a ``pyarrow.compute`` expression, or
    tuples in the form of ``pyarrow.parquet``: ``[("city", "=", "Bern"), ("age", ">", 17)]`` is a
    conjunction, a list of such lists a disjunction. ``verify`` compares each file with its recorded
    SHA-256, if any: None for files of up to 4 MiB, True for all, False for none.
    """
    if columns is not None and not columns and (first := _first_name(snapshot)):
        return read(snapshot, first, where, verify=verify).select([])
    plan = plan_reads(snapshot, columns, where)
    names = plan.schema.names
    if where is None and _is_wide(plan):
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


def read_sorted(
    snapshot: ReadableSnapshot, names: Sequence[str], order: Callable[[pa.Table], npt.NDArray[np.int64]]
) -> pa.Table:
    """Return the rows of ``read`` in an order of the columns ``names``.

    ``order`` returns the positions of rows of these columns in the order wanted. Deleted rows are left out
    and the others put in order at once, so each cell is copied once.
    """
    plan = plan_reads(snapshot, None, None)
    if _is_wide(plan):
        table = read(snapshot)
        live = np.arange(len(table))
    else:
        found = map_concurrently(lambda item: whole_file(plan.storage, item), plan.reads, _threads())
        table = pa.Table.from_batches([batch for batches, _ in found for batch in batches], plan.schema)
        live = np.flatnonzero(np.concatenate([alive for _, alive in found] or [np.zeros(0, np.bool_)]))
    keys = table.select(list(names))
    wanted = live[order(keys.take(pa.array(live)))] if names else live
    if len(wanted) == len(table) and (wanted == np.arange(len(wanted))).all():
        return table
    indexes = pa.array(wanted)
    columns = map_concurrently(lambda column: column.take(indexes), table.columns, _threads())
    return pa.Table.from_arrays(columns, schema=table.schema)


def read_batches(
    snapshot: ReadableSnapshot,
    columns: Sequence[str] | None = None,
    where: Predicate | None = None,
    *,
    verify: bool | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return rows of ``read``, in the same order, as an iterator of batches for tables larger than memory.

    The call raises for invalid arguments; the iteration raises for damage.
    """
    if columns is not None and not columns and (first := _first_name(snapshot)):
        batches = read_batches(snapshot, first, where, verify=verify)
        return (batch.select([]) for batch in batches)
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
    """Return the rows at positions (ascending, counted from 0) of files, by path as in ``snapshot.files``.

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
    """Return the live rows of some files, by path, except those at the given positions.

    Batches in the order of ``positions``, with all columns that files can store.
    """
    plan = plan_reads(snapshot, None, None)
    reads = {item.path: item for item in plan.reads}
    return (
        batch
        for path, without in positions.items()
        for batch in file_batches(plan.storage, reads[path], None, without=without)
    )


def whole_files(
    snapshot: ReadableSnapshot, files: pa.Table, columns: Sequence[str], storage: Storage | None = None
) -> list[tuple[int, Callable[[Part], tuple[int, Iterator[pa.RecordBatch]]]]]:
    """Return the number of rows and part reader of each of ``files`` (rows of ``snapshot.files``).

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
    """Return the files that may hold a matching row, by path, each as a function that opens it.

    Their rows have ``columns``, then the columns that only ``where`` needs; files in ``only`` are
    restricted to its positions. Errors as for ``read``.
    """
    plan = plan_reads(snapshot, columns, where)
    return {
        item.path: functools.partial(GroupedFile, plan.storage, item, only.get(item.path))
        for item in plan.reads
    }


def count(snapshot: ReadableSnapshot) -> int:
    """Return the number of rows, from the log's statistics where present, else from the files' footers."""
    return sum(file_count(snapshot.storage, item) for item in plan_reads(snapshot, None, None).reads)


def require_files(snapshot: ReadableSnapshot) -> None:
    """Open the footer of every data file, to detect a missing file before a read."""
    require_present(snapshot.storage, snapshot.table, snapshot.files)


def require_present(storage: Storage, table: str, files: pa.Table) -> None:
    """``require_files`` for some files, given as rows of ``Snapshot.files``."""
    for path, size in zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True):
        open_parquet(storage, file_name(storage, table, path), size)


def file_names(snapshot: ReadableSnapshot, where: Predicate | None = None) -> list[str | Path]:
    """Return the name of each live file, as of ``file_name``; with ``where`` only of files that may match."""
    files = snapshot.files if where is None else files_matching(snapshot, where)
    return [file_name(snapshot.storage, snapshot.table, path) for path in files["path"].to_pylist()]


def file_uris(snapshot: ReadableSnapshot, where: Predicate | None = None) -> list[str]:
    """Return the local path or URL of each live file; with ``where`` only of files that may match."""
    root = snapshot.storage.root.rstrip("/")
    names = file_names(snapshot, where)
    return [str(name) if isinstance(name, Path) else f"{root}/{name}" for name in names]


def partitions(snapshot: ReadableSnapshot) -> list[dict[str, Any]]:
    """Return the distinct combinations of typed partition values of the live files, by column."""
    fields = {field["name"]: field for field in fields_of(snapshot.delta_schema)}
    mode = mapping_mode(snapshot.protocol, snapshot.metadata)
    listed = _files(snapshot.files, partition_columns(snapshot, fields, mode))
    found = {tuple(value.as_py() for value in values.values()): values for _, values in listed}
    return [{name: value.as_py() for name, value in values.items()} for values in found.values() if values]


def files_matching(snapshot: ReadableSnapshot, where: Predicate) -> pa.Table:
    """Return the rows of ``snapshot.files`` whose files may hold a matching row; errors as for ``read``."""
    files = snapshot.files
    if not files.num_rows:
        return files
    whole, mode = delta_to_arrow(snapshot.delta_schema), mapping_mode(snapshot.protocol, snapshot.metadata)
    fields = {field["name"]: field for field in fields_of(snapshot.delta_schema)}
    partition = partition_columns(snapshot, fields, mode)
    return _matching_files(files, as_expression(where, whole), whole, fields, mode, partition)


def _gather(
    plan: ReadPlan, batches_of: Callable[[FileRead], Iterator[pa.RecordBatch]], reads: Sequence[FileRead]
) -> pa.Table:
    """Return the batches of all files as one table in their order; reads several files concurrently."""
    found = map_concurrently(lambda item: list(batches_of(item)), reads, _threads())
    return pa.Table.from_batches([batch for batches in found for batch in batches], plan.schema)


def _threads() -> int:
    return min(_THREADS_MAX, processors())


def _is_wide(plan: ReadPlan) -> bool:
    return len(plan.schema) > _WIDE_COLUMNS and sum(item.size for item in plan.reads) > _WIDE_BYTES


def plan_reads(
    snapshot: ReadableSnapshot,
    columns: Sequence[str] | None,
    where: Predicate | None,
    files: pa.Table | None = None,
) -> ReadPlan:
    """Plan the scan of ``files`` (rows of ``snapshot.files``; None: all that may match)."""
    fields = require_rows(snapshot)
    mode = mapping_mode(snapshot.protocol, snapshot.metadata)
    names = _all_names(fields) if columns is None else list(columns)
    MissingColumn.refuse(names, list(fields), "The table has no column {}.")
    whole = delta_to_arrow(snapshot.delta_schema)
    expression = None if where is None else as_expression(where, whole)
    needed = [] if expression is None else columns_of(expression, whole)
    partition = partition_columns(snapshot, fields, mode)
    read_names = [*names, *(name for name in needed if name not in names)]
    if files is None:
        files = snapshot.files
        if expression is not None:
            files = _matching_files(files, expression, whole, fields, mode, partition)
    wanted_fields = tuple(fields[name] for name in read_names)
    reads = tuple(
        FileRead.of(snapshot.table, row, values, wanted_fields, len(names), mode)
        for row, values in _files(files, partition)
    )
    return ReadPlan(snapshot.storage, pa.schema([whole.field(name) for name in names]), expression, reads)


def _matching_files(
    files: pa.Table,
    where: pc.Expression,
    whole: pa.Schema,
    fields: dict[str, Any],
    mode: Mode,
    partition: PartitionColumns,
) -> pa.Table:
    """Return the rows of ``files`` whose files may hold a matching row."""
    claimed = pa.schema([whole.field(name) for name in columns_of(where, whole)])
    stored_names = {name: physical_name(field, mode) for name, field in fields.items()}
    return select_rows(files, Skipper(where, claimed, stored_names, partition).mask(files))


def schema_of(snapshot: ReadableSnapshot) -> pa.Schema:
    """Return the columns of ``read``."""
    fields = {field["name"]: field for field in fields_of(snapshot.delta_schema)}
    whole = delta_to_arrow(snapshot.delta_schema)
    return pa.schema([whole.field(name) for name in _all_names(fields)])


def _first_name(snapshot: ReadableSnapshot) -> list[str]:
    """Return a column (if any) to read where none is requested: without one Arrow has no rows to count."""
    return _all_names(require_rows(snapshot))[:1]


def _all_names(fields: dict[str, Any]) -> list[str]:
    return [name for name, field in fields.items() if field["type"] not in ("void", "null")]


def require_rows(snapshot: ReadableSnapshot) -> dict[str, Any]:
    """Refuse a table that does not exist or has no columns; return its fields by name."""
    if snapshot.version < 0:
        raise NotFound(
            f"There is no table at {f'{snapshot.storage.root}/{snapshot.table}'.rstrip('/')}.",
            cause="Its log holds no version.",
            remedy="Check the path, or write the table first.",
            code="DELTA_TABLE_NOT_FOUND",
        )
    fields = {field["name"]: field for field in fields_of(snapshot.delta_schema)}
    if not fields:
        raise UnsupportedTable(
            "You are trying to read a Delta table that does not have any columns.",
            cause="Its schema is empty.",
            remedy="Write rows into it first.",
            code="DELTA_READ_TABLE_WITHOUT_COLUMNS",
        )
    require_known_changes(snapshot.delta_schema)
    return fields


def partition_columns(snapshot: ReadableSnapshot, fields: dict[str, Any], mode: Mode) -> PartitionColumns:
    """Return the partition columns among the table's fields, matched regardless of case."""
    lower = {name.lower(): field for name, field in fields.items()}
    columns = snapshot.metadata.partition_columns
    for name in columns:
        if name.lower() not in lower:
            raise CorruptLog(
                f"The partition column {name!r} is not in the table's schema.",
                cause="A faulty writer changed one of them, so the rows' partition is unknown.",
                remedy="Restore the log from a copy.",
                code="FIELD_NOT_FOUND",
            )
    return PartitionColumns.of([lower[name.lower()] for name in columns], mode, snapshot.time_zone)


def _files(files: pa.Table, partition: PartitionColumns) -> list[tuple[dict[str, Any], dict[str, pa.Scalar]]]:
    """Return each file's log row, with its typed partition values by column name."""
    columns = ["path", "partition_values", "size", "stats", "deletion_vector", "tags"]
    found = files.select(columns).to_pylist()
    return [(row, partition.values(dict(row["partition_values"] or ()))) for row in found]


# A snapshot as a PyArrow dataset, for predicate pushdown by DuckDB, Polars and Acero.
#
# Each file is a fragment with its partition values and column bounds. Arrow reads a file without
# conversion directly; one with a deletion vector, mapped columns, widened types, dates of the old
# calendar or bounds that pass over NaN is converted on opening and returned as Parquet in memory.

CLAIMED_COLUMNS_MAX = 32


def dataset_of(snapshot: ReadableSnapshot) -> ds.Dataset:
    """Return the dataset, whose scans skip fragments by partition values and statistics.

    Only the first ``CLAIMED_COLUMNS_MAX`` columns have bounds, except columns that may hold NaN.
    """
    # Lazy: the import loads pandas, which costs most of a second.
    import pyarrow.dataset as ds  # noqa: PLC0415 - see above

    plan = plan_reads(snapshot, None, None)
    reads = {f"{number}/{read.path.rpartition('/')[2]}": read for number, read in enumerate(plan.reads)}
    file_system = PyFileSystem(_TableFiles(snapshot.storage, reads, snapshot.delta_schema))
    format_ = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
    claimed = [field for field in plan.schema if not kinds.is_floating(field.type)]
    bounded = pa.schema(claimed[:CLAIMED_COLUMNS_MAX])
    names = {item["name"]: item for item in fields_of(snapshot.delta_schema)}
    statistics = snapshot.files["stats"].to_pylist()
    whole = _with_optional_members(snapshot.delta_schema)
    schema = pa.schema([whole.field(name) for name in plan.schema.names])
    fragments = []
    for (path, read), stats in zip(reads.items(), statistics, strict=True):
        keys = {field.name: physical_name(names[field.name], read.mode) for field in bounded}
        wanted = pa.schema([*bounded, *(plan.schema.field(n) for n in read.partition if n not in keys)])
        claims = claims_of(FileFacts(read.partition, stats), wanted, keys)
        claim = reduce(and_, claims.values(), always_true())
        fragments.append(format_.make_fragment(path, file_system, partition_expression=claim))
    return ds.FileSystemDataset(fragments, schema, format_, file_system)


def _with_optional_members(schema: Mapping[str, Any]) -> pa.Schema:
    """Return the columns with members that may be null: Arrow takes them for null where their struct is."""
    copied = copy.deepcopy(dict(schema))
    for column in fields_of(copied):
        for field in every_field(column["type"]):
            field["nullable"] = True
    return delta_to_arrow(copied)


class _TableFiles(FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    """Read-only PyArrow file system over the data files of a snapshot."""

    def __init__(self, storage: Storage, reads: Mapping[str, FileRead], schema: Mapping[str, Any]) -> None:
        self._storage = storage
        self._reads = reads
        self._is_changed = any(
            "delta.typeChanges" in (field.get("metadata") or {}) for field in every_field(schema)
        )
        leaves = [kind for field in delta_to_arrow(schema) for _, kind in parquet_leaves(field)]
        self._is_opened = any(kinds.is_temporal(leaf) or kinds.is_floating(leaf) for leaf in leaves)

    def open_input_file(self, path: str) -> Any:
        """Open a file: its own bytes, or its converted rows as Parquet."""
        read = self._reads[path]
        if read.vector is not None or read.mode != "none" or self._is_changed:
            return self._converted(read)
        source = parquet_source(self._storage, file_name(self._storage, read.table, read.path), read.size)
        if self._is_odd(source):
            return self._converted(read)
        return pa.OSFile(source) if isinstance(source, str) else source

    def _is_odd(self, source: Any) -> bool:
        """Whether Arrow would leave rows out by the footer's bounds, or meets nanoseconds.

        Such bounds are of the old calendar, or without NaN.
        """
        if not self._is_opened:
            return False
        file = ForeignParquetFile(source)
        leaves = (leaf for field in file.schema_arrow for _, leaf in parquet_leaves(field))
        has_nanoseconds = any(kinds.is_timestamp(leaf) and leaf.unit == "ns" for leaf in leaves)
        return has_nanoseconds or file.has_old_times or bool(columns_beyond_bounds(file))

    def _converted(self, read: FileRead) -> Any:
        sink = pa.BufferOutputStream()
        batches = list(file_batches(self._storage, read, None, use_threads=False))
        kept = pa.Table.from_batches(batches, pa.schema([arrow_field(field) for field in read.fields]))
        bounded = bounded_columns(kept.schema)
        pq.write_table(kept, sink, compression="none", store_schema=False, write_statistics=bounded)
        return pa.BufferReader(sink.getvalue())

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        """Report every path as an existing file; opening it reveals a missing one."""
        return [FileInfo(path, FileType.File if path in self._reads else FileType.NotFound) for path in paths]

    def get_type_name(self) -> str:
        """Return the name of the file system in messages."""
        return "delta-snapshot"

    def normalize_path(self, path: str) -> str:
        """Return the path unchanged; it is a name already."""
        return path

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("A snapshot cannot be written or listed.")

    open_input_stream = open_input_file
    get_file_info_selector = open_output_stream = open_append_stream = _refuse
    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = _refuse
