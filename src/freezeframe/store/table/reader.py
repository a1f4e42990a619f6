"""Rows of a table at a version."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.configuration import SMALL_BYTES
from freezeframe.engine.frames.frames import marked_columns, with_nullable
from freezeframe.engine.frames.untyped import fit, spark_schema
from freezeframe.engine.plans.python_tasks import spark_ddl
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import InvalidOption, MissingColumn, UnsupportedTable
from freezeframe.log import Snapshot
from freezeframe.log.format.actions import DeletionVector
from freezeframe.log.format.protocol import has_reader_feature
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_files import file_uri
from freezeframe.log.scan.data_skipping import as_expression
from freezeframe.log.scan.file_rows import deleted_rows
from freezeframe.log.scan.rows import ReadableSnapshot
from freezeframe.log.table.row_deletion import VECTORS_KEY
from freezeframe.store.schema.columns import (
    DELETED,
    VALID_TO,
    VECTORS_FEATURE,
    arrow_columns,
    read_system_columns,
)
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.type_compatibility import open_columns

_NUMBER_BYTES = 8

# Sorted files are smaller, their row groups have narrow key bounds, and sorting a whole stream takes a
# tenth of the time, since it consists of a few sorted runs.


def sort_rows(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows sorted by columns, nulls last; missing and unsortable columns are skipped."""
    wanted = _sorted_positions(table, _sortable(table.schema, names))
    return table if (wanted == np.arange(len(wanted))).all() else table.take(pa.array(wanted))


def _sorted_positions(keys: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    if not names:
        return np.arange(len(keys))
    if len(names) == 1 and (numbers := _numbers(keys[names[0]])) is not None:
        return np.argsort(numbers, kind="stable")  # a few sorted runs, which files are, take no time
    order: npt.NDArray[np.int64] = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])
    return np.asarray(order, np.int64)


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[Any] | None:
    """Return whole numbers in the order of the values; None where that takes more than a look at memory."""
    kind = column.type
    if column.null_count or not len(column):
        return None
    if pa.types.is_signed_integer(kind):
        return np.asarray(column.to_numpy())
    if not pa.types.is_string(kind):
        return None
    sizes = pc.min_max(pc.binary_length(column)).as_py()
    size, first = sizes["max"], max(0, sizes["max"] - _NUMBER_BYTES)
    if not 0 < sizes["min"] == size:
        return None
    found = np.zeros((len(column), _NUMBER_BYTES), np.uint8)
    start, at = b"", 0
    for chunk in filter(len, column.chunks):
        begin = np.frombuffer(chunk.buffers()[1], np.int32, 1, 4 * chunk.offset)[0]
        letters = np.frombuffer(chunk.buffers()[2], np.uint8, len(chunk) * size, begin).reshape(-1, size)
        start = start or letters[0, :first].tobytes()
        if not all((letters[:, place] == start[place]).all() for place in range(first)):
            return None
        found[at : at + len(chunk), : size - first] = letters[:, first:]
        at += len(chunk)
    return found.view(">u8").ravel().astype(np.uint64)


