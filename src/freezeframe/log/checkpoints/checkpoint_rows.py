"""Rows of a Parquet checkpoint: one action each, in the column of its kind, other columns null.

The schema is that of the protocol's section "Checkpoint Schema". Statistics are stored as JSON text,
which every reader supports, or as structs where the table's properties ask for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import pyarrow as pa

from freezeframe.log.actions.action_columns import DELTA_NAMES, FILE_SCHEMA, TEXT_MAP, TOMBSTONE_SCHEMA
from freezeframe.log.actions.actions import Action, Metadata
from freezeframe.log.statistics.parsed_statistics import (
    parse_partition_values,
    parse_statistics,
    partition_type,
    statistics_type,
)

_TEXTS = pa.list_(pa.field("element", pa.string()))


def _rename_fields(schema: pa.Schema) -> pa.DataType:
    return pa.struct([pa.field(DELTA_NAMES[field.name], field.type) for field in schema])


CHECKPOINT_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        ("add", _rename_fields(FILE_SCHEMA)),
        ("remove", _rename_fields(TOMBSTONE_SCHEMA)),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", TEXT_MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", _TEXTS),
                    ("configuration", TEXT_MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", _TEXTS),
                    ("writerFeatures", _TEXTS),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
    ]
)
_STRUCTS = ("partitionValues_parsed", "stats_parsed")


def schemas_for(files: pa.Table) -> tuple[pa.Schema, pa.Schema]:
    """The schemas of a checkpoint and of its sidecars for ``files``, which may have columns of structs."""
    add = CHECKPOINT_SCHEMA.field("add")
    more = [pa.field(name, files.schema.field(name).type) for name in _STRUCTS if name in files.schema.names]
    wide = CHECKPOINT_SCHEMA.set(
        CHECKPOINT_SCHEMA.get_field_index("add"), pa.field("add", pa.struct([*add.type, *more]))
    )
    return wide, pa.schema([wide.field("add"), wide.field("remove")])


def with_structs(files: pa.Table, metadata: Metadata, time_zone: tzinfo) -> pa.Table:
    """The files with the columns that the table's properties ask for; text alone by default.

    ``delta.checkpoint.writeStatsAsStruct`` adds typed statistics and partition values,
    ``delta.checkpoint.writeStatsAsJson=false`` leaves out the texts.
    """
    properties = metadata.configuration
    found = files
    if properties.get("delta.checkpoint.writeStatsAsStruct", "false").lower() == "true":
        if metadata.partition_columns:
            kind = partition_type(metadata.schema, metadata.partition_columns)
            typed = parse_partition_values(files["partition_values"], kind, time_zone)
            found = found.append_column("partitionValues_parsed", typed)
        kind = statistics_type(metadata.schema, metadata.partition_columns)
        found = found.append_column("stats_parsed", parse_statistics(files["stats"], kind))
    if properties.get("delta.checkpoint.writeStatsAsJson", "true").lower() == "false":
        nothing = pa.chunked_array([pa.nulls(files.num_rows, pa.string())])
        found = found.set_column(files.schema.get_field_index("stats"), "stats", nothing)
    return found


def small_rows(actions: Sequence[Action], schema: pa.Schema) -> pa.Table:
    """Rows of the non-file actions, in the given order."""
    rows = [{action.KEY: _pairs(action.to_json())} for action in actions]
    return pa.Table.from_pylist(rows, schema=schema)


def file_rows(files: pa.Table, kind: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows of the ``add`` or ``remove`` actions of ``files`` in the columns of ``schema``, table by table."""
    target = schema.field(kind).type
    # Each table becomes a row group of its own, which costs kilobytes even for a few rows.
    for batch in files.combine_chunks().to_batches():
        actions = pa.StructArray.from_arrays(batch.columns, fields=list(target))
        yield pa.Table.from_arrays(
            [actions if field.name == kind else pa.nulls(batch.num_rows, field.type) for field in schema],
            schema=schema,
        )


def _pairs(body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert objects that are maps in Parquet to Arrow's lists of pairs."""
    found = dict(body)
    if "configuration" in found and isinstance(found["configuration"], Mapping):
        found["configuration"] = list(found["configuration"].items())
    if "format" in found:
        found["format"] = {**found["format"], "options": list(found["format"]["options"].items())}
    return found
