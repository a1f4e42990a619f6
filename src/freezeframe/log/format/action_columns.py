"""File actions as Arrow columns: the representation of a table's state.

One row is one file action. ``FILE_SCHEMA`` is the schema of ``Snapshot.files``, ``TOMBSTONE_SCHEMA``
that of ``Snapshot.tombstones``. Column names are Delta's in snake case; the fields of a deletion
vector keep Delta's own spelling, because engines receive the struct unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.format.actions import Add, DeletionVector, Remove
from freezeframe.log.primitives.arrow import Ints, is_valid, to_arrow_flags, to_arrow_ints, to_arrow_offsets
from freezeframe.log.primitives.paths import canonical_path

TEXT_MAP = pa.map_(pa.string(), pa.string())
DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", TEXT_MAP),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("data_change", pa.bool_()),
        ("stats", pa.string()),
        ("deletion_vector", DELETION_VECTOR),
        ("tags", TEXT_MAP),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
    ]
)
TOMBSTONE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("deletion_timestamp", pa.int64()),
        ("data_change", pa.bool_()),
        ("extended_file_metadata", pa.bool_()),
        ("partition_values", TEXT_MAP),
        ("size", pa.int64()),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
    ]
)
# The name of each column in Delta's JSON and Parquet.
DELTA_NAMES = {own: delta for own, (delta, _) in (Remove.FIELDS | Add.FIELDS).items()}


@dataclass(frozen=True, slots=True)
class FileActions:
    """Adds and removes of a run of commits; ``*_order`` are their positions in the log, ascending."""

    adds: pa.Table
    adds_order: Ints
    removes: pa.Table
    removes_order: Ints

    @classmethod
    def empty(cls) -> FileActions:
        """Return a batch without actions."""
        none = np.zeros(0, dtype=np.int64)
        return cls(no_rows(FILE_SCHEMA), none, no_rows(TOMBSTONE_SCHEMA), none)

    @classmethod
    def concat(cls, batches: Sequence[FileActions]) -> FileActions:
        """Return the batches concatenated in commit order; the orders of a later batch are shifted up."""
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return cls.empty()
        starts = np.cumsum(
            [0]
            + [
                (
                    1
                    + max(
                        int(batch.adds_order.max(initial=-1)),
                        int(batch.removes_order.max(initial=-1)),
                    )
                )
                for batch in batches[:-1]
            ]
        )
        return cls(
            pa.concat_tables([batch.adds for batch in batches]),
            np.concatenate([batch.adds_order + at for batch, at in zip(batches, starts, strict=True)]),
            pa.concat_tables([batch.removes for batch in batches]),
            np.concatenate([batch.removes_order + at for batch, at in zip(batches, starts, strict=True)]),
        )


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return an empty table (Arrow's own ``empty_table`` imports pandas, see ``arrow_numbers``)."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def file_keys(table: pa.Table) -> pa.ChunkedArray:
    """Return key of each logical file: its path, and the unique id of its deletion vector if it has one."""
    paths, vectors = table["path"], table["deletion_vector"]
    if vectors.null_count == len(vectors):
        return paths
    kind = pc.struct_field(vectors, "storageType")
    text = pc.struct_field(vectors, "pathOrInlineDv")
    offset = pc.cast(pc.struct_field(vectors, "offset"), pa.string())
    plain = pc.binary_join_element_wise(paths, kind, text, "\n")
    at = pc.binary_join_element_wise(plain, offset, "@")
    return pc.coalesce(at, plain, paths)


def action_keys(actions: Iterable[Add | Remove]) -> pa.ChunkedArray:
    """Return the key of each action's logical file, in the form of ``file_keys``."""
    rows = [
        {
            "path": canonical_path(action.path),
            "deletion_vector": None if action.deletion_vector is None else action.deletion_vector.to_json(),
        }
        for action in actions
    ]
    schema = pa.schema([FILE_SCHEMA.field("path"), FILE_SCHEMA.field("deletion_vector")])
    return file_keys(pa.Table.from_pylist(rows, schema=schema))


def text_map(columns: Sequence[pa.Array], names: Sequence[str], valid: Any, *, keep_nulls: bool) -> pa.Array:
    """Build a map column of a text column per key; ``keep_nulls`` stores a null, else drops its entry."""
    rows, count = len(valid), len(names)
    if count == 0:
        offsets = to_arrow_offsets(np.zeros(rows + 1, dtype=np.int32))
        empty = pa.nulls(0, pa.string())
        return _map(offsets, empty, empty, valid)
    turn = np.arange(rows * count)
    items = pa.concat_arrays(columns).take(to_arrow_ints((turn % count) * rows + turn // count))
    builder = pa.lib.StringBuilder()
    builder.append_values(list(names))
    keys = builder.finish().take(to_arrow_ints(turn % count))
    ends = np.arange(1, rows + 1) * count
    if not keep_nulls:
        kept = is_valid(items)
        items, keys = items.filter(to_arrow_flags(kept)), keys.filter(to_arrow_flags(kept))
        ends = np.cumsum(kept.reshape(rows, count).sum(axis=1))
    return _map(to_arrow_offsets(np.concatenate([[0], ends])), keys, items, valid)


def to_adds(files: pa.Table) -> list[Add]:
    """Return the rows of ``FILE_SCHEMA`` as actions."""
    return [Add.from_json(_delta_fields(row)) for row in files.to_pylist()]


def to_removes(tombstones: pa.Table) -> list[Remove]:
    """Return the rows of ``TOMBSTONE_SCHEMA`` as actions."""
    return [Remove.from_json(_delta_fields(row)) for row in tombstones.to_pylist()]


def from_adds(adds: Iterable[Add]) -> pa.Table:
    """Return the actions as rows of ``FILE_SCHEMA``."""
    return _table(adds, FILE_SCHEMA)


def from_removes(removes: Iterable[Remove]) -> pa.Table:
    """Return the actions as rows of ``TOMBSTONE_SCHEMA``."""
    return _table(removes, TOMBSTONE_SCHEMA)


def _map(offsets: pa.Array, keys: pa.Array, items: pa.Array, valid: Any) -> pa.Array:
    if valid.all():
        return pa.MapArray.from_arrays(offsets, keys, items, TEXT_MAP)
    entries = pa.StructArray.from_arrays([keys, items], fields=[TEXT_MAP.key_field, TEXT_MAP.item_field])
    buffers = [pa.py_buffer(np.packbits(valid, bitorder="little")), offsets.buffers()[1]]
    return pa.Array.from_buffers(TEXT_MAP, len(valid), buffers, children=[entries])


def _delta_fields(row: dict[str, Any]) -> dict[str, Any]:
    fields = {DELTA_NAMES[name]: value for name, value in row.items()}
    for name in ("partitionValues", "tags"):
        if fields.get(name) is not None:
            fields[name] = dict(fields[name])
    return fields


def _table(actions: Iterable[Add | Remove], schema: pa.Schema) -> pa.Table:
    rows = [_row(action, schema) for action in actions]
    return pa.Table.from_pylist(rows, schema=schema) if rows else no_rows(schema)


def _row(action: Add | Remove, schema: pa.Schema) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(action, name) for name in schema.names}
    for name in ("partition_values", "tags"):
        if row.get(name) is not None:
            row[name] = list(row[name].items())
    vector: DeletionVector | None = row.get("deletion_vector")
    row["deletion_vector"] = None if vector is None else vector.to_json()
    return row