def _sortable(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    known = set(schema.names)
    return [name for name in names if name in known and not pa.types.is_nested(schema.field(name).type)]


def read_sorted(
    snapshot: ReadableSnapshot,
    names: Sequence[str],
    columns: Sequence[str] | None = None,
    where: Any = None,
    *,
    history: bool = False,
) -> pa.Table:
    """Return the rows of ``read_rows``, sorted as by ``sort_rows``."""
    is_part = columns is not None or where is not None
    own, known = read_system_columns(snapshot.metadata), arrow_columns(snapshot.delta_schema)
    if is_part or own.has_history:
        return sort_rows(read_rows(snapshot, columns, where, history=history), names)
    names = _sortable(rows.schema_of(snapshot), names)
    table = rows.read_sorted(snapshot, names, lambda keys: _sorted_positions(keys, names))
    return _typed(table, known)


def in_schema(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Return the rows with the columns of ``schema``: cast where they differ, null where there are none.

    Columns that ``schema`` lacks are left out.
    """
    names = set(rows.schema.names)
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    columns = [
        fit(table.column(field.name), field.type) if field.name in names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def with_columns(table: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Return the table with other columns in place of those of the same names, all of them at once."""
    if not columns:
        return table
    changed = {name: pa.field(name, column.type) for name, column in columns.items()}
    fields = [changed.get(item.name, item) for item in table.schema]
    held = [columns.get(name, column) for name, column in zip(table.column_names, table.columns, strict=True)]
    return pa.table(held, schema=pa.schema(fields, table.schema.metadata))


def read_rows(
    snapshot: ReadableSnapshot,
    columns: Sequence[str] | None = None,
    where: Any = None,
    *,
    history: bool = False,
) -> pa.Table:
    """Return the current rows of the snapshot; ``history`` adds the past rows and the validity periods."""
    own, known = read_system_columns(snapshot.metadata), arrow_columns(snapshot.delta_schema)
    part, undecided = snapshot, {field.name for field in known if is_undecided(field)}
    if where is not None and undecided:  # the predicate may compare a column without values with any type
        fields = [
            {**field, "type": "void"} if field["name"] in undecided else field
            for field in snapshot.delta_schema["fields"]
        ]
        schema = {**snapshot.delta_schema, "fields": fields}
        part = replace(rows.part_of(snapshot, snapshot.files), delta_schema=schema)
    if history or not own.has_history:
        if where is not None and columns is None:
            columns = known.names
        return _typed(rows.read(part, columns, where), known)
    for name in columns or ():
        if name in own.names:
            raise MissingColumn(
                f"The column {name!r} belongs to the stream's history.",
                cause="Current rows are read without it.",
                remedy="Pass history=True.",
                column=name,
            )
    holds = pc.field(VALID_TO).is_null()
    expression = holds if where is None else holds & as_expression(where, known)
    shown = own.removed_from(known).names if columns is None else columns
    return _typed(rows.read(part, shown, expression), known)


def as_typed_so_far(snapshot: ReadableSnapshot, table: pa.Table) -> pa.Table:
    """Rows of the snapshot's files with the types that the columns have so far, and their marks."""
    return _typed(table, arrow_columns(snapshot.delta_schema))


def _typed(table: pa.Table, known: pa.Schema) -> pa.Table:
    held = dict(zip(table.column_names, table.columns, strict=True))
    fitted = {
        field.name: fit(held[field.name], field.type)
        for field in known
        if field.name in held and held[field.name].type != field.type
    }
    table = with_columns(table, fitted)
    return with_nullable(table, marked_columns(known))


def row_columns(snapshot: ReadableSnapshot) -> pa.Schema:
    """Return the columns of ``read_rows``: those of a history are left out."""
    own, columns = read_system_columns(snapshot.metadata), arrow_columns(snapshot.delta_schema)
    return own.removed_from(columns) if own.has_history else columns


def read_row_batches(
    snapshot: ReadableSnapshot, columns: Sequence[str] | None = None
) -> pa.RecordBatchReader:
    """Return the rows of ``read_rows`` as batches, in the order of the log's files."""
    own = read_system_columns(snapshot.metadata)
    names = row_columns(snapshot).names if own.has_history and columns is None else columns
    where = pc.field(VALID_TO).is_null() if own.has_history else None
    held = rows.read(snapshot, names, pc.scalar(value=False))
    schema = as_typed_so_far(snapshot, held).schema
    batches = rows.read_batches(snapshot, names, where)
    if schema != held.schema:
        tables = (as_typed_so_far(snapshot, pa.Table.from_batches([batch])) for batch in batches)
        batches = (batch for table in tables for batch in table.to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def read_rows_at(
    snapshot: ReadableSnapshot, positions: Mapping[str, npt.NDArray[np.int64]], columns: Sequence[str]
) -> pa.Table:
    """Return the rows of ``read_rows`` at ascending positions of files, by path."""
    if not read_system_columns(snapshot.metadata).has_history:
        return as_typed_so_far(snapshot, rows.read_at(snapshot, positions, columns))
    table = as_typed_so_far(snapshot, rows.read_at(snapshot, positions, [*columns, VALID_TO]))
    return table.filter(pc.field(VALID_TO).is_null()).select(list(columns))


def row_count(snapshot: Snapshot) -> int:
    """Return the number of rows of ``read_rows``, from statistics alone for a stream without history."""
    if read_system_columns(snapshot.metadata).has_history:
        return int(rows.read(snapshot, [VALID_TO], pc.field(VALID_TO).is_null()).num_rows)
    return rows.count(snapshot)


def live_row_count(snapshot: Snapshot) -> int:
    """Return the number of these rows without a deletion flag; 0 before the first version."""
    if snapshot.version < 0:
        return 0
    if read_system_columns(snapshot.metadata).flags_deleted:
        flags = rows.read(snapshot, [DELETED]).column(0)
        return len(flags) - int(pc.sum(flags).as_py() or 0)
    return row_count(snapshot)


def as_spark(
    snapshot: ReadableSnapshot,
    engine: TableEngine,
    columns: Sequence[str] | None = None,
    *,
    history: bool = False,
    like: Any = None,
) -> Any:
    """Return a lazy Spark frame with the rows of ``read_rows``; columns without a type are text.

    It belongs to the session of ``like``, as with ``TableEngine.read``.
    """
    own = read_system_columns(snapshot.metadata)
    if own.has_history and not history:
        names = columns or row_columns(snapshot).names
        whole = as_spark(snapshot, engine, history=True, like=like)
        return whole.where(f"`{VALID_TO}` is null").select(*map(_quote, names))
    fields = [
        field for field in snapshot.delta_schema["fields"] if columns is None or field["name"] in columns
    ]
    schema = open_columns({**snapshot.delta_schema, "fields": fields}, void="string")
    uris = {
        path: file_uri(snapshot.storage, snapshot.table, path) for path in snapshot.files["path"].to_pylist()
    }
    deleted = {uris[path]: rows for path, rows in deleted_positions(snapshot, snapshot.files).items()}
    frame = engine.read(tuple(uris.values()), schema, deleted, like=like)
    return frame if columns is None else frame.select(*map(_quote, columns))


def sort_frame(frame: Any, names: Sequence[str], snapshot: ReadableSnapshot | None = None) -> Any:
    """Return a Spark frame sorted by columns that it has; ``snapshot`` is what it reads, where that is known.

    A few files are sorted in one task: ranges of many would cost a job to find them and a shuffle.
    """
    if not names:
        return frame
    if snapshot is not None and (pc.sum(snapshot.files["size"]).as_py() or 0) <= SMALL_BYTES:
        frame = frame.coalesce(1)
    return frame.orderBy(*map(_quote, names))


def moment(value: datetime | str) -> datetime:
    """Return a moment with its zone; without one it is UTC."""
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else value
        return when if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, AttributeError) as error:
        raise InvalidOption(
            f"{value!r} is not a valid timestamp.",
            remedy="Pass a datetime or ISO text such as 2026-11-20T14:05:00Z.",
        ) from error


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


# A preview deletes its files at its end, so their rows are copied into the frame. Stored files are read
# lazily with the frame.


def staged_frame(frame: Any, before: Snapshot, after: Snapshot, engine: TableEngine) -> Any:
    """Return the rows of ``after`` in the session of ``frame``; read only the files that ``before`` lacks."""
    session = frame.sparkSession
    files = after.files
    is_stored = pc.is_in(files["path"], before.files["path"]) if before.version >= 0 else None
    if is_stored is None or not pc.any(is_stored, min_count=0).as_py():
        return spark_rows(read_rows(after), session)
    stored = as_spark(rows.part_of(after, files.filter(is_stored)), engine, like=frame)
    new = read_rows(rows.part_of(after, files.filter(pc.invert(is_stored))))
    if not new.num_rows:
        return stored
    return stored.unionByName(spark_rows(new, session), allowMissingColumns=True)


def spark_rows(table: pa.Table, session: Any) -> Any:
    """Return rows as a Spark frame of a session; columns without a type are text."""
    shown = in_schema(table, spark_schema(table.schema))
    return session.createDataFrame(shown, schema=spark_ddl(shown.schema))


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A live file: its path in the log, bytes, rows, and number of deleted rows."""

    path: str
    size: int
    rows: int
    deleted: int = 0


def live_files(files: pa.Table, rows_unknown: int | None = None) -> tuple[LiveFile, ...]:
    """``files`` (rows of ``snapshot.files``), in their order.

    Where the log does not say how many rows a file has, it has ``rows_unknown``; None: it is refused.
    """
    columns = ["path", "size", "stats", "deletion_vector"]
    return tuple(
        LiveFile(
            row["path"],
            row["size"],
            _rows(row["path"], row["stats"], rows_unknown),
            row["deletion_vector"]["cardinality"] if row["deletion_vector"] else 0,
        )
        for row in files.select(columns).to_pylist()
    )


def deleted_positions(snapshot: ReadableSnapshot, files: pa.Table) -> dict[str, npt.NDArray[np.int64]]:
    """Return the positions of deleted rows in ``files`` (rows of ``snapshot.files``), by path."""
    marked = files.filter(pc.is_valid(files["deletion_vector"])).select(["path", "deletion_vector"])
    return {
        row["path"]: deleted_rows(
            snapshot.storage, snapshot.table, DeletionVector.from_json(row["deletion_vector"])
        ).astype(np.int64)
        for row in marked.to_pylist()
    }


def has_vectors(snapshot: Snapshot) -> bool:
    """Return whether the table enables deletion vectors."""
    is_on = snapshot.metadata.configuration.get(VECTORS_KEY, "").lower() == "true"
    return is_on and has_reader_feature(snapshot.protocol, VECTORS_FEATURE)


def _rows(path: str, statistics: str | None, unknown: int | None) -> int:
    found = (json.loads(statistics) if statistics else {}).get("numRecords", unknown)
    if not isinstance(found, int):
        raise UnsupportedTable(
            f"It is not known how many rows {path!r} has.",
            cause="Another writer left the statistics out.",
            remedy="Replace the stream's content with override=True.",
        )
    return found
