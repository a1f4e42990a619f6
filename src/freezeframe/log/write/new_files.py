"""Writes rows as Parquet in the table's physical schema, with their ``add`` actions.

The files are not visible before a commit. Each has a unique name, page checksums in every column,
statistics from its own footer, and the SHA-256 of its bytes in its tags.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from freezeframe.clock import now_ms
from freezeframe.errors import BadInput, CorruptData, MissingColumn, SchemaDriftError
from freezeframe.log.actions.actions import Add, Metadata, Protocol
from freezeframe.log.scan.data_files import SHA256_TAG
from freezeframe.log.schema.column_mapping import (
    PHYSICAL_NAME_KEY,
    Mode,
    field_id,
    mapping_mode,
    physical_name,
)
from freezeframe.log.schema.conversion import conform
from freezeframe.log.schema.partition_values import partition_text
from freezeframe.log.schema.schema import arrow_field, delta_to_arrow, fields_of, is_list
from freezeframe.log.statistics.file_statistics import bounded_columns, file_statistics, statistics_text


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
    clustering: Collection[tuple[str, ...]] = (),
) -> list[NewFile]:
    """The rows as data files of a table, one per combination of partition values; none for no rows.

    Their statistics cover the ``clustering`` columns (physical paths), however many columns come first.

    Columns may be in any order; missing ones become null. Values are cast where the cast is lossless.

    Raises:
        MissingColumn: the rows have a column that the table lacks.
        SchemaDriftError: a value does not fit the table's type, or a null in a required column.
    """
    names = [field["name"] for field in fields_of(schema)]
    for name in rows.column_names:
        if name not in names:
            raise MissingColumn(
                f"The table has no column {name!r}.",
                cause=f"Its columns are {', '.join(names)}.",
                remedy="Leave the column out, or add it to the table first.",
                column=name,
            )
    fitted = _fit_rows(rows, schema)
    mode = mapping_mode(protocol, metadata)
    partition = [name for name in names if name in metadata.partition_columns]
    return [
        _new_file(part, values, schema, partition, mode, clustering)
        for part, values in _partition(fitted, partition)
    ]


def _fit_rows(rows: pa.Table, schema: Mapping[str, Any]) -> pa.Table:
    columns = []
    for field in fields_of(schema):
        kind = arrow_field(field)
        if field["name"] not in rows.column_names:
            column = pa.chunked_array([pa.nulls(rows.num_rows, kind.type)])
        else:
            column = _cast(rows[field["name"]], field)
        if not kind.nullable and column.null_count:
            raise SchemaDriftError(
                f"The column {field['name']!r} must not be null, and {column.null_count} rows of it are.",
                remedy="Fill the column.",
                column=field["name"],
            )
        for inner in (place for chunk in column.chunks for place in _null_places(chunk, field["name"])):
            raise SchemaDriftError(
                f"The field {inner!r} must not be null, and in some rows it is.",
                remedy="Fill the field.",
                column=field["name"],
            )
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=delta_to_arrow(schema))


def _null_places(values: pa.Array, place: str) -> Iterator[str]:
    """The nested fields with a null where their type allows none."""
    kind = values.type
    if kinds.is_struct(kind):
        there = values.filter(values.is_valid())
        parts = list(zip(kind, there.flatten(), strict=True))
    elif kinds.is_map(kind):
        flat = values.filter(values.is_valid())
        parts = [(kind.key_field, flat.keys), (kind.item_field, flat.items)]
    elif is_list(kind):
        parts = [(kind.value_field, pc.list_flatten(values))]
    else:
        return
    for field, part in parts:
        if not field.nullable and part.null_count:
            yield f"{place}.{field.name}"
        yield from _null_places(part, f"{place}.{field.name}")


def _cast(column: pa.ChunkedArray, field: Mapping[str, Any]) -> pa.ChunkedArray:
    try:
        arrays = [conform(chunk, field["type"], "none") for chunk in column.chunks]
    except CorruptData as error:
        raise SchemaDriftError(
            f"The column {field['name']!r} does not fit the table's type.",
            cause=f"{column.type} came; {error.cause}",
            remedy="Convert the column, or change the table's type first.",
            column=field["name"],
        ) from error
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
            same = (
                pc.is_null(column)
                if values[name] is None
                else pc.equal(column, _scalar(values, name, column))
            )
            mask = pc.and_(mask, pc.fill_null(same, fill_value=False))
        yield rows.filter(mask), values


def _scalar(values: Mapping[str, Any], name: str, column: pa.ChunkedArray) -> pa.Scalar:
    value = values[name]
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN equals no value, so no row would match
        raise BadInput(f"The column {name!r} holds NaN and cannot partition the table.", column=name)
    return pa.scalar(value, column.type)


def _new_file(
    rows: pa.Table,
    values: Mapping[str, Any],
    schema: Mapping[str, Any],
    partition: list[str],
    mode: Mode,
    clustering: Collection[tuple[str, ...]],
) -> NewFile:
    fields = {field["name"]: field for field in fields_of(schema)}
    kept = [field for name, field in fields.items() if name not in partition and field["type"] != "void"]
    sink = pa.BufferOutputStream()
    stored = physical_rows(rows, kept, mode)
    bounded = bounded_columns(stored.schema)
    pq.write_table(stored, sink, write_page_checksum=True, store_schema=False, write_statistics=bounded)
    content = bytes(sink.getvalue())
    name = f"part-{uuid.uuid4()}.parquet"
    statistics = file_statistics(content, {"type": "struct", "fields": kept}, required=clustering)
    add = Add(
        path=name,
        size=len(content),
        partition_values={
            physical_name(fields[column], mode): partition_text(values[column], column)
            for column in partition
        },
        modification_time=now_ms(),
        stats=statistics_text(statistics),
        tags={SHA256_TAG: hashlib.sha256(content).hexdigest()},
    )
    return NewFile(name, content, add)


def physical_rows(rows: pa.Table, fields: list[dict[str, Any]], mode: Mode) -> pa.Table:
    """The rows under the physical names and with the column ids of the data files."""
    if mode == "none":
        return rows.select([field["name"] for field in fields])
    renamed = [_to_physical_field(field) for field in fields]
    kinds = [_with_ids(arrow_field(to), field) for field, to in zip(fields, renamed, strict=True)]
    arrays = [
        # A column without chunks needs the explicit type.
        pa.chunked_array(
            [conform(chunk, to["type"], "name") for chunk in rows[field["name"]].chunks], kind.type
        )
        for field, to, kind in zip(fields, renamed, kinds, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(kinds))


def _to_physical_field(field: Mapping[str, Any]) -> dict[str, Any]:
    """The field with physical and logical name swapped, to convert rows in the other direction."""
    return {
        "name": physical_name(field),
        "type": _to_physical_type(field["type"]),
        "nullable": field.get("nullable", True),
        "metadata": {PHYSICAL_NAME_KEY: field["name"]},
    }


def _to_physical_type(kind: Any) -> Any:
    if not isinstance(kind, Mapping):
        return kind
    if kind["type"] == "struct":
        return {**kind, "fields": [_to_physical_field(field) for field in fields_of(kind)]}
    nested = {
        key: _to_physical_type(kind[key]) for key in ("elementType", "keyType", "valueType") if key in kind
    }
    return {**kind, **nested}


def _with_ids(kind: pa.Field, field: Mapping[str, Any]) -> pa.Field:
    number = field_id(field)
    return kind if number is None else kind.with_metadata({"PARQUET:field_id": str(number)})
