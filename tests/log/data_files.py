"""Rows as data files of any Delta table, for tests of the log: Parquet in the table's physical schema."""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freezeframe.clock import now_ms
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import Add, Metadata, Protocol
from freezeframe.log.format.conversion import conform
from freezeframe.log.format.schema import (
    Mode,
    arrow_field,
    arrow_to_delta,
    delta_to_arrow,
    fields_of,
    mapping_mode,
    physical_name,
)
from freezeframe.log.scan.data_files import SHA256_TAG
from freezeframe.log.scan.file_statistics import file_statistics, statistics_text
from freezeframe.log.table.row_deletion import mark_rows, physical_rows


@dataclass(frozen=True, slots=True)
class NewFile:
    """A new data file: its name below the table's folder, its bytes, and its action."""

    name: str
    content: bytes
    add: Add


def new_files(
    rows: pa.Table,
    schema: Mapping[str, Any],
    protocol: Protocol,
    metadata: Metadata,
) -> list[NewFile]:
    """The rows as files of a table, one per combination of partition values; missing columns are null."""
    names = [field["name"] for field in fields_of(schema)]
    fitted = _fit_rows(rows, schema)
    mode = mapping_mode(protocol, metadata)
    partition = [name for name in names if name in metadata.partition_columns]
    return [
        _new_file(part, values, schema, partition, mode) for part, values in _partition(fitted, partition)
    ]


def _fit_rows(rows: pa.Table, schema: Mapping[str, Any]) -> pa.Table:
    columns = []
    for field in fields_of(schema):
        kind = arrow_field(field)
        if field["name"] not in rows.column_names:
            column = pa.chunked_array([pa.nulls(rows.num_rows, kind.type)])
        else:
            column = _cast(rows[field["name"]], field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=delta_to_arrow(schema))


def _cast(column: pa.ChunkedArray, field: Mapping[str, Any]) -> pa.ChunkedArray:
    arrays = [conform(chunk, field["type"], "none") for chunk in column.chunks]
    return pa.chunked_array(arrays, type=arrow_field(field).type)


def _partition(rows: pa.Table, names: list[str]) -> Iterator[tuple[pa.Table, dict[str, Any]]]:
    if not rows.num_rows:
        return
    if not names:
        yield rows, {}
        return
    for values in rows.select(names).group_by(names, use_threads=False).aggregate([]).to_pylist():
        mask = pa.array([True] * rows.num_rows)
        for name in names:
            column = rows[name]
            value = pa.scalar(values[name], column.type)
            same = pc.equal(column, value) if value.is_valid else pc.is_null(column)
            mask = pc.and_(mask, pc.fill_null(same, fill_value=False))
        yield rows.filter(mask), values


def _new_file(
    rows: pa.Table,
    values: Mapping[str, Any],
    schema: Mapping[str, Any],
    partition: list[str],
    mode: Mode,
) -> NewFile:
    fields = {field["name"]: field for field in fields_of(schema)}
    kept = [field for name, field in fields.items() if name not in partition and field["type"] != "void"]
    sink = pa.BufferOutputStream()
    pq.write_table(physical_rows(rows, kept, mode), sink, write_page_checksum=True, store_schema=False)
    content = bytes(sink.getvalue())
    name = f"part-{uuid.uuid4()}.parquet"
    statistics = file_statistics(content, {"type": "struct", "fields": kept})
    add = Add(
        path=name,
        size=len(content),
        partition_values={
            physical_name(fields[column], mode): partition_text(values[column]) for column in partition
        },
        modification_time=now_ms(),
        stats=statistics_text(statistics),
        tags={SHA256_TAG: hashlib.sha256(content).hexdigest()},
    )
    return NewFile(name, content, add)


def created(place, schema, partition_by=(), configuration=None):
    """The log of a new table at a directory or URL; its rows may be deleted by vectors if it says so."""
    keys = dict(configuration or {})
    has_vectors = keys.get("delta.enableDeletionVectors") == "true"
    protocol = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)) if has_vectors else Protocol(1, 2)
    metadata = Metadata(str(uuid.uuid4()), json.dumps(arrow_to_delta(schema)), tuple(partition_by), keys)
    log = DeltaLog.open(place)
    assert log.start_transaction().commit([protocol, metadata], "CREATE TABLE") == 0
    return log


def append(log, rows):
    """Commit the rows as new files."""
    begun = log.start_transaction()
    snapshot = begun.snapshot
    adds = stored_adds(log, new_files(rows, snapshot.delta_schema, snapshot.protocol, snapshot.metadata))
    begun.commit(adds)


def stored_adds(log, files):
    """The actions of the files, which are stored."""
    for file in files:
        log.storage.put_if_absent(f"{log.table}/{file.name}".lstrip("/"), file.content)
    return [file.add for file in files]


def mark(log, column, value):
    """Commit a deletion by vectors of the rows with that value, in a table that had no deletion before."""
    begun = log.start_transaction()
    positions = {}
    for path in begun.snapshot.files["path"].to_pylist():
        values = pq.read_table(io.BytesIO(log.storage.read(f"{log.table}/{path}".lstrip("/"))))[column]
        positions[path] = [place for place, found in enumerate(values.to_pylist()) if found == value]
    deletion = mark_rows(begun.snapshot, positions)
    if deletion.file is not None:
        stored = f"{log.table}/{deletion.file.name}".lstrip("/")
        log.storage.put_if_absent(stored, deletion.file.content)
    begun.commit(deletion.actions, "DELETE")


def partition_text(value: Any) -> str | None:
    """Serialise a partition value (a Python value of the column's type) as the log's text."""
    match value:  # a type that cannot partition a table gives None
        case None | "":
            return None
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return _number(value) if isinstance(value, float) else str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            if value.tzinfo is None:
                return value.isoformat(sep=" ", timespec="microseconds")
            # A text without a zone would be a time of the reader's own in Spark.
            moment = value.astimezone(UTC).replace(tzinfo=None)
            return f"{moment.isoformat(timespec='microseconds')}Z"
        case date():
            return value.isoformat()
        case bytes():
            return value.decode()


def _number(value: float) -> str:
    names = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    return names.get(repr(value), repr(value))
