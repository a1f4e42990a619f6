"""A snapshot as a PyArrow dataset, for predicate pushdown by DuckDB, Polars and Acero.

Each file is a fragment with its partition values and column bounds. Arrow reads a file without
conversion directly; one with a deletion vector, mapped columns, widened types, dates of the old
calendar or bounds that pass over NaN is converted on opening and returned as Parquet in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds
from pyarrow.fs import FileInfo, FileSystemHandler, FileType, PyFileSystem

from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile, parquet_leaves
from freezeframe.log.scan.data_files import file_name, parquet_source
from freezeframe.log.scan.file_rows import FileRead, file_batches
from freezeframe.log.scan.rows import ReadableSnapshot, plan_reads
from freezeframe.log.schema.column_mapping import every_field, physical_name
from freezeframe.log.schema.schema import arrow_field, delta_to_arrow, fields_of
from freezeframe.log.statistics.data_skipping import FileFacts, always_true, claims_of
from freezeframe.log.statistics.file_statistics import bounded_columns, columns_beyond_bounds
from freezeframe.storage.base import Storage

if TYPE_CHECKING:
    import pyarrow.dataset as ds

CLAIMED_COLUMNS_MAX = 32


def dataset_of(snapshot: ReadableSnapshot) -> ds.Dataset:
    """The dataset, whose scans skip fragments by partition values and statistics.

    Only the first ``CLAIMED_COLUMNS_MAX`` columns have bounds, except columns that may hold NaN.
    """
    # Lazy: the import loads pandas, which costs most of a second.
    import pyarrow.dataset as ds  # noqa: PLC0415 - see above

    plan = plan_reads(snapshot, None, None)
    reads = {f"{number}/{read.path.rpartition('/')[2]}": read for number, read in enumerate(plan.reads)}
    place = PyFileSystem(_TableFiles(snapshot.storage, reads, snapshot.schema))
    format_ = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
    claimed = [field for field in plan.schema if not kinds.is_floating(field.type)]
    bounded = pa.schema(claimed[:CLAIMED_COLUMNS_MAX])
    names = {item["name"]: item for item in fields_of(snapshot.schema)}
    statistics = snapshot.files["stats"].to_pylist()
    fragments = []
    for (path, read), stats in zip(reads.items(), statistics, strict=True):
        keys = {field.name: physical_name(names[field.name], read.mode) for field in bounded}
        wanted = pa.schema([*bounded, *(plan.schema.field(n) for n in read.partition if n not in keys)])
        claims = claims_of(FileFacts(read.partition, stats), wanted, keys)
        claim = reduce(and_, claims.values(), always_true())
        fragments.append(format_.make_fragment(path, place, partition_expression=claim))
    return ds.FileSystemDataset(fragments, plan.schema, format_, place)


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
        if self._has_odd_bounds(source):
            return self._converted(read)
        return pa.OSFile(source) if isinstance(source, str) else source

    def _has_odd_bounds(self, source: Any) -> bool:
        """Whether Arrow would leave rows out by the footer's bounds: of the old calendar, or without NaN."""
        if not self._is_opened:
            return False
        file = ForeignParquetFile(source)
        return file.has_old_times or bool(columns_beyond_bounds(file))

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
        """The name of the file system in messages."""
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
