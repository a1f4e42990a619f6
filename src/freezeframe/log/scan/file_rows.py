"""Rows of one data file: opened, verified, without deleted rows, in the table's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe.errors import CorruptData, UnsupportedTable
from freezeframe.log.format.actions import DeletionVector
from freezeframe.log.format.conversion import conform
from freezeframe.log.format.schema import Mode, arrow_field, column_finder
from freezeframe.log.primitives import json_fields
from freezeframe.log.scan.data_files import (
    SHA256_TAG,
    damaged_file_error,
    damaged_vector_error,
    file_name,
    inline_rows,
    open_parquet,
    read_failure,
    read_range,
    require_file_version,
    stored_rows,
    vector_name,
)
from freezeframe.log.scan.file_statistics import footer_statistics, statistics_text
from freezeframe.log.scan.held_columns import held_columns
from freezeframe.storage.base import Storage

VERIFIED_BYTES_MAX = 4 << 20
_BATCH_ROWS_MAX = 1 << 18  # a whole row group of ours: two pieces take a third longer
_BATCH_BYTES = 256 << 20
_SEARCHED_ROWS = 8192  # decoded at once where a row is looked for
_THREADS_FROM_ROWS = 1 << 15  # fewer rows take longer to hand to Arrow's threads than to read

Part = tuple[int, int]
"""One of several runs of row groups of a file: its number, and how many runs there are."""

WHOLE: Part = (0, 1)


@dataclass(frozen=True, slots=True)
class FileRead:
    """Read request for one file of a snapshot.

    ``fields`` are the Delta fields to read: the first ``shown`` are returned, the others only serve
    the predicate. ``partition`` holds the typed values of partition columns.
    """

    table: str
    path: str
    size: int
    rows: int | None
    digest: str | None
    vector: DeletionVector | None
    partition: Mapping[str, pa.Scalar]
    fields: tuple[Mapping[str, Any], ...]
    shown: int
    mode: Mode

    @classmethod
    def of(
        cls,
        table: str,
        row: Mapping[str, Any],
        partition: Mapping[str, pa.Scalar],
        fields: tuple[Mapping[str, Any], ...],
        shown: int,
        mode: Mode,
    ) -> FileRead:
        """Return the request for a file given as a row of ``Snapshot.files``."""
        vector = row["deletion_vector"]
        rows = json_fields.statistics(row["stats"]).get("numRecords")
        return cls(
            table,
            row["path"],
            row["size"],
            rows if isinstance(rows, int) and not isinstance(rows, bool) else None,
            dict(row["tags"] or ()).get(SHA256_TAG),
            None if vector is None else DeletionVector.from_json(vector),
            partition,
            fields,
            shown,
            mode,
        )


def file_batches(
    storage: Storage,
    read: FileRead,
    where: pc.Expression | None,
    *,
    without: npt.NDArray[np.int64] | None = None,
    verify: bool | None = None,
    use_threads: bool = True,
    part: Part = WHOLE,
) -> Iterator[pa.RecordBatch]:
    """Yield the file's live matching rows in file order; see ``rows.read`` for the parameters.

    ``without`` are positions of rows to leave out like deleted ones. A callback of Arrow must pass
    ``use_threads=False``, because waiting for Arrow's threads there could deadlock.
    """
    name, file = _open_file(storage, read, verify)
    groups, first, rows = _row_groups(file, part)
    alive = _alive(storage, read, file.metadata.num_rows, str(name), without)
    if alive is not None:
        alive = alive[first : first + rows]
    schema = pa.schema([arrow_field(field) for field in read.fields])
    at = 0
    for columns, length in _read_stored(file, name, read, groups, use_threads=use_threads):
        batch = pa.RecordBatch.from_arrays(_arrays(columns, length, read, name), schema=schema)
        if alive is not None:
            batch = batch.filter(pa.array(alive[at : at + length]))
        at += length
        if where is not None:
            batch = _matching(batch, where)
        if batch.num_rows:
            yield batch.select(list(range(read.shown)))
    if at != rows:
        raise damaged_file_error(name, f"It gave {at} rows and should hold {rows}.")


def whole_file(storage: Storage, read: FileRead) -> tuple[list[pa.RecordBatch], npt.NDArray[np.bool_]]:
    """Return all rows of the file, deleted ones too, and a mask of the live ones."""
    name, file = _open_file(storage, read, None)
    rows = file.metadata.num_rows
    alive = _alive(storage, read, rows, str(name))
    batches = list(_whole_groups(file, name, read, range(file.metadata.num_row_groups), rows))
    return batches, np.ones(rows, np.bool_) if alive is None else alive


def file_part(storage: Storage, read: FileRead, part: Part) -> tuple[int, Iterator[pa.RecordBatch]]:
    """Position of the first row, and the rows, of a part of the file, deleted included."""
    name, file = _open_file(storage, read, None)
    groups, first, rows = _row_groups(file, part)
    return first, _whole_groups(file, name, read, groups, rows)


def live_positions(
    storage: Storage, read: FileRead, part: Part, without: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    """Return the positions in the file, ascending, of the rows that ``file_batches`` yields of a part."""
    name, file = _open_file(storage, read, verify=False)
    _, first, rows = _row_groups(file, part)
    alive = _alive(storage, read, file.metadata.num_rows, str(name), without)
    return first + (np.arange(rows) if alive is None else np.flatnonzero(alive[first : first + rows]))


def _row_groups(file: pq.ParquetFile, part: Part) -> tuple[range, int, int]:
    """Return the row groups of a part, the position of its first row, and the number of its rows."""
    rows = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    number, parts = part
    first, end = (len(rows) * item // parts for item in (number, number + 1))
    return range(first, end), sum(rows[:first]), sum(rows[first:end])


def _whole_groups(
    file: pq.ParquetFile, name: str | Path, read: FileRead, groups: range, rows: int
) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([arrow_field(field) for field in read.fields])
    found = 0
    for columns, length in _read_stored(file, name, read, groups):
        yield pa.RecordBatch.from_arrays(_arrays(columns, length, read, name), schema=schema)
        found += length
    if found != rows:
        raise damaged_file_error(name, f"It gave {found} rows and should hold {rows}.")


def rows_at(
    storage: Storage, read: FileRead, positions: npt.NDArray[np.int64], *, verify: bool | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the file's rows at ascending positions, deleted or not; other row groups are not read."""
    name, file = _open_file(storage, read, verify)
    groups = range(file.metadata.num_row_groups)
    lengths = np.array([file.metadata.row_group(group).num_rows for group in groups], np.int64)
    ends = np.cumsum(lengths)
    rows = int(lengths.sum())
    if len(positions) and int(positions[-1]) >= rows:
        raise damaged_file_error(name, f"It holds {rows} rows and should hold {positions[-1] + 1}.")
    group_of = np.searchsorted(ends, positions, side="right")
    for group in np.unique(group_of):
        indexes = positions[group_of == group] - (ends - lengths)[group]
        yield from _group_rows_at(file, name, read, int(group), indexes)


