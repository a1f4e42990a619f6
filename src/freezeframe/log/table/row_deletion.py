"""Deletion of rows by deletion vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from freezeframe.clock import now_ms
from freezeframe.errors import InvalidOption, UnsupportedTable
from freezeframe.log.format.action_columns import to_adds
from freezeframe.log.format.actions import Action, Add, Remove
from freezeframe.log.format.conversion import conform
from freezeframe.log.format.schema import (
    PHYSICAL_NAME_KEY,
    Mode,
    arrow_field,
    field_id,
    fields_of,
    physical_name,
)
from freezeframe.log.primitives import json_fields
from freezeframe.log.scan.data_files import VectorFile, vector_files
from freezeframe.log.scan.file_rows import deleted_rows
from freezeframe.log.scan.file_statistics import statistics_text
from freezeframe.log.table.snapshot import Snapshot

VECTORS_KEY = "delta.enableDeletionVectors"


@dataclass(frozen=True, slots=True)
class RowDeletion:
    """A deletion: the vector file to store first (None: not needed), then the actions."""

    file: VectorFile | None
    actions: tuple[Action, ...]
    deleted_rows: int


def mark_rows(
    snapshot: Snapshot,
    positions: Mapping[str, Iterable[int]],
    *,
    prefix: str = "",
    timestamp_ms: int | None = None,
) -> RowDeletion:
    """Delete rows by path (as in ``snapshot.files``) and position in the file, counted from 0.

    Already deleted rows are allowed. A file without remaining rows is removed. ``prefix`` is the folder of
    a vector file below the table's.
    """
    is_named = pa.array([path in positions for path in snapshot.files["path"].to_pylist()], pa.bool_())
    live = {add.path: add for add in to_adds(snapshot.files.filter(is_named))}
    vectors: list[tuple[Add, BitMap64]] = []
    actions: list[Action] = []
    total = 0
    for path, rows in positions.items():
        if path not in live:
            raise InvalidOption(
                f"{path!r} is not a file of version {snapshot.version}.", remedy="Take paths from its files."
            )
        add = live[path]
        if add.deletion_vector is None:
            before = BitMap64()
        else:
            before = BitMap64(deleted_rows(snapshot.storage, snapshot.table, add.deletion_vector).tolist())
        after = before | BitMap64(rows)
        count = json_fields.statistics(add.stats).get("numRecords")
        if not isinstance(count, int) or isinstance(count, bool):
            raise UnsupportedTable(
                f"Rows of {add.path!r} cannot be deleted by a vector.",
                cause="The log does not say how many rows the file has, and a vector needs that.",
                remedy="Rewrite the file without the rows.",
            )
        if len(after) and after.max() >= count:
            raise InvalidOption(
                f"Row {after.max()} is not in {add.path!r}, which has {count} rows.",
                remedy="Count positions from 0 within each file.",
            )
        if len(after) == len(before):
            continue
        total += len(after) - len(before)
        actions.append(removal(add, timestamp_ms))
        if len(after) < count:
            vectors.append((add, after))
    files = vector_files([rows for _, rows in vectors], prefix) if vectors else []
    for (add, _), file in zip(vectors, files, strict=True):
        # Bounds stay valid for the remaining rows; as text they keep every digit of a decimal.
        statistics = {**json_fields.statistics(add.stats), "tightBounds": False}
        text = statistics_text(statistics)
        actions.append(replace(add, deletion_vector=file.vector, stats=text, data_change=True))
    return RowDeletion(files[0] if files else None, tuple(actions), total)


def removal(add: Add, timestamp_ms: int | None = None) -> Remove:
    """Return the remove action of a live file (or of its state under one deletion vector)."""
    return Remove(
        path=add.path,
        deletion_timestamp=now_ms() if timestamp_ms is None else timestamp_ms,
        data_change=True,
        extended_file_metadata=True,
        partition_values=add.partition_values,
        size=add.size,
        tags=add.tags,
        deletion_vector=add.deletion_vector,
        base_row_id=add.base_row_id,
        default_row_commit_version=add.default_row_commit_version,
    )


def physical_rows(rows: pa.Table, fields: list[dict[str, Any]], mode: Mode) -> pa.Table:
    """Return the rows under the physical names and with the column ids of the data files."""
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
    """Return the field with physical and logical name swapped, to convert rows in the other direction."""
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