def _group_rows_at(
    file: pq.ParquetFile, name: str | Path, read: FileRead, group: int, indexes: npt.NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a group at ascending indexes; nothing behind the last one is decoded."""
    schema = pa.schema([arrow_field(field) for field in read.fields])
    start, many = 0, file.metadata.row_group(group).num_rows >= _THREADS_FROM_ROWS
    at_once = _SEARCHED_ROWS if len(indexes) < _SEARCHED_ROWS else None
    for columns, length in _read_stored(file, name, read, [group], use_threads=many, rows_at_once=at_once):
        near = indexes[slice(*np.searchsorted(indexes, [start, start + length]))] - start
        if len(near):
            own = {column: array.take(pa.array(near)) for column, array in columns.items()}
            yield pa.RecordBatch.from_arrays(_arrays(own, len(near), read, name), schema=schema)
        start += length
        if start > indexes[-1]:
            break


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows of one file, their positions, and the row group of the last one; None where there are none."""

    positions: npt.NDArray[np.int64]
    rows: pa.Table | None
    group: int | None = None


def rows_found(
    storage: Storage,
    read: FileRead,
    key: int,
    found_in: Callable[[pa.Table], npt.NDArray[np.int64]],
    groups_of: Callable[[pq.ParquetFile], Iterable[int]],
    *,
    is_unique: bool,
) -> FoundRows:
    """Return the rows, deleted or not, whose first ``key`` fields ``found_in`` gives the indexes of.

    ``groups_of`` names the row groups to look at, in that order; with ``is_unique`` nothing is read
    after the first row. Pages are verified by their own checksums, not the file by its SHA-256: it would
    have to be read whole.
    """
    name, file = _open_file(storage, read, verify=False)
    lengths = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    keys, rest = replace(read, fields=read.fields[:key]), replace(read, fields=read.fields[key:])
    positions: list[npt.NDArray[np.int64]] = []
    tables: list[pa.Table] = []
    last = None
    for group in groups_of(file):
        found = _found_in_group(file, name, keys, group, found_in, is_unique=is_unique)
        if found is None:
            continue
        last = group
        indexes, table = found
        positions.append(indexes + sum(lengths[:group]))
        if rest.fields:
            others = pa.Table.from_batches(list(_group_rows_at(file, name, rest, group, indexes)))
            schema = pa.schema([*table.schema, *others.schema])
            table = pa.Table.from_arrays([*table.columns, *others.columns], schema=schema)
        tables.append(table)
        if is_unique:
            break
    if last is None:
        return FoundRows(np.empty(0, np.int64), None)
    return FoundRows(np.concatenate(positions), pa.concat_tables(tables), last)


def _found_in_group(
    file: pq.ParquetFile,
    name: str | Path,
    keys: FileRead,
    group: int,
    found_in: Callable[[pa.Table], npt.NDArray[np.int64]],
    *,
    is_unique: bool,
) -> tuple[npt.NDArray[np.int64], pa.Table] | None:
    """Return the indexes of a group's rows that are found, and their keys; None where there are none.

    A unique row ends the reading; later rows are not decoded.
    """
    start = 0
    indexes: list[npt.NDArray[np.int64]] = []
    found: list[pa.Table] = []
    schema = pa.schema([arrow_field(field) for field in keys.fields])
    parts = _read_stored(file, name, keys, [group], use_threads=False, rows_at_once=_SEARCHED_ROWS)
    for columns, length in parts:
        part = pa.Table.from_arrays(_arrays(columns, length, keys, name), schema=schema)
        near = found_in(part)
        if len(near):
            indexes.append(near + start)
            found.append(part.take(pa.array(near)))
            if is_unique:
                break
        start += len(part)
    return (np.concatenate(indexes), pa.concat_tables(found)) if found else None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a data file: its number, first row's position, number of rows, statistics."""

    number: int
    start: int
    rows: int
    statistics: str


class GroupedFile:
    """A data file read lazily by row group.

    ``only`` restricts its rows to these positions, deleted or not.
    """

    def __init__(self, storage: Storage, read: FileRead, only: npt.NDArray[np.int64] | None = None) -> None:
        self._read = read
        self._name, self._file = _open_file(storage, read, None)
        rows = self._file.metadata.num_rows
        if only is None:
            self._alive = _alive(storage, read, rows, str(self._name))
        else:
            self._alive = np.zeros(rows, dtype=np.bool_)
            self._alive[only] = True

    def groups(self, schema: Mapping[str, Any]) -> Iterator[RowGroup]:
        """Yield the row groups, with statistics in Delta's form for the table's ``schema``."""
        start = 0
        for number, text in enumerate(group_statistics(self._file, schema)):
            rows = self._file.metadata.row_group(number).num_rows
            yield RowGroup(number, start, rows, text)
            start += rows

    def rows(self, group: RowGroup, where: pc.Expression | None, position: str) -> Iterator[pa.RecordBatch]:
        """Yield the group's live matching rows, with all fields of the request.

        An additional column named ``position`` holds each row's position in the file.
        """
        fields = [*map(arrow_field, self._read.fields), pa.field(position, pa.int64())]
        at = group.start
        for columns, length in _read_stored(self._file, self._name, self._read, [group.number]):
            numbers = pa.array(np.arange(at, at + length))
            arrays = [*_arrays(columns, length, self._read, self._name), numbers]
            batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
            if self._alive is not None:
                batch = batch.filter(pa.array(self._alive[at : at + length]))
            at += length
            yield batch if where is None else _matching(batch, where)


def group_statistics(file: pq.ParquetFile, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the statistics of each row group in Delta's form, of the columns of ``schema``."""
    for number in range(file.metadata.num_row_groups):
        yield statistics_text(footer_statistics(file, schema, [number], -1))


def file_count(storage: Storage, read: FileRead) -> int:
    """Return the number of the file's live rows, from the log or else from the footer."""
    rows = read.rows
    if rows is None:
        file = open_parquet(storage, file_name(storage, read.table, read.path), read.size)
        rows = int(file.metadata.num_rows)
    return rows - (0 if read.vector is None else read.vector.cardinality)


def deleted_rows(storage: Storage, table: str, vector: DeletionVector) -> npt.NDArray[np.uint64]:
    """Return the positions in a deletion vector, ascending."""
    if vector.storage_type == "i":
        return inline_rows(vector)
    if vector.storage_type == "u":
        name: str | Path = f"{table}/{vector_name(vector)}" if table else vector_name(vector)
    elif vector.storage_type == "p":
        name = file_name(storage, table, vector.path_or_inline_dv)
    else:
        raise damaged_vector_error(
            vector.path_or_inline_dv, f"Its kind is {vector.storage_type!r}, not 'i', 'u' or 'p'."
        )
    require_file_version(read_range(storage, name, 0, 1), str(name))
    block = read_range(storage, name, vector.offset or 0, vector.size_in_bytes + 8)
    return stored_rows(vector, block, str(name))


def _open_file(
    storage: Storage,
    read: FileRead,
    verify: bool | None,  # noqa: FBT001 - passed on
) -> tuple[str | Path, pq.ParquetFile]:
    """Return the file's name and the opened file, with size and number of rows checked against the log."""
    name = file_name(storage, read.table, read.path)
    is_verified = read.size <= VERIFIED_BYTES_MAX if verify is None else verify
    held = held_columns()
    files = {} if held is None or held.files is None or not is_verified else held.files
    file = files.get(str(name)) or open_parquet(
        storage, name, read.size, read.digest if is_verified else None
    )
    files[str(name)] = file
    rows = file.metadata.num_rows
    if read.rows is not None and read.rows != rows:
        raise damaged_file_error(name, f"It holds {rows} rows and should hold {read.rows}.")
    return name, file


def _alive(
    storage: Storage,
    read: FileRead,
    rows: int,
    name: str,
    without: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.bool_] | None:
    if read.vector is None and (without is None or not len(without)):
        return None
    alive = np.ones(rows, dtype=np.bool_)
    if without is not None:
        alive[without] = False
    if read.vector is not None:
        gone = deleted_rows(storage, read.table, read.vector)
        if len(gone) and int(gone[-1]) >= rows:
            raise damaged_vector_error(
                read.vector.unique_id, f"It names row {gone[-1]} of {name}, which has {rows} rows."
            )
        alive[gone] = False
    return alive


def _read_stored(
    file: pq.ParquetFile,
    name: str | Path,
    read: FileRead,
    groups: Sequence[int] | None = None,
    *,
    use_threads: bool = True,
    rows_at_once: int | None = None,
) -> Iterator[tuple[dict[str, pa.Array], int]]:
    """Batches of the file's unconverted arrays, by the column's name in the table, with their length."""
    if groups is None:
        groups = range(file.metadata.num_row_groups)
    if not rows_at_once:  # fewer where they are wide
        sizes = map(file.metadata.row_group, groups)
        row_bytes = max((group.total_byte_size // max(group.num_rows, 1) for group in sizes), default=0)
        rows_at_once = min(_BATCH_ROWS_MAX, max(_SEARCHED_ROWS, _BATCH_BYTES // max(row_bytes, 1)))
    stored = file.schema_arrow
    _require_ids(stored, read, name)
    find = column_finder(stored, read.mode)
    indexes = {field["name"]: find(field) for field in read.fields if field["name"] not in read.partition}
    names = stored.names
    wanted = {column: names[index] for column, index in indexes.items() if index is not None}
    if not wanted:
        rows = sum(file.metadata.row_group(group).num_rows for group in groups)
        yield from (({}, min(rows_at_once, rows - at)) for at in range(0, rows, rows_at_once))
        return
    try:
        if (held := held_columns()) is not None:
            for group in groups:
                yield held.read(str(name), file, group, wanted), file.metadata.row_group(group).num_rows
            return
        for batch in file.iter_batches(
            rows_at_once, row_groups=list(groups), columns=list(wanted.values()), use_threads=use_threads
        ):
            found = dict(zip(batch.schema.names, batch.columns, strict=True))
            yield {column: found[own] for column, own in wanted.items()}, batch.num_rows
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise read_failure(name, error) from error


def _arrays(columns: dict[str, pa.Array], length: int, read: FileRead, name: str | Path) -> list[pa.Array]:
    arrays = []
    for field in read.fields:
        column = field["name"]
        if column in read.partition:
            arrays.append(pa.repeat(read.partition[column], length))
        elif column in columns:
            try:
                arrays.append(conform(columns[column], field["type"], read.mode))
            except CorruptData as error:
                cause = f"Column {column!r}: {error.problem} {error.cause}"
                raise damaged_file_error(name, cause) from error
            except UnsupportedTable as error:
                error.problem = f"{error.problem} It is {str(name)!r}, column {column!r}."
                raise
            except (pa.ArrowException, ValueError) as error:
                raise damaged_file_error(name, f"Column {column!r}: {error}") from error
        else:
            arrays.append(pa.nulls(length, arrow_field(field).type))
    return arrays


def _require_ids(stored: pa.Schema, read: FileRead, name: str | Path) -> None:
    if read.mode != "id" or all(field["name"] in read.partition for field in read.fields):
        return
    if not any(b"PARQUET:field_id" in (field.metadata or {}) for field in stored):
        raise damaged_file_error(name, "Its columns have no ids, and this table finds columns by id.")


def _matching(batch: pa.RecordBatch, where: pc.Expression) -> pa.RecordBatch:
    found = pa.Table.from_batches([batch]).filter(where).combine_chunks().to_batches()
    return found[0] if found else batch.slice(0, 0)
